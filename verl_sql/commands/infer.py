"""`verl-sql infer`: best-of-N with every way of choosing, on a prepared parquet; resumable."""

import multiprocessing
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.table import Table

    from verl_sql.evaluation.best_of_n import Inference
    from verl_sql.evaluation.served_models import Served

LABELS = {
    "greedy": "greedy",
    "first_executable": "first executable",
    "self_consistency": "self-consistency",
    "outcome_model": "outcome model",
    "prm_mean": "PRM, mean of steps",
    "prm_min": "PRM, least step",
    "prm_product": "PRM, product of steps",
    "prm_last": "PRM, last step",
    "outcome_vote": "outcome model's votes",
    "prm_vote": "PRM's votes",
    "oracle": "oracle (pass@n)",
}
TABLE_WIDTH = 100


class InferError(Exception):
    """The run cannot go on; the message is one sentence."""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def infer(
        files: Annotated[list[Path], typer.Argument(help="Prepared parquet files (data_prep).")],
        out: Annotated[Path, typer.Option(help="Folder to write or to continue.")],
        db_root: Annotated[Path, typer.Option(envvar="VERL_SQL_DB_ROOT", help="Folder of the databases.")],
        model: Annotated[str, typer.Option(help="Policy to load with vLLM: folder or hub name.")] = "",
        base_url: Annotated[str, typer.Option(help="Or an OpenAI-compatible endpoint, ending in /v1.")] = "",
        served_name: Annotated[str, typer.Option(help="The policy's name at the endpoint.")] = "",
        prm: Annotated[str, typer.Option(help="Process reward model: folder (with --prm-url: of its tokenizer).")] = "",
        prm_url: Annotated[str, typer.Option(help="A server of it that answers /pooling.")] = "",
        orm: Annotated[str, typer.Option(help="Outcome reward model, likewise.")] = "",
        orm_url: Annotated[str, typer.Option(help="A server of it.")] = "",
        scorer: Annotated[str, typer.Option(help="What loads reward models here: transformers or vllm.")] = (
            "transformers"
        ),
        n: Annotated[int, typer.Option("--n", "-n", min=1, help="Samples a question.")] = 32,
        temperature: Annotated[float, typer.Option(min=0.0, help="Of the samples.")] = 1.0,
        top_p: Annotated[float, typer.Option(min=0.0, max=1.0, help="Of the samples.")] = 1.0,
        max_tokens: Annotated[int, typer.Option(min=1, help="Longest completion in tokens.")] = 1024,
        seed: Annotated[int, typer.Option(help="Of the sampling.")] = 0,
        engine: Annotated[list[str] | None, typer.Option(help="KEY=VALUE for vllm.LLM of the policy; repeat.")] = None,
        scorer_engine: Annotated[list[str] | None, typer.Option(help="The same for reward models.")] = None,
        questions: Annotated[int | None, typer.Option(min=1, help="The first so many questions.")] = None,
        timeout: Annotated[float, typer.Option(min=0.001, help="Seconds a query may run.")] = 30.0,
        workers: Annotated[int | None, typer.Option(min=1, help="Processes that run queries.")] = None,
        latency: Annotated[int, typer.Option(min=0, help="Measure latency with so many questions an n.")] = 0,
    ) -> None:
        """Sample n answers a question, execute and score them, choose in every way, report accuracy and latency."""
        from verl_sql.evaluation.best_of_n import Inference
        from verl_sql.evaluation.served_models import Served, check_served, engine_arguments
        from verl_sql.generation.sampler import Sampling

        try:
            policy = Served(model, base_url, served_name, engine_arguments(engine or []))
            models = [
                Served(folder, url, engine=engine_arguments(scorer_engine or []), kind=scorer)
                for folder, url in ((prm, prm_url), (orm, orm_url))
            ]
            check_served(policy, models)
            sampling = Sampling(n, temperature, top_p, max_tokens, seed if base_url else None)
            run = Inference(
                tuple(files), db_root, str(policy), sampling, prm=str(models[0]), orm=str(models[1]), first=questions,
                timeout=timeout, workers=workers, seed=seed, latency=latency,
            )  # fmt: skip
            summary = run_inference(run, out, policy, *models)
        except expected_errors() as error:
            typer.echo(f"verl-sql infer: {error}", err=True)
            raise typer.Exit(1) from None
        print_summary(summary, out)


def run_inference(run: "Inference", out: Path, policy: "Served", prm: "Served", orm: "Served") -> dict[str, Any]:
    """All stages; the summary. A policy that is loaded here lives in a process of its own, which ends before judging.

    Raises:
        InferError: sampling failed in its process, which has said why.
        Others: as the stages of `verl_sql.evaluation.best_of_n`.
    """
    from verl_sql.evaluation.best_of_n import judge_stage, sample_stage, summary_stage
    from verl_sql.evaluation.inference_plots import draw_accuracy_over_n, draw_latency
    from verl_sql.evaluation.served_models import make_sampler, make_scorer

    if policy.url:
        sample_stage(run, out, partial(make_sampler, policy, run.seed))
    else:
        _in_a_process(sample_in_process, run, out, policy)
    makers = [partial(make_scorer, served) if str(served) else None for served in (prm, orm)]
    judge_stage(run, out, *makers)
    summary = summary_stage(run, out)
    draw_accuracy_over_n(summary, out / "accuracy_over_n.png")
    if "latency" in summary:
        draw_latency(summary, out / "latency.png")
    return summary


