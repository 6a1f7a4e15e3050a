"""Training a reward model on step labels: binary cross-entropy at the step tags, nowhere else (Reward-SQL §4.2).

    L = Σ_i −ξ_i log s_i − (1 − ξ_i) log(1 − s_i),   s_i = softmax probability of "correct" at tag i

A masked step (behind a wrong one) has no term. The outcome model (`outcome`) is trained alike, with one term a chain:
at the last tag, behind the final query, with the chain's outcome as its label.
"""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verl_sql.prm.encoding import encode_many
from verl_sql.prm.label_files import Record, read_labels
from verl_sql.prm.metrics import FINAL, ScoredStep, position_means, report
from verl_sql.prm.model import CORRECT, init_prm
from verl_sql.prm.progress import Progress
from verl_sql.prm.rendering import STEP_TAG

MASKED = -1.0
REPORT = "prm_report.json"


class TrainingError(RuntimeError):
    """Something the user has to change, in one sentence."""


@dataclass(frozen=True, slots=True)
class PrmTraining:
    """One training.

    Attributes:
        policy: the model to start from (body and tokenizer): folder or name on the hub.
        labels: JSON lines of data_prep/prm_labels.py.
        out: folder of the trained model; transformers and vLLM load it, `prm_report.json` lies in it.
        outcome: train an outcome model.
        score_final: show the final query, too, and learn the chain's outcome at its tag, as if it were a step. The
            paper does not; for chains whose final query does much of the work.
        soft: learn the share of right completions instead of "at least one was right" (labels made with `exact`).
        held_out: share of the questions that only the report sees.
        max_length: tokens of the longest chain; longer ones are left out and counted.
        dtype: of the weights in training.
        save_dtype: of the weights that are written.
        metrics: file for the loss of each logged step, one JSON object a line; None for none.
        training: keys of `transformers.TrainingArguments`.
    """

    policy: str
    labels: Path
    out: Path
    outcome: bool = False
    score_final: bool = False
    soft: bool = False
    held_out: float = 0.1
    max_length: int = 4096
    dtype: str = "float32"
    save_dtype: str = "float32"
    metrics: Path | None = None
    training: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chains:
    """Encoded chains.

    Attributes:
        rows: for each chain `input_ids` and `targets`, both of its length T; a target is P(correct) at a tag with a
            label, MASKED everywhere else.
        tags: for each chain the (position in the chain from 1 or FINAL, token position, hard label) of its labelled
            tags.
        too_long: chains that were left out.
    """

    rows: list[dict[str, list[Any]]]
    tags: list[list[tuple[int, int, int]]]
    too_long: int

    def labelled(self) -> list[tuple[int, int]]:
        """(position, label) of every labelled tag."""
        return [(position, label) for own in self.tags for position, _, label in own]


def train(settings: PrmTraining) -> dict[str, Any]:
    """Train and save; returns the report.

    Raises:
        TrainingError: the labels are missing or useless, or the policy is not there.
    """
    from transformers import PrinterCallback

    try:
        records = list(read_labels(settings.labels))
        model, tokenizer = init_prm(
            settings.policy, outcome=settings.outcome, score_final=settings.score_final, dtype=settings.dtype
        )
    except (FileNotFoundError, ValueError) as error:
        raise TrainingError(str(error)) from error
    learnt, held = split_by_question(records, settings.held_out, int(settings.training.get("seed", 0)))
    training, test = (encode_records(tokenizer, own, settings) for own in (learnt, held))
    _check(training, settings)
    progress = Progress(settings.metrics, "orm" if settings.outcome else "prm")
    progress.say(_set_sentence(training, test))
    trainer = _trainer(model, settings, training, progress)
    trainer.remove_callback(PrinterCallback)  # `progress` says what matters
    trainer.train()
    means = position_means(training.labelled())
    found = report(_score(trainer, test), means) if test.rows else {}
    told = {"training": _told(training, means), "held_out": found, "too_long": training.too_long + test.too_long}
    told = {**told, "seconds": progress.seconds, "outcome": settings.outcome, "soft": settings.soft}
    _save(trainer, tokenizer, settings, told)
    return told


