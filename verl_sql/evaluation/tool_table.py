"""ReToolSQL's Table 4 of a run: accuracy with and without tools, before and after training, with what tools were for.

    python -m verl_sql.evaluation.tool_table RUN                      validation before and after training
    python -m verl_sql.evaluation.tool_table RUN --passes single samples --db-root D     passes of retoolsql_infer.sh

Read from verl's validation dumps. Questions that were asked without tools stand in a split that ends in `_no_tools`
(`data_prep/multi_turn.py mark=no_tools`). Of several samples a question, accuracy is their mean, beside it stand the
accuracy of the majority vote by execution result (self-consistency) and pass@n.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from verl_sql.database.catalog import Catalog
from verl_sql.database.executor import Executor
from verl_sql.evaluation.dumps import Completion, Question, pair, read_dump, read_questions
from verl_sql.evaluation.run_directory import open_run
from verl_sql.evaluation.selection import most_voted
from verl_sql.evaluation.statistics import wilson_interval
from verl_sql.rewards.trajectory import tool_facts

NO_TOOLS = "_no_tools"
LOGGED = ("repaired", "spoiled", "ran_out_turns", "ran_out_tokens")
"""What the reward function put into the dump beside `acc`, read as means."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of asking the questions of a split.

    Attributes:
        policy: `warm start`, `after RL`, or the name of the pass.
        split: of the questions, without the mark.
        tools: whether the policy had tools.
        questions: how many were asked.
        samples: answers a question.
        accuracy: mean over questions and samples.
        low, high: 95 % Wilson interval of it, questions as trials.
        with_call: share of the trajectories that call a tool.
        calls, turns: mean a trajectory.
        failed: share of the calls that did not end well.
        voted: accuracy of the majority vote over the samples, None for a single one.
        passed: share of the questions with a right sample (pass@n), None for a single one.
        logged: means of LOGGED where the dump has them.
    """

    policy: str
    split: str
    tools: bool
    questions: int
    samples: int
    accuracy: float
    low: float
    high: float
    with_call: float
    calls: float
    turns: float
    failed: float
    voted: float | None
    passed: float | None
    logged: Mapping[str, float]


Group = tuple[Question, tuple[Completion, ...]]
Rows = Mapping[tuple[str, int], Mapping[str, Any]]


def arms_of(policy: str, dump: Path, questions: Sequence[Question], catalog: Catalog | None = None) -> list[Arm]:
    """The arms of one validation dump, split by split.

    Args:
        policy: whose answers they are.
        dump: verl's file.
        questions: all that were asked.
        catalog: the databases, to vote by execution result; None leaves the vote out.

    Raises:
        DumpError: the dump cannot be read or paired.
    """
    groups = list(zip(questions, pair(read_dump(dump), questions, str(dump)), strict=True))
    rows = _rows(dump)
    by_split: dict[str, list[Group]] = defaultdict(list)
    for question, completions in groups:
        by_split[question.split].append((question, completions))
    return [_arm(policy, split, found, rows, catalog) for split, found in by_split.items()]


def _arm(policy: str, split: str, groups: Sequence[Group], rows: Rows, catalog: Catalog | None) -> Arm:
    """One arm's numbers."""
    answers = [completion for _, completions in groups for completion in completions]
    samples = max(len(completions) for _, completions in groups)
    accuracy = fmean(answer.acc for answer in answers)
    interval = wilson_interval(accuracy * len(groups), len(groups))
    tools = [tool_facts(answer.output) for answer in answers]
    calls = sum(found["tool_calls"] for found in tools)
    logged = [rows.get((answer.uid, answer.session), {}) for answer in answers]
    several = samples > 1
    return Arm(
        policy=policy,
        split=split.removesuffix(NO_TOOLS),
        tools=not split.endswith(NO_TOOLS),
        questions=len(groups),
        samples=samples,
        accuracy=accuracy,
        low=interval.low,
        high=interval.high,
        with_call=fmean(found["tool_calls"] > 0 for found in tools),
        calls=calls / len(answers),
        turns=fmean(found["turns"] for found in tools),
        failed=sum(found["tool_failed"] for found in tools) / calls if calls else 0.0,
        voted=fmean(_voted(groups, rows, catalog)) if several and catalog else None,
        passed=fmean(any(answer.acc for answer in completions) for _, completions in groups) if several else None,
        logged={name: fmean(row[name] for row in logged) for name in LOGGED if all(name in row for row in logged)},
    )


def _voted(groups: Sequence[Group], rows: Rows, catalog: Catalog) -> list[float]:
    """For each question whether the answer that most samples agree on, by its result, is right."""
    found = []
    with Executor() as executor:
        for question, completions in groups:
            database = catalog.path(question.db_id)
            sqls = [str(rows.get((c.uid, c.session), {}).get("pred") or "") for c in completions]
            runs = executor.execute_many([(database, sql) for sql in sqls], digest=True)
            votes = [run.digest if run.ok and sql else None for run, sql in zip(runs, sqls, strict=True)]
            found.append(completions[most_voted(votes)].acc)
    return found


def _rows(dump: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The lines of a dump by uid and session, for what the reward function returned beside `acc`."""
    found = {}
    for line in dump.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            row = json.loads(line)
            uid, session = [*str(row.get("uid", "")).rsplit("_", 2), "0"][:2]
            found[uid, int(session) if session.isdigit() else 0] = row
    return found


def table(arms: Sequence[Arm]) -> str:
    """The arms as a Markdown table."""
    lines = [
        "| policy | split | tools | EX % | 95 % | with a call | calls | turns | repaired | spoiled | SC | pass@n |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for arm in arms:
        shown = [
            *(arm.policy, arm.split, "yes" if arm.tools else "no", f"{arm.accuracy * 100:.1f}"),
            f"{arm.low * 100:.1f} to {arm.high * 100:.1f}",
            *(f"{arm.with_call * 100:.0f} %", f"{arm.calls:.2f}", f"{arm.turns:.2f}"),
            *(_percent(arm.logged.get("repaired")), _percent(arm.logged.get("spoiled"))),
            *(_percent(arm.voted), _percent(arm.passed)),
        ]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    """A share, or a dash where there is none."""
    return "–" if share is None else f"{share * 100:.1f}"


def arms_of_run(run: Path, passes: Sequence[str], db_root: str | None) -> list[Arm]:
    """The arms of a run's validations, or of its passes.

    Raises:
        IncompleteRunError, DumpError: a file is missing or does not fit.
        DatabaseNotFound: `db_root` is no folder.
    """
    catalog = Catalog(db_root) if db_root else None
    if passes:
        files = [run / name for name in json.loads((run / "run.json").read_text(encoding="utf-8"))["evaluation_files"]]
        questions = read_questions(files)
        dumps = {name: run / name / "validation" / "0.jsonl" for name in passes}
    else:
        directory = open_run(run)
        questions = read_questions(directory.evaluation_files)
        dumps = {"warm start": directory.dumps[0], "after RL": directory.dumps[max(directory.dumps)]}
    return [arm for policy, dump in dumps.items() for arm in arms_of(policy, dump, questions, catalog)]


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `python -m verl_sql.evaluation.tool_table`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--passes", nargs="*", default=[], help="folders of passes in the run; else before and after")
    parser.add_argument("--db-root", help="folder of databases, to vote by execution result")
    parser.add_argument("--out", type=Path, help="JSON file to write too")
    options = parser.parse_args(argv)
    arms = arms_of_run(options.run, options.passes, options.db_root)
    print(table(arms))
    if options.out:
        plain: list[dict[str, Any]] = [asdict(arm) for arm in arms]
        options.out.write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
