"""`verl-sql doctor`: is this machine ready for a training run? Each line says ok, or what to do."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from verl_sql.integration.health import Check


def register(app: typer.Typer) -> None:
    """Add the command `doctor`."""

    @app.command()
    def doctor(
        db_root: Annotated[
            str | None, typer.Option(help="Folder of databases to check; VERL_SQL_DB_ROOT if not given.")
        ] = None,
        profile: Annotated[str | None, typer.Option(help="cpu or gpu; found out if not given.")] = None,
        quick: Annotated[bool, typer.Option("--quick", help="Leave out what starts Ray and imports verl.")] = False,
    ) -> None:
        """Check Python, versions, device, plugin, registrations in a Ray worker and the database root.

        Exit status 1 if anything has to be fixed.
        """
        if profile not in (None, "cpu", "gpu"):
            raise typer.BadParameter("cpu or gpu", param_hint="--profile")
        failed = False
        for check in _checks(profile, db_root, quick):
            typer.echo(f"{check.state.value:<5} {check.name}: {check.text}")
            failed = failed or check.state.value == "fix"
        raise typer.Exit(1 if failed else 0)


def _checks(profile: str | None, db_root: str | None, quick: bool) -> "Iterator[Check]":
    """All checks, the slow ones last, each carried out when its line is printed."""
    from verl_sql.integration import health

    chosen = profile or health.detect_profile()
    yield health.check_python()
    yield health.check_device(chosen)
    yield from health.check_versions(chosen)
    yield from health.check_entry_points()
    yield health.check_database_root(db_root)
    if quick:
        yield health.Check("plugin", health.State.NOTE, "not loaded (--quick)")
    else:
        yield from health.check_registrations(chosen)