def sample_in_process(run: "Inference", out: Path, policy: "Served") -> None:
    """The sampling stage as the whole of a process; its exit status tells."""
    from verl_sql.evaluation.best_of_n import sample_stage
    from verl_sql.evaluation.served_models import make_sampler

    try:
        sample_stage(run, out, partial(make_sampler, policy, run.seed))
    except expected_errors() as error:
        typer.echo(f"verl-sql infer: {error}", err=True)
        raise SystemExit(1) from None


def print_summary(summary: Mapping[str, Any], out: Path) -> None:
    """The table of a run, what its samples are like, and where the time went."""
    from rich.console import Console

    from verl_sql.commands.report import percent

    console = Console(width=max(TABLE_WIDTH, Console().width), soft_wrap=True, highlight=False, markup=False)
    console.print(f"{summary['questions']} questions, {summary['n']} samples each at T = {summary['temperature']:g}")
    console.print(_table(summary))
    for test in summary["paired"]:
        sides = " -> ".join(LABELS[test[side]] for side in ("from", "to"))
        console.print(f"{sides}: {test['gained']} gained, {test['lost']} lost, McNemar p = {test['mcnemar_p']:.2g}")
    for name, shares in summary["quadrants"].items():
        told = ", ".join(f"{place.replace('_', ' ')} {100 * share:.1f}" for place, share in shares.items())
        console.print(f"PR/OR quadrants of {LABELS[name]}, %: {told}")
    for name, found in summary["separation"].items():
        told = f"{found['tied']} tied, {found['same_steps']} with the same steps"
        console.print(f"{LABELS[name]}: AUC {found['auc']:.3f} on {found['pairs']} pairs of right and wrong, {told}")
    console.print(_samples_sentence(summary))
    console.print("seconds: " + ", ".join(f"{name} {value:.1f}" for name, value in summary["seconds"].items()))
    for size, stages in summary.get("latency", {}).items():
        told = ", ".join(f"{stage} {seconds:.3f}" for stage, seconds in stages.items())
        console.print(f"one question, {size} samples: {told} s")
    console.print(f"wrote {out / 'summary.json'} and {out / 'accuracy_over_n.png'}")
    best = "prm_mean" if "prm_mean" in summary["accuracy"] else "self_consistency"
    for name in ("greedy", best):
        console.print(f"{LABELS[name]}: EX {percent(summary['accuracy'][name])}")


def _table(summary: Mapping[str, Any]) -> "Table":
    """Accuracy in percent of every way of choosing, with all samples and with fewer."""
    from rich import box
    from rich.table import Table

    from verl_sql.commands.report import percent

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1))
    table.add_column("choice", no_wrap=True)
    table.add_column("EX, %", justify="right", no_wrap=True)
    sizes = list(summary["accuracy_over_n"]["oracle"])
    for size in sizes[:-1]:
        table.add_column(f"n = {size}", justify="right", no_wrap=True)
    for name, label in LABELS.items():
        if name in summary["accuracy"]:
            fewer = summary["accuracy_over_n"].get(name, {})
            cells = [f"{100 * fewer[size]:.1f}" if size in fewer else "" for size in sizes[:-1]]
            table.add_row(label, percent(summary["accuracy"][name]), *cells)
    return table


def _samples_sentence(summary: Mapping[str, Any]) -> str:
    found, work = summary["candidates"], summary["work"]
    parts = [f"samples: {100 * summary['sample_accuracy']:.1f} % right, {found['steps']:.2f} steps"]
    parts.append(f"{found['different_queries']:.1f} different queries and {found['different_results']:.1f} results")
    if work.get("prefixes"):
        parts.append(f"{100 * work['distinct_prefixes'] / work['prefixes']:.0f} % of the steps are different prefixes")
    parts.append(", ".join(f"{status} {count}" for status, count in found["statuses"].items()))
    return "; ".join(parts)


def _in_a_process(target: Callable[..., None], *arguments: Any) -> None:
    """Run a function in a fresh process and wait for it.

    Raises:
        InferError: it failed.
    """
    process = multiprocessing.get_context("spawn").Process(target=target, args=arguments)
    process.start()
    process.join()
    if process.exitcode:
        raise InferError(f"sampling ended with status {process.exitcode}")


def expected_errors() -> tuple[type[Exception], ...]:
    """What ends a run with one sentence."""
    from verl_sql.database.faults import DatabaseNotFound, DatabaseUnusable, ExecutorError
    from verl_sql.evaluation.statistics import MissingPackageError
    from verl_sql.generation.sampler import SamplingError
    from verl_sql.prm.served import PRMUnavailable

    ours: tuple[type[Exception], ...] = (
        PRMUnavailable,
        InferError,
        DatabaseNotFound,
        DatabaseUnusable,
        ExecutorError,
        SamplingError,
        MissingPackageError,
    )
    return *ours, FileNotFoundError, ValueError