def split_by_question(records: Sequence[Record], held_out: float, seed: int) -> tuple[list[Record], list[Record]]:
    """Records to learn from, and those of a share of the questions that are held out; no question is in both."""
    questions = sorted({record["question"] for record in records})
    random.Random(f"{seed}/held_out").shuffle(questions)
    held = set(questions[: round(held_out * len(questions))])
    return [r for r in records if r["question"] not in held], [r for r in records if r["question"] in held]


def encode_records(tokenizer: Any, records: Sequence[Record], settings: PrmTraining) -> Chains:
    """Records as the model reads them; those without any label are left out, too."""
    chosen = [(record, targets(record, settings)) for record in records]
    chosen = [(record, own) for record, own in chosen if any(target is not None for target, _ in own)]
    texts = [record["outcome_text" if settings.outcome or settings.score_final else "text"] for record, _ in chosen]
    rows: list[dict[str, list[Any]]] = []
    tags: list[list[tuple[int, int, int]]] = []
    too_long = 0
    for (ids, positions), (record, own) in zip(encode_many(tokenizer, texts), chosen, strict=True):
        if len(ids) > settings.max_length:
            too_long += 1
            continue
        values = [MASKED] * len(ids)
        marked = []
        for number, (at, (target, label)) in enumerate(zip(positions, own, strict=True), 1):
            if target is not None:
                values[at] = target
                is_step = not settings.outcome and number <= len(record["steps"])
                marked.append((number if is_step else FINAL, at, label))
        rows.append({"input_ids": ids, "targets": values})
        tags.append(marked)
    return Chains(rows, tags, too_long)


def targets(record: Record, settings: PrmTraining) -> list[tuple[float | None, int]]:
    """For each tag of a record's text (target, hard label); a target None has no term in the loss.

    The outcome model's text ends with the final query's tag, except for a query without CTE, which is that itself.
    """
    steps = [_target(step, settings.soft) for step in record["steps"]]
    outcome: list[tuple[float | None, int]] = [(float(record["outcome"]), record["outcome"])]
    has_final = record["outcome_text"].count(STEP_TAG) > len(steps)
    if settings.outcome:
        return [*[(None, 0)] * (len(steps) - 1 + has_final), *outcome]
    return [*steps, *outcome] if settings.score_final and has_final else steps


def _target(step: Mapping[str, Any], soft: bool) -> tuple[float | None, int]:
    """(target, hard label) of one step."""
    if step["label"] is None:
        return None, 0
    return (step["value"] if soft else float(step["label"])), step["label"]


def tag_loss(logits: Any, targets: Any) -> Any:
    """Mean binary cross-entropy over the tags that have a target.

    Args:
        logits: (B, T, 2), of "wrong" and "correct".
        targets: (B, T), P(correct) at tags with a label, MASKED elsewhere.
    """
    import torch

    at_tags = targets != MASKED
    chances = torch.log_softmax(logits[at_tags].float(), dim=-1)
    wanted = targets[at_tags]
    terms = wanted * chances[:, CORRECT] + (1 - wanted) * chances[:, 1 - CORRECT]
    return -terms.sum() / at_tags.sum().clamp(min=1)


def collate(rows: Sequence[Mapping[str, list[Any]]]) -> dict[str, Any]:
    """A batch of chains, padded on the right, where a causal model does not see it."""
    import torch

    width = max(len(row["input_ids"]) for row in rows)
    ids = torch.zeros(len(rows), width, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.long)
    wanted = torch.full((len(rows), width), MASKED)
    for number, row in enumerate(rows):
        length = len(row["input_ids"])
        ids[number, :length] = torch.tensor(row["input_ids"])
        mask[number, :length] = 1
        wanted[number, :length] = torch.tensor(row["targets"])
    return {"input_ids": ids, "attention_mask": mask, "targets": wanted}


