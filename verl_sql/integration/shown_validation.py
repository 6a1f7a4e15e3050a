"""Accuracy of each validation in one line as soon as it is over: the first result that a run shows, before it trains.

A mixin for verl 0.9.1's V1 trainers: it extends their private `_validate` (verl/trainer/ppo/v1/trainer_base.py), since
the public hook `on_validate_end` comes before the metrics are known and before the completions are written.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

from omegaconf import DictConfig

from verl_sql.evaluation.dumps import Completion, DumpError, pair, read_dump, read_questions
from verl_sql.evaluation.statistics import MissingPackageError, wilson_interval


class ShownValidationMixin:
    """Prints the accuracy of each validation whose completions are written (`trainer.validation_data_dir`)."""

    config: DictConfig
    global_steps: int
    _dump_futures: list[Future[None]]

    def _validate(self) -> dict[str, float]:
        """verl's validation; an evaluation file that is not in our schema is no reason to stop."""
        metrics: dict[str, float] = super()._validate()  # type: ignore[misc]
        folder, files = self.config.trainer.get("validation_data_dir"), self.config.data.val_files
        if folder:
            for written in self._dump_futures:
                written.result()
            paths = [Path(file) for file in ([files] if isinstance(files, str) else files)]
            try:
                print(validation_line(Path(folder, f"{self.global_steps}.jsonl"), paths, self.global_steps), flush=True)
            except (DumpError, MissingPackageError) as error:
                print(f"no accuracy of this validation to show: {error}", flush=True)
        return metrics


def validation_line(dump: Path, files: Sequence[Path], step: int) -> str:
    """`validation before training: test 58.3 [54.3, 62.2] of 600 questions, …`: EX in percent, 95 % Wilson intervals.

    Args:
        dump: verl's validation dump of the step.
        files: the evaluation parquet files, in RL_SCHEMA.
        step: the training step it was made after; 0 for none.

    Raises:
        DumpError: the dump cannot be read, or it and the files do not hold the same questions.
    """
    questions = read_questions(files)
    answered = list(zip(questions, pair(read_dump(dump), questions, str(dump)), strict=True))
    splits = dict.fromkeys(question.split for question in questions)
    shown = [
        _accuracy(split, [answers for question, answers in answered if question.split == split]) for split in splits
    ]
    when = f"after step {step}" if step else "before training"
    return f"validation {when}, EX in % [95 % interval]: {'; '.join(shown)}"


def _accuracy(split: str, answers: Sequence[Sequence[Completion]]) -> str:
    """One split's accuracy as text; of several completions a question their mean counts."""
    right = sum(sum(completion.acc > 0.5 for completion in each) / len(each) for each in answers)
    interval = wilson_interval(right, len(answers))
    low, high = 100 * interval.low, 100 * interval.high
    return f"{split} {100 * right / len(answers):.1f} [{low:.1f}, {high:.1f}] of {len(answers)} questions"
