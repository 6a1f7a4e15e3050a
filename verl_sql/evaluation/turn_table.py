"""What the turns of a refining policy do (Progress-SQL): right at once, right in the end, repairs that worked and hurt.

    python -m verl_sql.evaluation.turn_table RUN [--out turn_table.json]

Validation before and after training is read from verl's dumps, split by split: there the policy is told what its SQL
gave. The training steps are read from the metrics, the mean of the first and of the last few: there it is told a
diagnosis.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from verl_sql.evaluation.dumps import Completion, Question, pair, read_dump, read_questions
from verl_sql.evaluation.run_directory import MetricsLine, RunDirectory, open_run
from verl_sql.evaluation.statistics import wilson_interval

FEW = 3
"""Training steps that the first and the last row of training average."""
LOGGED = ("first_right", "repaired", "spoiled", "n_sql_turns")


@dataclass(frozen=True, slots=True)
class TurnRow:
    """One row of the table.

    Attributes:
        when: `before`, `after`, or which training steps.
        split: of the questions; `train` in training.
        feedback: what the policy was told.
        questions: how many; rollouts of one step in training, 0 where they are not known.
        first: share that was right at once.
        final: share that was right in the end.
        low, high: 95 % Wilson interval of `final`; equal to it in training.
        repaired: share that was wrong at once and right in the end.
        spoiled: share that was right at once and wrong in the end.
        turns: attempts a trajectory.
    """

    when: str
    split: str
    feedback: str
    questions: int
    first: float
    final: float
    low: float
    high: float
    repaired: float
    spoiled: float
    turns: float


def rows_of_run(path: Path) -> list[TurnRow]:
    """The table of a run.

    Raises:
        IncompleteRunError, DumpError: a file is missing, does not fit, or is not of Progress-SQL's reward.
    """
    run = open_run(path)
    questions = read_questions(run.evaluation_files)
    steps = {"before": min(run.dumps), "after": max(run.dumps)}
    found = [row for when, step in steps.items() for row in _validation(when, run.dumps[step], questions)]
    return found + _training(run)


def _validation(when: str, dump: Path, questions: Sequence[Question]) -> list[TurnRow]:
    """The rows of one validation."""
    logged = _logged(dump)
    by_split: dict[str, list[Completion]] = defaultdict(list)
    for question, completions in zip(questions, pair(read_dump(dump), questions, str(dump)), strict=True):
        by_split[question.split] += completions
    rows = []
    for split, found in by_split.items():
        means = {name: fmean(logged[c.uid, c.session][name] for c in found) for name in LOGGED}
        final = fmean(completion.acc for completion in found)
        interval = wilson_interval(final * len(found), len(found))
        rows.append(_row(when, split, "execution", len(found), final, (interval.low, interval.high), means))
    return rows


def _training(run: RunDirectory) -> list[TurnRow]:
    """The first and the last training steps."""
    lines = [line for line in run.metrics if all(f"reward/{name}/mean" in line.values for name in LOGGED)]
    if not lines:
        return []
    parts = {"first": lines[:FEW], "last": lines[-FEW:]}
    return [_steps(name, part) for name, part in parts.items()]


def _steps(name: str, lines: Sequence[MetricsLine]) -> TurnRow:
    """The mean of some training steps."""
    means = {key: fmean(line.values[f"reward/{key}/mean"] for line in lines) for key in (*LOGGED, "acc")}
    when = f"{name} steps ({lines[0].step} to {lines[-1].step})"
    return _row(when, "train", "training's", 0, means["acc"], (means["acc"], means["acc"]), means)


def _row(
    when: str, split: str, feedback: str, n: int, final: float, bounds: tuple[float, float], means: Mapping[str, float]
) -> TurnRow:
    """One row from its means."""
    shares = (means["repaired"], means["spoiled"], means["n_sql_turns"])
    return TurnRow(when, split, feedback, n, means["first_right"], final, *bounds, *shares)


def _logged(dump: Path) -> dict[tuple[str, int], dict[str, float]]:
    """What the reward function returned for each completion, by uid and session."""
    found = {}
    for line in dump.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            row = json.loads(line)
            uid, session, _ = str(row["uid"]).rsplit("_", 2)
            found[uid, int(session)] = {name: float(row[name]) for name in LOGGED}
    return found


def table(rows: Sequence[TurnRow]) -> str:
    """The rows as a Markdown table, shares in percent."""
    lines = [
        "| when | split | feedback | n | right at once | right in the end | 95 % | repaired | spoiled | turns |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        shares = [f"{share * 100:.1f}" for share in (row.first, row.final, row.repaired, row.spoiled)]
        bounds = f"{row.low * 100:.1f} to {row.high * 100:.1f}" if row.questions else "–"
        cells = [row.when, row.split, row.feedback, str(row.questions or "–"), *shares[:2], bounds, *shares[2:]]
        lines.append(f"| {' | '.join(cells)} | {row.turns:.2f} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `python -m verl_sql.evaluation.turn_table`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, help="JSON file to write too")
    options = parser.parse_args(argv)
    rows = rows_of_run(options.run)
    print(table(rows))
    if options.out:
        plain: list[dict[str, Any]] = [asdict(row) for row in rows]
        options.out.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
