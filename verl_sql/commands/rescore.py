"""`verl-sql rescore`: a rollout dump under another reward, and what that would change in training."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command `rescore`."""

    @app.command()
    def rescore(
        dump: Annotated[Path, typer.Argument(help="JSONL that verl wrote (rollout_data_dir or validation_data_dir).")],
        reward: Annotated[str, typer.Option(help="Paper, file or pkg://module.")],
        db_root: Annotated[str | None, typer.Option(help="Folder of databases; else VERL_SQL_DB_ROOT.")] = None,
        db_id: Annotated[str | None, typer.Option(help="Database of lines whose prompt names none.")] = None,
        timeout: Annotated[float, typer.Option(help="Seconds a query may run.")] = 30.0,
        out: Annotated[Path | None, typer.Option(help="Write each line's new dict here, one a line.")] = None,
        as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
    ) -> None:
        """Score a dump again; say how many group rankings and how many advantages' signs change."""
        from verl_sql.rewards.dump import BadDump, read_dump
        from verl_sql.rewards.loading import RewardNotFound, load_reward
        from verl_sql.rewards.rescore import rescore as rescore_lines
        from verl_sql.rewards.rescore import summarise

        try:
            lines, module = list(read_dump(dump, db_id)), load_reward(reward)
        except (BadDump, RewardNotFound, OSError) as error:
            raise typer.BadParameter(str(error)) from error
        rows = list(rescore_lines(lines, module, {"db_root": db_root, "timeout": timeout}))
        if out is not None:
            text = "".join(json.dumps({"line": r.line.number, "old_score": r.line.score, **r.row}) + "\n" for r in rows)
            out.write_text(text, encoding="utf-8")
        found = summarise(rows)
        if as_json:
            typer.echo(json.dumps(asdict(found)))
            return
        means = f"mean score {found.mean_old:.4f} -> {found.mean_new:.4f}"
        typer.echo(f"{found.rollouts} rollouts in {found.groups} groups; {means}")
        typer.echo(f"group rankings that change: {found.rankings_changed} of {found.groups}")
        typer.echo(f"advantages whose sign changes: {found.signs_changed} of {found.rollouts}")
        typer.echo(f"groups that lose their signal: {found.signal_lost}, that gain one: {found.signal_won}")
