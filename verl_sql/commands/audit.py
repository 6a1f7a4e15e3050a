"""`verl-sql audit`: may a training start on this parquet?

Stops it: a missing column, a database that is not there, a gold that does not run, a gold that as a prediction does not
score full marks under every reward function. Only told: golds that return nothing or are flagged, repeated questions,
prompts that hold their gold, chains that do not give the gold's result. Exit status 0 or 1 accordingly.
"""

import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from verl_sql.database.executor import Executor
    from verl_sql.database.gold_cache import GoldCache

# Reward function -> (a completion that gives SQL in its format, full marks for a single right turn).
REWARDS = {
    "execution": ("```sql\n{}\n```", 1.0),
    "reward_sql": ("```sql\n{}\n```", 1.0),
    "reasoning_sql": ("<reasoning>the gold</reasoning><answer>{}</answer>", 9.0),
    "think2sql": ("<think>the gold</think>\n<answer>{}</answer>", 1.0),
    "tabular_reasoning": ("<sql>{}</sql>", 4.0),
    "retoolsql": ("<think>the gold</think>\n<answer>{}</answer>", 3.8),
    "progress_sql": ("<answer>{}</answer>", 3.5),
}
SHOWN = 10


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with one row.

    Attributes:
        kind: what, in two or three words.
        question_id: whose.
        detail: what was seen.
        stops: whether training should not start with it.
    """

    kind: str
    question_id: str
    detail: str = ""
    stops: bool = True


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""
    app.command()(audit)


def audit(
    data: Annotated[Path, typer.Argument(help="Parquet of prompts.")],
    db_root: Annotated[Path | None, typer.Option(help="Folder of databases; VERL_SQL_DB_ROOT by default.")] = None,
    rewards: Annotated[str, typer.Option(help="Reward functions, separated by commas.")] = ",".join(REWARDS),
    timeout: Annotated[float, typer.Option(help="Seconds a query may run.")] = 30.0,
    gold_cache: Annotated[
        Path | None, typer.Option(help="golds.jsonl of data preparation; VERL_SQL_GOLD_CACHE by default.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also write every problem here, as JSON lines.")] = None,
) -> None:
    """Check a prepared parquet: every gold must score full marks; exit status 1 says do not train on it."""
    from verl_sql.dataset.parquet import RL_SCHEMA, missing_columns

    names = [name.strip() for name in rewards.split(",") if name.strip()]
    if unknown := sorted(set(names) - set(REWARDS)):
        raise typer.BadParameter(f"no reward function {', '.join(unknown)}; there are {', '.join(REWARDS)}")
    if not data.is_file():
        raise typer.BadParameter(f"{data} does not exist")
    if missing := missing_columns(data, RL_SCHEMA):
        typer.echo(f"{data}: missing or of another type: {', '.join(missing)}", err=True)
        raise typer.Exit(1)
    if gold_cache is not None and not gold_cache.is_file():
        raise typer.BadParameter(f"{gold_cache} does not exist")
    problems = list(find_problems(data, str(db_root) if db_root else None, names, timeout, gold_cache))
    for line in summary(problems):
        typer.echo(line)
    if report:
        report.write_text("".join(json.dumps(_as_dict(problem)) + "\n" for problem in problems), encoding="utf-8")
    stops = any(problem.stops for problem in problems)
    typer.echo("do not train on it" if stops else "training may start")
    raise typer.Exit(int(stops))


def find_problems(
    data: Path, db_root: str | None, rewards: list[str], timeout: float = 30.0, gold_cache: Path | None = None
) -> Iterator[Problem]:
    """Every problem of a parquet in RL_SCHEMA, row by row.

    Args:
        data: the file.
        db_root: the folder of databases; None takes VERL_SQL_DB_ROOT.
        rewards: names of REWARDS to try the golds with.
        timeout: seconds a query may run.
        gold_cache: results of golds, of which those known to fail are not run; None takes VERL_SQL_GOLD_CACHE.
    """
    from verl_sql.database.catalog import DatabaseNotFound, resolve_database
    from verl_sql.database.executor import shared_executor
    from verl_sql.database.gold_cache import chosen_gold_cache
    from verl_sql.dataset.parquet import read_rows

    executor, cache = shared_executor(timeout=timeout), chosen_gold_cache(gold_cache)
    seen: dict[tuple[str, str, str], str] = {}
    for row in read_rows(data):
        info = row["extra_info"]
        number = info["question_id"]
        yield from _text_problems(row, seen)
        if row["ability"] != "text2sql" or not row["reward_model"]["ground_truth"].strip():
            continue
        try:
            database = resolve_database(info["db_id"], db_root, info)
        except DatabaseNotFound as error:
            yield Problem("no database", number, str(error))
            continue
        failed = list(_gold_problems(executor, cache, database, row, timeout))
        yield from failed
        if not any(problem.stops for problem in failed):
            yield from _score_problems(row, rewards, {"db_root": db_root, "timeout": timeout})


def summary(problems: list[Problem]) -> list[str]:
    """One line a kind, those that stop training first, with its count and the first question ids."""
    kinds: dict[tuple[bool, str], list[Problem]] = {}
    for problem in problems:
        kinds.setdefault((not problem.stops, problem.kind), []).append(problem)
    lines = []
    for (tolerated, kind), found in sorted(kinds.items()):
        ids = ", ".join(problem.question_id for problem in found[:SHOWN]) + (", …" if len(found) > SHOWN else "")
        detail = f" ({found[0].detail})" if found[0].detail else ""
        lines.append(f"{'note' if tolerated else 'STOP'}  {kind}: {len(found)}: {ids}{detail}")
    return lines


def _text_problems(row: Mapping[str, Any], seen: dict[tuple[str, str, str], str]) -> Iterator[Problem]:
    """What a row's texts say without running anything."""
    info, gold = row["extra_info"], row["reward_model"]["ground_truth"].strip()
    number = info["question_id"]
    if not gold:
        yield Problem("no gold", number)
        return
    key = (info["db_id"], info["question"].casefold(), gold)
    if (earlier := seen.setdefault(key, number)) != number:
        yield Problem("repeated question", number, f"same as {earlier}", stops=False)
    if not row["prompt"] or row["prompt"][-1]["role"] != "user":
        yield Problem("no user turn in the prompt", number)
    if len(gold) > 30 and any(gold in message["content"] for message in row["prompt"]):
        yield Problem("prompt holds its gold", number, stops=False)
    for flag in json.loads(info["details"] or "{}").get("flags", []):
        yield Problem(f"flagged {flag}", number, stops=False)