def _trainer(model: Any, settings: PrmTraining, chains: Chains, progress: Progress) -> Any:
    """transformers' trainer with our loss."""
    from transformers import Trainer, TrainingArguments

    class TagTrainer(Trainer):  # type: ignore[misc,unused-ignore]
        """The loss at the tags."""

        def compute_loss(self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, **_: Any) -> Any:
            wanted = inputs.pop("targets")
            outputs = model(**inputs)
            loss = tag_loss(outputs.logits, wanted)
            return (loss, outputs) if return_outputs else loss

    fixed = {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, "remove_unused_columns": False}
    arguments = TrainingArguments(output_dir=str(settings.out), **{**fixed, **settings.training})
    trainer = TagTrainer(
        model=model, args=arguments, train_dataset=chains.rows, data_collator=collate, callbacks=[progress.callback()]
    )
    trainer.model_accepts_loss_kwargs = False  # each micro-batch's loss is a mean
    return trainer


def _score(trainer: Any, chains: Chains) -> list[ScoredStep]:
    """The labelled steps of held-out chains, scored by the trained model; on every process the same."""
    import torch

    model, found = trainer.model_wrapped.eval(), []
    size = trainer.args.per_device_eval_batch_size
    for start in range(0, len(chains.rows), size):
        batch = collate(chains.rows[start : start + size])
        inputs = {name: batch[name].to(trainer.args.device) for name in ("input_ids", "attention_mask")}
        with torch.inference_mode():
            correct = model(**inputs).logits.float().softmax(-1)[..., CORRECT].cpu()
        for row, tags in zip(correct, chains.tags[start : start + size], strict=True):
            found += [ScoredStep(position, label, float(row[at])) for position, at, label in tags]
    return found


def _save(trainer: Any, tokenizer: Any, settings: PrmTraining, told: Mapping[str, Any]) -> None:
    """Write the model in `save_dtype`, its tokenizer and the report; a sharded model is gathered first."""
    import torch

    state = trainer.accelerator.get_state_dict(trainer.model_wrapped)
    if not trainer.is_world_process_zero():
        return
    dtype = getattr(torch, settings.save_dtype)
    model = trainer.accelerator.unwrap_model(trainer.model)
    model.save_pretrained(settings.out, state_dict={name: value.to(dtype) for name, value in state.items()})
    tokenizer.save_pretrained(settings.out)
    config = settings.out / "config.json"
    changed = json.loads(config.read_text(encoding="utf-8")) | {"dtype": settings.save_dtype}
    config.write_text(json.dumps(changed, indent=2) + "\n", encoding="utf-8")
    (settings.out / REPORT).write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


def _check(chains: Chains, settings: PrmTraining) -> None:
    """Raise when there is nothing to learn."""
    labels = {label for _, label in chains.labelled()}
    if len(labels) < 2:
        raise TrainingError(
            f"{settings.labels}: its labels are all alike ({len(chains.rows)} chains of at most {settings.max_length} "
            "tokens); make labels for more questions"
        )


def _told(chains: Chains, means: Mapping[int, float]) -> dict[str, Any]:
    """Size and balance of the training set."""
    labels = [label for _, label in chains.labelled()]
    balance = {str(position or "final"): round(mean, 4) for position, mean in means.items()}
    return {
        "chains": len(chains.rows),
        "steps": len(labels),
        "correct": sum(labels) / len(labels),
        "by_position": balance,
    }


def _set_sentence(training: Chains, test: Chains) -> str:
    labels = [label for _, label in training.labelled()]
    share = sum(labels) / len(labels)
    return (
        f"{len(training.rows)} chains with {len(labels)} labelled steps, {share:.0%} of them correct; "
        f"{len(test.rows)} chains held out, {training.too_long + test.too_long} left out as too long"
    )
