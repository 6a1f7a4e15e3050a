"""The policy that verl's SFT trainer leaves, as a folder that any loader reads: adapters are merged into the weights.

    python -m verl_sql.integration.sft_policy CHECKPOINT OUT

`CHECKPOINT` is verl's `global_step_N`. Without adapters, `OUT` shares the files of its `huggingface` folder. With them
(model.lora_rank > 0), verl 0.9.1 writes a state dict of peft's names there, which no loader of policies knows, and
their rank and alpha into `lora_train_meta.json` (utils/checkpoint/fsdp_checkpoint_manager.py).
"""

import argparse
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

META = "lora_train_meta.json"
_PREFIX = "base_model.model."
_A, _B, _BASE = ".lora_A.default.weight", ".lora_B.default.weight", ".base_layer"


def keep_policy(checkpoint: Path, out: Path) -> None:
    """Make `out` the policy of a checkpoint.

    Raises:
        FileNotFoundError: the checkpoint holds no policy.
    """
    source = checkpoint / "huggingface"
    if not source.is_dir():
        raise FileNotFoundError(f"{checkpoint} holds no policy: checkpoint.save_contents must name hf_model")
    meta = next(iter(sorted(checkpoint.rglob(META))), None)
    if meta is None:
        shutil.copytree(source, out, copy_function=os.link)
        return
    scale = json.loads(meta.read_text(encoding="utf-8"))
    _write_merged(source, out, scale["lora_alpha"] / scale["r"])


def merged(state: Mapping[str, Any], scale: float) -> dict[str, Any]:
    """The state dict of the plain model: W + scale * B A for every weight that has an adapter, under its own name.

    Args:
        state: peft's state dict; tensors A of shape (rank, in) and B of shape (out, rank).
        scale: alpha over rank.
    """
    found = {}
    for name, tensor in state.items():
        if ".lora_" in name:
            continue
        place = name.removesuffix(".weight").removesuffix(_BASE)
        down, up = state.get(place + _A), state.get(place + _B)
        if down is not None and up is not None and name.endswith(f"{_BASE}.weight"):
            tensor = (tensor.float() + scale * up.float() @ down.float()).to(tensor.dtype)
        found[name.removeprefix(_PREFIX).replace(f"{_BASE}.", ".")] = tensor
    return found


def _write_merged(source: Path, out: Path, scale: float) -> None:
    """Merge the weights of `source`, in one file, and copy its other files."""
    from safetensors.torch import load_file, save_file

    out.mkdir(parents=True)
    state = {name: tensor for file in sorted(source.glob("*.safetensors")) for name, tensor in load_file(file).items()}
    plain = {name: tensor.contiguous() for name, tensor in merged(state, scale).items()}
    save_file(plain, out / "model.safetensors", {"format": "pt"})
    for file in source.iterdir():
        if "safetensors" not in file.name:
            shutil.copy(file, out / file.name)
    _tell_type(out / "config.json", str(next(iter(plain.values())).dtype).removeprefix("torch."))


def _tell_type(config: Path, name: str) -> None:
    """Write the weights' type into a config: beside adapters, verl says bfloat16 whatever they are."""
    content = json.loads(config.read_text(encoding="utf-8"))
    for key in ("dtype", "torch_dtype"):
        if key in content:
            content[key] = name
    config.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="the policy of an SFT checkpoint, adapters merged")
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    try:
        keep_policy(given.checkpoint, given.out)
    except FileNotFoundError as error:
        raise SystemExit(f"verl_sql: {error}") from error


if __name__ == "__main__":
    main()
