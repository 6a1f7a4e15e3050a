"""`verl-sql explain`: how one completion's score came about, from extraction to the weighted terms."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from verl_sql.rewards.explain import Explanation
    from verl_sql.sqltext.turns import Turn


def register(app: typer.Typer) -> None:
    """Add the command `explain`."""

    @app.command()
    def explain(
        db: Annotated[str | None, typer.Option(help="Database file, or db_id under --db-root.")] = None,
        gold: Annotated[str | None, typer.Option(help="Gold SQL.")] = None,
        pred: Annotated[str | None, typer.Option(help="Predicted SQL, or a whole completion.")] = None,
        reward: Annotated[str, typer.Option(help="Paper, file or pkg://module.")] = "execution",
        db_root: Annotated[str | None, typer.Option(help="Folder of databases; else VERL_SQL_DB_ROOT.")] = None,
        dump: Annotated[Path | None, typer.Option(help="Rollout dump of verl to take the completion from.")] = None,
        line: Annotated[int, typer.Option(help="Line of the dump, from 1.")] = 1,
        timeout: Annotated[float, typer.Option(help="Seconds a query may run.")] = 30.0,
        as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
    ) -> None:
        """Say how a score came about: turns and tool calls if there are any, extraction, execution, differences, each
        term times its weight."""
        from rich.console import Console

        from verl_sql.rewards.explain import explain as explain_sample
        from verl_sql.rewards.loading import load_reward
        from verl_sql.rewards.settings import Settings
        from verl_sql.sqltext.turns import split_turns

        module = load_reward(reward)
        if not hasattr(module, "REWARD"):
            raise typer.BadParameter(f"{reward} has no table of terms (REWARD)", param_hint="--reward")
        completion, gold_sql, info, style = _input(db, gold, pred, dump, line)
        root = str(Path(db).resolve().parent) if db and Path(db).is_file() else db_root
        settings = Settings(db_root=root, timeout=timeout, style=style)
        found = explain_sample(module.REWARD, completion, gold_sql, info, settings)
        turns = split_turns(completion)
        if as_json:
            typer.echo(json.dumps(as_dict(found) | {"turns": turn_dicts(turns)}, ensure_ascii=False, default=str))
        else:
            console = Console(soft_wrap=True, highlight=False, markup=False)
            show_turns(turns, console)
            show(found, console)


def _input(
    db: str | None, gold: str | None, pred: str | None, dump: Path | None, line: int
) -> tuple[str, str, dict[str, Any], str | None]:
    """Completion, gold, extra_info, and where the answer stands (None: where the paper puts it)."""
    db_id = Path(db).stem if db and Path(db).is_file() else db
    if dump is not None:
        from verl_sql.rewards.dump import read_dump

        row = next((row for row in read_dump(dump, db_id) if row.number == line), None)
        if row is None:
            raise typer.BadParameter(f"{dump} has no line {line}", param_hint="--line")
        return row.completion, row.gold, {**row.extra_info, "db_id": db_id or row.db_id}, None
    if db_id is None or gold is None or pred is None:
        raise typer.BadParameter("give --db, --gold and --pred, or --dump")
    return pred, gold, {"db_id": db_id}, "auto"


def as_dict(found: "Explanation") -> dict[str, Any]:
    """An explanation as plain JSON data."""
    from verl_sql.rewards.verdict import verdict_dict

    answer, rows = found.sample.answer, found.rows
    return {
        "extraction": {"found_in": str(answer.found_in), "start": answer.start, "end": answer.end, "sql": answer.sql},
        "parse_error": found.parse_error or None,
        "gold": _execution(found.gold),
        "pred": _execution(found.pred),
        "comparator": found.sample.comparator,
        "comparators": dict(found.comparators),
        "rows": None if rows is None else {
            "summary": rows.summary(), "missing": rows.missing[:10], "extra": rows.extra[:10],
            "changed": [{"gold": c.gold, "pred": c.pred} for c in rows.changed[:10]],
        },
        "clauses": [
            {"path": d.path, "clause": d.clause, "missing": d.missing, "extra": d.extra} for d in found.clauses
        ],
        "items": {"missing": found.missing_items, "extra": found.extra_items},
        "terms": [
            {"name": t.name, "value": t.value, "weight": t.weight, "points": t.points, "meaning": t.meaning}
            for t in found.terms
        ],
        "verdict": verdict_dict(found.verdict),
        "changes": found.changes,
    }  # fmt: skip


def turn_dicts(turns: "Sequence[Turn]") -> list[dict[str, Any]]:
    """The turns of a trajectory as plain JSON data."""
    return [
        {"role": t.role, "text": t.text, "calls": [{"name": c.name, "arguments": dict(c.arguments)} for c in t.calls]}
        for t in turns
    ]


def show_turns(turns: "Sequence[Turn]", console: "Console") -> None:
    """Print a trajectory turn by turn: what was said, each call, each tool's answer; a single turn is not worth it."""
    if len(turns) < 2:
        return
    _head(console, "0. Turns")
    for number, turn in enumerate(turns, 1):
        for text in turn.text.splitlines():
            console.print(f"  {number} {turn.role}: {text}")
        for call in turn.calls:
            arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
            console.print(f"  {number} calls {call.name or 'nothing that can be read'}: {arguments}")


def _execution(run: Any) -> dict[str, Any]:
    """One execution in short."""
    return {
        "status": str(run.status), "rows": run.n_rows, "columns": run.columns, "seconds": run.seconds,
        "message": run.message,
    }  # fmt: skip


def show(found: "Explanation", console: "Console") -> None:
    """Print an explanation for people."""
    answer = found.sample.answer
    _head(console, "1. Extraction")
    console.print(f"  {answer.found_in}, characters {answer.start} to {answer.end}: {found.sample.sql or '(no SQL)'}")
    _head(console, "2. Parse")
    console.print(f"  {found.parse_error or 'ok'}")
    _head(console, "3. Execution")
    for name, run in (("gold", found.gold), ("pred", found.pred)):
        console.print(f"  {name}: {run.status}, {run.n_rows} rows, {run.seconds:.3f} s {run.message}".rstrip())
    _head(console, "4. Comparison")
    values = ", ".join(f"{k} {'-' if v is None else f'{v:g}'}" for k, v in found.comparators.items())
    console.print(f"  decided by {found.sample.comparator}; {values}")
    for text in str(found.rows).splitlines() if found.rows is not None else ():
        console.print(f"  {text}")
    _show_queries(found, console)
    _show_terms(found, console)


def _show_queries(found: "Explanation", console: "Console") -> None:
    """Print where the two queries differ."""
    _head(console, "5. Clauses")
    for d in found.clauses:
        console.print(f"  {d.path or '/'} {d.clause}: missing {list(d.missing)}, extra {list(d.extra)}")
    if not found.clauses:
        console.print("  the same structure")
    console.print(f"  schema items missing {list(found.missing_items)}, extra {list(found.extra_items)}")


def _show_terms(found: "Explanation", console: "Console") -> None:
    """Print the terms, the score and what would change it."""
    _head(console, "6. Score")
    for t in found.terms:
        console.print(f"  {t.name:<16} {t.value:7.4f} x {t.weight:<5g} = {t.points:7.4f}   {t.meaning}")
    verdict = found.verdict
    console.print(f"  {'score':<16} {'':7}   {'':<5} = {verdict.score:7.4f}   outcome {verdict.outcome}")
    _head(console, "7. What would change the outcome")
    for text in found.changes:
        console.print(f"  {text}")


def _head(console: "Console", text: str) -> None:
    """Print one heading."""
    console.print(text, style="bold")
