"""The line with a validation's accuracy: by split, with intervals, and no reason to stop when it cannot be made."""

import json
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows
from verl_sql.integration.shown_validation import ShownValidationMixin, validation_line


def evaluation_file(folder: Path, split: str, questions: int) -> Path:
    """A parquet with so many questions of a split."""
    rows = []
    for number in range(questions):
        example = Example(
            source="own", split=split, question_id=str(number), db_id="shop", question="", evidence="",
            gold_sql=f"SELECT {number}", gold_chain="", difficulty="", details={},
        )  # fmt: skip
        rows.append(rl_row(example, [{"role": "user", "content": f"{split} question {number}?"}], number))
    write_rows(folder / f"{split}.parquet", rows, RL_SCHEMA)
    return folder / f"{split}.parquet"


def write_dump(path: Path, right: dict[str, list[float]]) -> None:
    """verl's dump of one completion a question, `acc` as given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "input": f"user\n{split} question {n}?",
            "output": "",
            "gts": f"SELECT {n}",
            "acc": acc,
            "uid": f"{split}{n}_0_0",
        }
        for split, values in right.items()
        for n, acc in enumerate(values)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


class Trainer:
    """What the mixin extends, in verl's place: it writes a dump in the background, as verl does."""

    def __init__(self, config: DictConfig, right: dict[str, list[float]]) -> None:
        self.config, self.global_steps, self._right = config, 0, right
        self._dump_futures: list[Future[None]] = []
        self._executor = ThreadPoolExecutor(1)

    def _validate(self) -> dict[str, float]:
        target = Path(self.config.trainer.validation_data_dir, f"{self.global_steps}.jsonl")
        self._dump_futures.append(self._executor.submit(write_dump, target, self._right))
        return {"val-core/own/acc/mean@1": 0.5}


class ShowingTrainer(ShownValidationMixin, Trainer):
    """The two together."""


def trainer(tmp_path: Path, files: object, right: dict[str, list[float]]) -> ShowingTrainer:
    config = OmegaConf.create(
        {"trainer": {"validation_data_dir": str(tmp_path / "dumps")}, "data": {"val_files": files}}
    )
    return ShowingTrainer(config, right)


def test_accuracy_by_split(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(evaluation_file(tmp_path, split, 4)) for split in ("test", "unseen")]
    one = trainer(tmp_path, files, {"test": [1, 1, 0, 1], "unseen": [0, 0, 0, 0]})
    assert one._validate() == {"val-core/own/acc/mean@1": 0.5}
    assert capsys.readouterr().out == (
        "validation before training, EX in % [95 % interval]: "
        "test 75.0 [30.1, 95.4] of 4 questions; unseen 0.0 [0.0, 49.0] of 4 questions\n"
    )


def test_one_file_later_in_training(tmp_path: Path) -> None:
    file = evaluation_file(tmp_path, "dev", 2)
    write_dump(tmp_path / "8.jsonl", {"dev": [1, 0]})
    assert validation_line(tmp_path / "8.jsonl", [file], 8).startswith("validation after step 8, EX in %")


def test_foreign_evaluation_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = trainer(tmp_path, str(tmp_path / "none.parquet"), {"test": [1.0]})
    assert one._validate() == {"val-core/own/acc/mean@1": 0.5}
    assert capsys.readouterr().out.startswith("no accuracy of this validation to show: there is no evaluation file")