def _gold_problems(
    executor: "Executor", cache: "GoldCache | None", database: Path, row: Mapping[str, Any], timeout: float
) -> Iterator[Problem]:
    """What running the gold and its chain says."""
    info, gold = row["extra_info"], row["reward_model"]["ground_truth"]
    number = info["question_id"]
    known = cache.failure(database, gold, timeout) if cache is not None else None
    execution = known or executor.execute_many([(database, gold)], timeout=timeout)[0]
    if not execution.ok:
        yield Problem(f"gold {execution.status}", number, execution.message)
        return
    if execution.is_empty or execution.all_null:
        yield Problem("gold returns nothing", number, stops=False)
    if chain := info["gold_chain"]:
        compared = executor.compare(database, gold, chain, timeout=timeout)
        if not compared.values["bird_set"]:
            reason = compared.pred.message or "another result"
            yield Problem("chain does not give the gold's result", number, reason, stops=False)


def _score_problems(row: Mapping[str, Any], rewards: list[str], options: Mapping[str, Any]) -> Iterator[Problem]:
    """Reward functions under which the gold does not score full marks.

    A gold that returns nothing cannot earn ReToolSQL's term for a non-empty result: its full marks are less then.
    """
    gold = row["reward_model"]["ground_truth"]
    for name in rewards:
        form, full = REWARDS[name]
        score = importlib.import_module(f"verl_sql.reward_fns.{name}").compute_score
        given = score(row["data_source"], form.format(gold), gold, row["extra_info"], **options)
        if name == "retoolsql" and not given["nonempty"]:
            full -= 0.1
        if given["acc"] != 1.0 or abs(given["score"] - full) > 1e-6:
            detail = f"{given['score']:g} of {full:g}, {given['outcome']}"
            yield Problem(f"gold below full marks in {name}", row["extra_info"]["question_id"], detail)


def _as_dict(problem: Problem) -> dict[str, Any]:
    """A problem for the report file."""
    return {name: getattr(problem, name) for name in Problem.__dataclass_fields__}
