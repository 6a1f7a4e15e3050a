"""The console script `verl-sql`: collects the subcommands of `verl_sql.commands`, one module each."""

import importlib
import pkgutil

import typer

from verl_sql import commands


def build_app() -> typer.Typer:
    """The typer application with every subcommand registered, in alphabetical order."""
    app = typer.Typer(help="Score, prepare and inspect text-to-SQL data for verl.", no_args_is_help=True)
    for module in sorted(pkgutil.iter_modules(commands.__path__), key=lambda m: m.name):
        importlib.import_module(f"{commands.__name__}.{module.name}").register(app)

    @app.callback()
    def root() -> None:
        """Score, prepare and inspect text-to-SQL data for verl."""

    return app


def main() -> None:
    """Entry point of the console script."""
    build_app()()
