"""`verl-sql report`: what a training run reached, from the files it left; writes summary.json and plot.png there."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table


TABLE_WIDTH = 100
"""Characters a line of the table may take: also where the output is no terminal, which rich takes for 80 wide."""


def register(app: typer.Typer) -> None:
    """Add the command `report`."""

    @app.command()
    def report(
        run_dirs: Annotated[list[Path], typer.Argument(help="Folders of finished runs, as the recipes write them.")],
        as_json: Annotated[bool, typer.Option("--json", help="Print each summary as JSON.")] = False,
        markdown: Annotated[bool, typer.Option("--markdown", help="Print one Markdown table of all runs.")] = False,
        lengths: Annotated[Path | None, typer.Option(help="Only draw chain length over steps into this PNG.")] = None,
    ) -> None:
        """Summarise a training run: accuracy before and after with intervals, reward, outcomes, a plot."""
        from verl_sql.evaluation.dumps import DumpError
        from verl_sql.evaluation.run_directory import IncompleteRunError
        from verl_sql.evaluation.statistics import MissingPackageError

        try:
            if lengths is not None:
                typer.echo("\n".join(write_lengths(run_dirs, lengths)))
                return
            summaries = [write_report(run_dir) for run_dir in run_dirs]
        except (IncompleteRunError, DumpError, MissingPackageError) as error:
            typer.echo(f"verl-sql report: {error}", err=True)
            raise typer.Exit(1) from None
        if markdown:
            typer.echo("\n".join(markdown_table(summaries)))
            return
        for summary, run_dir in zip(summaries, run_dirs, strict=True):
            if as_json:
                typer.echo(json.dumps(summary, ensure_ascii=False, indent=2))
            else:
                _print(summary, run_dir)


def write_report(run_dir: Path) -> dict[str, Any]:
    """Write `summary.json` and `plot.png` into a run directory; returns the summary.

    Raises:
        IncompleteRunError, DumpError: something is missing or does not fit together.
        MissingPackageError: scipy or matplotlib is not installed.
    """
    from verl_sql.evaluation.plots import draw_run
    from verl_sql.evaluation.run_directory import open_run
    from verl_sql.evaluation.stage_gains import draw_gains
    from verl_sql.evaluation.summary import summarize, write_summary

    run = open_run(run_dir)
    summary = summarize(run)
    write_summary(summary, run_dir / "summary.json")
    draw_run(run.metrics, summary, run_dir / "plot.png")
    if "best_of_n" in summary:
        draw_gains(summary, run_dir / "stages.png")
    return summary


def write_lengths(run_dirs: Sequence[Path], path: Path) -> list[str]:
    """Draw chain length and accuracy over the steps of runs; returns a line for each of them and what is drawn.

    Args:
        run_dirs: folders with a metrics.jsonl; finished or not.
        path: the PNG file.

    Raises:
        IncompleteRunError: one has no such file, or it is none of verl's.
        MissingPackageError: matplotlib is not installed.
    """
    from verl_sql.evaluation.length_plot import draw_lengths, length_table
    from verl_sql.evaluation.run_directory import read_metrics

    named_apart = len({run_dir.name for run_dir in run_dirs}) == len(run_dirs)
    runs = {d.name if named_apart else str(d): read_metrics(d / "metrics.jsonl") for d in run_dirs}
    draw_lengths(runs, path)
    logged = [row for row in length_table(runs) if row["first"] is not None]
    return [f"{row['run']}: {row['what']} {row['first']:.3f} -> {row['last']:.3f}" for row in logged] + [
        f"wrote {path}"
    ]


def result_sentence(name: str, group: Mapping[str, Any]) -> str:
    """One line: accuracy of a group before and after, and how sure the difference is."""
    before, after = percent(group["before"]), percent(group["after"])
    return (
        f"{name}: EX {before} -> {after} on {group['questions']} questions "
        f"({group['gained']} gained, {group['lost']} lost, McNemar p = {group['mcnemar_p']:.2g})"
    )


def gains_sentence(summary: Mapping[str, Any]) -> str:
    """One line: accuracy on the main split after each stage."""
    from verl_sql.evaluation.stage_gains import BARS, gains

    shown = (f"{BARS[name][0]} {percent(accuracy)}" for name, accuracy in gains(summary).items())
    return f"{summary['main_split']}, stage by stage: {', '.join(shown)}; wrote stages.png"


def markdown_table(summaries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The lines of a Markdown table: for each run the main split, its questions by exposure, and the other splits."""
    lines = ["| seed | questions | n | EX before | EX after | gained | lost | McNemar p |", "|" + "---|" * 8]
    for summary in summaries:
        groups = dict(_groups(summary))
        main = summary["main_split"]
        names = [main, f"{main}: cold start", f"{main}: not cold start", *(s for s in summary["by_split"] if s != main)]
        for name in names:
            if name in groups:
                group = groups[name]
                accuracy = (percent(group["before"]), percent(group["after"]))
                change = (group["gained"], group["lost"], f"{group['mcnemar_p']:.1g}")
                cells = (summary["seed"], name, group["questions"], *accuracy, *change)
                lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def percent(accuracy: Mapping[str, float]) -> str:
    """`58.7 [54.7, 62.5]`, in percent."""
    return f"{100 * accuracy['ex']:.1f} [{100 * accuracy['low']:.1f}, {100 * accuracy['high']:.1f}]"


def _print(summary: Mapping[str, Any], run_dir: Path) -> None:
    """The run's table, and the main result last."""
    from rich.console import Console

    console = Console(width=max(TABLE_WIDTH, Console().width), soft_wrap=True, highlight=False, markup=False)
    training, outcomes = summary["training"], summary["outcomes"]
    stages = ", ".join(f"{stage} {seconds:.0f} s" for stage, seconds in summary["seconds"].items())
    console.print(f"{summary['recipe']} ({summary['profile']}, seed {summary['seed']}): {stages}")
    console.print(_table(summary))
    for when in ("before", "after"):
        console.print(f"outcomes {when}: " + ", ".join(f"{name} {count}" for name, count in outcomes[when].items()))
    if training["final_reward"] is not None:
        rewards = f"{training['first_reward']:.3f} at the first, {training['final_reward']:.3f} at the last"
        console.print(f"{training['steps']} steps; mean reward {rewards}")
    console.print(f"wrote {run_dir / 'summary.json'} and {run_dir / 'plot.png'}")
    if "best_of_n" in summary:
        console.print(gains_sentence(summary))
    main = summary["main_split"]
    for split in sorted(summary["by_split"], key=lambda split: split == main):
        console.print(result_sentence(split, summary["by_split"][split]))


def _table(summary: Mapping[str, Any]) -> "Table":
    """Accuracy in percent of every group of questions."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("questions", no_wrap=True)
    for heading in ("n", "EX before, %", "EX after, %", "gained", "lost", "p"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, group in _groups(summary):
        counts = (str(group["gained"]), str(group["lost"]), f"{group['mcnemar_p']:.2g}")
        table.add_row(name, str(group["questions"]), percent(group["before"]), percent(group["after"]), *counts)
    return table


def _groups(summary: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The rows of the table."""
    yield "all", summary["all"]
    yield from summary["by_split"].items()
    main = summary["main_split"]
    for kind in ("by_exposure", "by_difficulty"):
        for name, group in summary[kind].items():
            yield f"{main}: {name.replace('_', ' ')}", group
