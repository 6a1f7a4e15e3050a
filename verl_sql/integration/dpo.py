"""Direct preference optimisation of a policy on pairs of rollouts (Reward-SQL §5.2), by TRL's trainer.

    python -m verl_sql.integration.dpo model=POLICY pairs=pairs.parquet out=TRAINED
    python -m verl_sql.integration.dpo --config-name dpo/reward_sql_cpu model=… pairs=… out=… training.beta=0.2

L = −E log σ(β log π(C_w|q)/π_ref(C_w|q) − β log π(C_l|q)/π_ref(C_l|q)); π_ref is the policy that training starts from.
The settings are in recipes/conf/dpo/; `training` is handed to `trl.DPOConfig` as it is. TRL is the extra `dpo`.
"""

import importlib.util
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from verl_sql.dataset.parquet import missing_columns, read_rows
from verl_sql.dataset.sft.preference import PREFERENCE_SCHEMA
from verl_sql.integration.versions import TRL

Pair = dict[str, list[dict[str, str]]]


class DpoError(RuntimeError):
    """Something the user has to change, in one sentence."""


@dataclass(frozen=True, slots=True)
class DpoSettings:
    """One training.

    Attributes:
        model: the policy to start from, also the reference: a folder or a name on the hub.
        pairs: parquet in PREFERENCE_SCHEMA.
        out: folder that the trained policy is written to, with its tokenizer; transformers and vLLM load it.
        metrics: file for the numbers of each logged step, one JSON object a line; None for none.
        max_pairs: the first so many pairs; None for all.
        dtype: of both policies while they train.
        save_dtype: of the weights that are written.
        attention: attention implementation of transformers.
        training: keys of `trl.DPOConfig`.
    """

    model: str
    pairs: Path
    out: Path
    metrics: Path | None = None
    max_pairs: int | None = None
    dtype: str = "float32"
    save_dtype: str = "bfloat16"
    attention: str = "sdpa"
    training: Mapping[str, Any] = field(default_factory=dict)


def train_dpo(settings: DpoSettings) -> dict[str, Any]:
    """Train and save; returns what happened, which `out/dpo.json` holds too.

    Raises:
        DpoError: TRL is not installed, or the pairs are missing, of another shape, or all too long.
    """
    require_trl()
    from transformers import AutoModelForCausalLM, AutoTokenizer, PrinterCallback
    from trl import DPOConfig, DPOTrainer

    from verl_sql.integration.dpo_steps import StepLog

    tokenizer = AutoTokenizer.from_pretrained(settings.model)
    pairs = read_pairs(settings.pairs, settings.max_pairs)
    kept = fitting(pairs, tokenizer, settings.training.get("max_length"))
    _say(f"{len(kept)} pairs, {len(pairs) - len(kept)} left out as longer than max_length")
    policy = AutoModelForCausalLM.from_pretrained(
        settings.model, dtype=settings.dtype, attn_implementation=settings.attention
    )
    options = {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, **settings.training}
    steps = StepLog(settings.metrics)
    trainer = DPOTrainer(
        model=policy,
        args=DPOConfig(output_dir=str(settings.out), **options),
        train_dataset=_dataset(kept),
        processing_class=tokenizer,
        callbacks=[steps],
    )
    trainer.remove_callback(PrinterCallback)  # `steps` says what matters
    trainer.train()
    _save(trainer, tokenizer, settings)
    report = {"pairs": len(kept), "too_long": len(pairs) - len(kept), **steps.summary()}
    if trainer.is_world_process_zero():
        (settings.out / "dpo.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return report


def require_trl() -> None:
    """See that TRL is there.

    Raises:
        DpoError: it is not.
    """
    if importlib.util.find_spec("trl") is None:
        raise DpoError(f"DPO needs TRL: run `uv pip install {TRL}` in this environment (the extra `dpo`)")


def read_pairs(file: Path, limit: int | None = None) -> list[Pair]:
    """Prompt, chosen and rejected of each row, as lists of messages.

    Raises:
        DpoError: there is no such file, it has other columns, or no row.
    """
    if not file.is_file():
        raise DpoError(f"there are no pairs {file}; make them with data_prep/sft.py kind=preference")
    if missing := missing_columns(file, PREFERENCE_SCHEMA):
        raise DpoError(f"{file} holds no preference pairs: {', '.join(missing)} missing or of another type")
    names = ("prompt", "chosen", "rejected")
    pairs = [{name: row[name] for name in names} for row in islice(read_rows(file), limit)]
    if not pairs:
        raise DpoError(f"{file} holds no pair")
    return pairs


def fitting(pairs: Sequence[Pair], tokenizer: Any, max_length: int | None) -> list[Pair]:
    """The pairs of which both chats have at most `max_length` tokens: TRL would cut the others without a word.

    Raises:
        DpoError: none is short enough.
    """
    if max_length is None:
        return list(pairs)

    def length(pair: Pair, answer: str) -> int:
        text = tokenizer.apply_chat_template([*pair["prompt"], *pair[answer]], tokenize=False)
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    kept = [pair for pair in pairs if max(length(pair, "chosen"), length(pair, "rejected")) <= max_length]
    if not kept:
        raise DpoError(f"no pair has at most training.max_length={max_length} tokens")
    return kept


def _dataset(pairs: Sequence[Pair]) -> Any:
    """The pairs as the trainer takes them."""
    from datasets import Dataset

    return Dataset.from_list(list(pairs))


def _save(trainer: Any, tokenizer: Any, settings: DpoSettings) -> None:
    """Write the trained policy in `save_dtype`; a sharded one is gathered first."""
    import torch

    state = trainer.accelerator.get_state_dict(trainer.model_wrapped)
    if not trainer.is_world_process_zero():
        return
    dtype = getattr(torch, settings.save_dtype)
    policy = trainer.accelerator.unwrap_model(trainer.model)
    policy.save_pretrained(settings.out, state_dict={name: value.to(dtype) for name, value in state.items()})
    tokenizer.save_pretrained(settings.out)
    config = settings.out / "config.json"  # says how the policy was trained, not how it is to be used
    told = json.loads(config.read_text(encoding="utf-8")) | {"dtype": settings.save_dtype, "use_cache": True}
    config.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def dpo_settings_from(config: Mapping[str, Any]) -> DpoSettings:
    """Settings from a plain dict, as hydra gives it.

    Raises:
        TypeError: a key is none of ours.
    """
    values = dict(config)
    pairs, out = (Path(values.pop(key)).expanduser() for key in ("pairs", "out"))
    metrics = values.pop("metrics", None)
    return DpoSettings(pairs=pairs, out=out, metrics=Path(metrics) if metrics else None, **values)


def _say(text: str) -> None:
    """Print a line, once among all processes of a training."""
    if os.environ.get("RANK", "0") == "0":
        print(f"dpo: {text}", flush=True)


@hydra.main(config_path="pkg://verl_sql.recipes.conf", config_name="dpo/reward_sql", version_base="1.3")
def main(config: DictConfig) -> None:
    """Train as the configuration says."""
    values: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    try:
        report = train_dpo(dpo_settings_from(values))
    except DpoError as error:
        raise SystemExit(f"dpo: {error}") from error
    _say(f"{values['out']}: {report}")


if __name__ == "__main__":
    main()
