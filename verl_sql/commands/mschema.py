"""`verl-sql mschema`: print one database as the policy will see it."""

from pathlib import Path
from typing import Annotated

import typer

from verl_sql.schema.render import SchemaForm


def register(app: typer.Typer) -> None:
    """Add the subcommand to the application."""
    app.command()(mschema)


def mschema(
    db: Annotated[Path, typer.Option(help="SQLite file.")],
    descriptions: Annotated[Path | None, typer.Option(help="Folder of BIRD description CSVs.")] = None,
    form: Annotated[SchemaForm, typer.Option(help="Which text to print.")] = SchemaForm.MSCHEMA,
    values: Annotated[bool, typer.Option(help="Add what the descriptions say of the values.")] = False,
) -> None:
    """Print a database as M-Schema, enriched M-Schema, DDL or names only; problems of the CSVs go to stderr."""
    import sqlite3

    from verl_sql.database.introspect import read_schema
    from verl_sql.schema.descriptions import load_descriptions
    from verl_sql.schema.render import render_schema

    try:
        loaded = load_descriptions(descriptions, with_values=values) if descriptions else None
        for problem in loaded.problems(read_schema(db)) if loaded else ():
            typer.echo(problem, err=True)
        typer.echo(render_schema(db, form, loaded))
    except (FileNotFoundError, sqlite3.DatabaseError) as error:
        typer.echo(f"{db}: {error}", err=True)
        raise typer.Exit(1) from error
