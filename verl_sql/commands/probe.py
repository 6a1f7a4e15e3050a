"""`verl-sql probe`: what reward hacking earns under a reward function."""

import json
from dataclasses import asdict
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command `probe`."""

    @app.command()
    def probe(
        db_root: Annotated[str, typer.Option(help="Folder of databases.")],
        reward: Annotated[str, typer.Option(help="Paper, file or pkg://module.")] = "execution",
        databases: Annotated[int, typer.Option(help="Databases to probe, the first ones by name.")] = 2,
        timeout: Annotated[float, typer.Option(help="Seconds a query may run; one attack runs into it.")] = 1.0,
        as_json: Annotated[bool, typer.Option("--json", help="One JSON object for machines.")] = False,
    ) -> None:
        """Score completions that answer nothing beside an honest wrong answer.

        Exit status 1 if more than two attacks earn more than it.
        """
        from verl_sql.database.catalog import Catalog
        from verl_sql.database.introspect import read_schema
        from verl_sql.rewards.loading import load_reward
        from verl_sql.rewards.probe import exceptions, probes_of, run_probe

        catalog = Catalog(db_root)
        probes = [p for db in catalog.db_ids()[:databases] for p in probes_of(read_schema(catalog.path(db), db))]
        module = load_reward(reward)
        honest, lines = run_probe(module, reward, probes, {"db_root": db_root, "timeout": timeout})
        beaten = exceptions(honest, lines)
        if as_json:
            body = {"honest": asdict(honest), "attacks": [asdict(line) for line in lines]}
            typer.echo(json.dumps({**body, "exceptions": [line.name for line in beaten]}))
        else:
            for line in sorted([honest, *lines], key=lambda line: -line.mean):
                mark = "!" if line in beaten else "=" if line is honest else " "
                scores = f"mean {line.mean:7.4f}  highest {line.highest:7.4f}"
                typer.echo(f"{mark} {line.name:<28} {scores}  {', '.join(line.outcomes)}")
            typer.echo(f"{len(beaten)} of {len(lines)} attacks earn more than the honest wrong answer")
        raise typer.Exit(1 if len(beaten) > 2 else 0)
