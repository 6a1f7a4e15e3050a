"""`verl-sql policies`: the inference runs of several policies in one table, with intervals and paired tests."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from verl_sql.evaluation.policies import Policy

HEADINGS = {
    "greedy": "greedy",
    "self_consistency": "self-consistency@{n}",
    "outcome_model": "outcome model@{n}",
    "prm_mean": "PRM@{n}",
    "prm_vote": "PRM's votes@{n}",
    "oracle": "pass@{n}",
}
QUADRANTS = {"high_right": "+PR/+OR", "high_wrong": "+PR/−OR", "low_wrong": "−PR/−OR", "low_right": "−PR/+OR"}


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def policies(
        runs: Annotated[list[str], typer.Argument(help="LABEL=FOLDER[,FOLDER…], folders of infer, one a seed.")],
        split: Annotated[str | None, typer.Option(help="Only the questions of this split.")] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
        out: Annotated[Path | None, typer.Option(help="Also write the table as JSON here.")] = None,
    ) -> None:
        """Compare policies, each by every way of choosing: accuracy, tests against the first policy, quadrants."""
        from verl_sql.evaluation.candidates import CandidatesError
        from verl_sql.evaluation.policies import compare_policies, write_table
        from verl_sql.evaluation.statistics import MissingPackageError

        try:
            table = compare_policies([read_run(text, split) for text in runs])
        except (CandidatesError, MissingPackageError) as error:
            typer.echo(f"verl-sql policies: {error}", err=True)
            raise typer.Exit(1) from None
        if out is not None:
            write_table(table, out)
        typer.echo(json.dumps(table, ensure_ascii=False, indent=2) if as_json else "\n".join(markdown(table)))


def read_run(text: str, split: str | None) -> "Policy":
    """`LABEL=FOLDER,FOLDER` as a policy.

    Raises:
        CandidatesError: it is written in another way, or the folders cannot be used.
    """
    from verl_sql.evaluation.candidates import CandidatesError
    from verl_sql.evaluation.policies import read_policy

    label, equals, folders = text.partition("=")
    if not (label and equals and folders):
        raise CandidatesError(f"name a policy as LABEL=FOLDER[,FOLDER…], not {text!r}")
    return read_policy(label, [Path(folder) for folder in folders.split(",")], split)


def markdown(table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of the Markdown tables: accuracy, changes against the first policy, tests of choices, quadrants."""
    seeds = f" of {table['seeds']} seeds, in brackets the seeds one by one" if table["seeds"] > 1 else ""
    yield f"Execution accuracy in percent with 95 % intervals, {table['questions']} questions{seeds}."
    yield ""
    yield from _accuracies(table)
    if table["against_first"]:
        yield ""
        yield from _against_first(table)
    yield ""
    yield from _choices(table)
    if any(row["quadrants"] for row in table["policies"].values()):
        yield ""
        yield from _quadrants(table)


def _accuracies(table: Mapping[str, Any]) -> Iterator[str]:
    """One row a policy, one column a way of choosing."""
    from verl_sql.commands.report import percent

    names = [name for name in HEADINGS if any(name in row["accuracy"] for row in table["policies"].values())]
    yield from _head(["policy", *(HEADINGS[name].format(n=table["n"]) for name in names)])
    for label, row in table["policies"].items():
        found = [row["accuracy"].get(name) for name in names]
        yield _line([label, *(f"{percent(one)}{_by_seed(one)}" if one else "" for one in found)])


def _by_seed(accuracy: Mapping[str, Any]) -> str:
    """The seeds one by one, nothing for a single one."""
    seeds = accuracy["by_seed"]
    return f" ({', '.join(f'{100 * share:.1f}' for share in seeds)})" if len(seeds) > 1 else ""


def _against_first(table: Mapping[str, Any]) -> Iterator[str]:
    """Each policy against the first, by way of choosing."""
    names = [name for name in HEADINGS if any(name in row for row in table["against_first"].values())]
    first = next(iter(table["policies"]))
    yield from _head([f"against {first}", *(HEADINGS[name].format(n=table["n"]) for name in names)])
    for label, row in table["against_first"].items():
        yield _line([label, *(change_text(row[name]) if name in row else "" for name in names)])


def _choices(table: Mapping[str, Any]) -> Iterator[str]:
    """Ways of choosing against each other, a column a policy."""
    policies = table["policies"]
    pairs = dict.fromkeys((test["from"], test["to"]) for row in policies.values() for test in row["paired"])
    yield from _head(["choice", *policies])
    for pair in pairs:
        tests = [{(test["from"], test["to"]): test for test in row["paired"]} for row in policies.values()]
        sides = " → ".join(HEADINGS[side].format(n=table["n"]) for side in pair)
        yield _line([sides, *(change_text(found[pair]) if pair in found else "" for found in tests)])


def _quadrants(table: Mapping[str, Any]) -> Iterator[str]:
    """Table 1 of the paper."""
    yield from _head(["policy", "choice", *(f"{name}, %" for name in QUADRANTS.values())])
    for label, row in table["policies"].items():
        for choice, shares in row["quadrants"].items():
            cells = [f"{100 * shares[name]:.1f}" for name in QUADRANTS]
            yield _line([label, HEADINGS[choice].format(n=table["n"]), *cells])


def change_text(change: Mapping[str, Any]) -> str:
    """`+12 −3, p = 0.035`."""
    return f"+{change['gained']} −{change['lost']}, p = {change['mcnemar_p']:.2g}"


def _head(cells: Sequence[str]) -> Iterator[str]:
    yield _line(cells)
    yield "|" + "---|" * len(cells)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
