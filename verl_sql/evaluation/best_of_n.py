"""Best-of-N on a prepared parquet (Reward-SQL §5.4): sample, execute, score, choose, measure.

Sampling and judging are two stages of their own, so that an engine that fills a GPU can be gone before the reward
models are loaded; both go on where a killed run stopped.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

from tqdm import tqdm

from verl_sql.database.catalog import Catalog
from verl_sql.database.executor import Executor
from verl_sql.database.limits import Limits
from verl_sql.dataset.sft.questions import Question, read_questions
from verl_sql.evaluation.best_of_n_summary import summarize
from verl_sql.evaluation.candidates import read_candidates
from verl_sql.evaluation.inference_folder import JUDGED, SAMPLED, InferenceFolder, fingerprint, write_json
from verl_sql.evaluation.judging import Block, Judges, judge_all
from verl_sql.evaluation.latency import Latency, generation_latency, judging_latency, merged
from verl_sql.evaluation.pass_at_k import sizes
from verl_sql.generation.sampler import Completion, Prompt, Sampler, Sampling
from verl_sql.prm.scoring import StepScorer

SAMPLED_AT_ONCE, JUDGED_AT_ONCE = 256, 64
"""Questions whose completions are sampled, and questions that are judged, before they are written."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inference:
    """What is run.

    Attributes:
        files: prepared parquet files, one after another.
        db_root: folder of their databases.
        policy: folder or name of the policy, or its endpoint; only its name and content are looked at here.
        sampling: of the samples; the greedy answer takes the same length and stops.
        prm, orm: folder or name of the reward models, empty without one; likewise.
        first: the first so many questions; None for all.
        timeout: seconds a query may run.
        workers: processes that run queries; None takes all cores.
        seed: of the policy's engine, noted here; an endpoint gets it with each request, in `sampling`.
        latency: questions a number of samples on which latency is measured; 0 leaves it out.
    """

    files: tuple[Path, ...]
    db_root: Path
    policy: str
    sampling: Sampling
    prm: str = ""
    orm: str = ""
    first: int | None = None
    timeout: float = 30.0
    workers: int | None = None
    seed: int = 0
    latency: int = 0

    @property
    def size(self) -> int:
        """Completions a question, the greedy one included."""
        return self.sampling.n + 1


def read_asked(run: Inference) -> list[Question]:
    """The questions with their databases.

    Raises:
        FileNotFoundError, ValueError: a file is missing or no prepared parquet, or a database is missing.
        DatabaseNotFound: the root is no folder.
    """
    catalog = Catalog(run.db_root)
    questions = list(islice((q for file in run.files for q in read_questions(file, catalog)), run.first))
    if not questions:
        raise ValueError(f"there is no question in {', '.join(map(str, run.files))}")
    for question in questions:
        if question.database is None:
            raise ValueError(f"the database {question.info['db_id']!r} is not under {run.db_root}")
    return questions


def sample_stage(run: Inference, out: Path, make_sampler: Callable[[], Sampler]) -> None:
    """Sample what the folder lacks: the greedy answer and n samples of every question, then the latency of sampling.

    Args:
        run: what to run.
        out: the folder.
        make_sampler: loads the policy; not called when nothing is missing.

    Raises:
        SettingsDifferError: the folder holds completions of other settings.
        SamplingError: the policy gave none.
    """
    folder, questions = InferenceFolder(out), read_asked(run)
    folder.continue_with(SAMPLED, _sampling_settings(run))
    left = questions[len(folder.sampled([q.key for q in questions], run.size)) :]
    timed = run.latency and not _latency_file(out, "generation").is_file()
    if not left and not timed:
        return
    since = perf_counter()
    sampler = make_sampler()
    folder.add_seconds(policy_loading=perf_counter() - since)
    with _bar("sampling", left, questions) as bar:
        for block in _parts(left, SAMPLED_AT_ONCE):
            since = perf_counter()
            folder.add_completions([question.key for question in block], _sampled(sampler, block, run.sampling))
            folder.add_seconds(generation=perf_counter() - since)
            bar.update(len(block))
    if timed:
        prompts = [Prompt(question.prompt) for question in _latency_questions(run, questions)]
        settings = [replace(run.sampling, n=n) for n in sizes(run.sampling.n)]
        write_json(_latency_file(out, "generation"), generation_latency(sampler, prompts, settings))


def judge_stage(
    run: Inference,
    out: Path,
    make_prm: Callable[[], StepScorer] | None = None,
    make_orm: Callable[[], StepScorer] | None = None,
) -> None:
    """Execute and score what is sampled and not judged yet, then the latency of both.

    Args:
        run: what to run.
        out: the folder, sampled.
        make_prm: loads the process reward model, None without one; not called when nothing is missing.
        make_orm: the outcome reward model, likewise.

    Raises:
        SettingsDifferError: the folder holds candidates of other settings.
        DatabaseUnusable, ExecutorError: the databases or the pool are at fault.
    """
    folder, questions = InferenceFolder(out), read_asked(run)
    folder.continue_with(JUDGED, _judging_settings(run))
    keys = [question.key for question in questions]
    completions = folder.sampled(keys, run.size)
    if len(completions) < len(questions):
        raise ValueError(f"{folder.completions} has {len(completions)} of {len(questions)} questions; sample the rest")
    block = list(zip(questions, completions, strict=True))
    left = block[folder.judged(keys, run.size) :]
    timed = run.latency and not _latency_file(out, "judging").is_file()
    if not left and not timed:
        return
    since = perf_counter()
    prm, orm = make_prm() if make_prm else None, make_orm() if make_orm else None
    folder.add_seconds(reward_model_loading=perf_counter() - since)
    with Executor(run.workers, run.timeout) as executor:
        _judge(folder, left, questions, Judges(executor, prm, orm))
    if timed:
        with Executor(run.workers, run.timeout, Limits(remembered_mb=0)) as executor:
            asked = _latency_questions(run, block)
            write_json(_latency_file(out, "judging"), judging_latency(asked, Judges(executor, prm, orm)))


def summary_stage(run: Inference, out: Path) -> dict[str, Any]:
    """Write and return the summary of a judged folder; with it `latency.json` where latency was measured.

    Raises:
        CandidatesError: the folder is not judged.
        MissingPackageError: scipy is not installed.
    """
    folder = InferenceFolder(out)
    answered = read_candidates(folder.candidates)
    found = {
        **{"policy": run.policy, "prm": run.prm, "orm": run.orm, "temperature": run.sampling.temperature},
        "seed": run.seed,
        "seconds": folder.totals("seconds"),
        "work": folder.totals("work"),
        **summarize(answered),
    }
    if latency := read_latency(out):
        write_json(out / "latency.json", latency)
        found["latency"] = latency
    write_json(folder.summary, found)
    return found


def read_latency(out: Path) -> Latency:
    """Median seconds a question by n and stage; empty where it was not measured."""
    files = [file for name in ("generation", "judging") if (file := _latency_file(out, name)).is_file()]
    return merged(*(json.loads(file.read_text(encoding="utf-8")) for file in files))


def _judge(folder: InferenceFolder, left: Block, questions: Sequence[Question], judges: Judges) -> None:
    """Judge and write block by block."""
    since = perf_counter()
    with _bar("judging", left, questions) as bar:
        for answered, work in judge_all(list(_parts(left, JUDGED_AT_ONCE)), judges):
            folder.add_candidates(answered)
            folder.add_seconds(**work.seconds, judging=perf_counter() - since)
            folder.add_work(**work.counts())
            since = perf_counter()
            bar.update(len(answered))


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Slices of at most `size`."""
    return (items[start : start + size] for start in range(0, len(items), size))


def _bar(name: str, left: Sequence[Any], questions: Sequence[Question]) -> Any:
    """A progress bar; a line now and then where the output is no terminal."""
    done = len(questions) - len(left)
    return tqdm(desc=name, unit=" questions", initial=done, total=len(questions), mininterval=5.0)


def _sampled(sampler: Sampler, block: Sequence[Question], sampling: Sampling) -> list[list[Completion]]:
    """The greedy completion and the samples of each question."""
    prompts = [Prompt(question.prompt) for question in block]
    greedy = sampler.sample(prompts, replace(sampling, n=1, temperature=0.0, top_p=1.0))
    samples = sampler.sample(prompts, sampling)
    return [[*one, *many] for one, many in zip(greedy, samples, strict=True)]


def _sampling_settings(run: Inference) -> dict[str, Any]:
    """What completions depend on."""
    sources = {f"questions of {file.name}": fingerprint(file) for file in run.files}
    policy = {"policy": run.policy, "policy's weights": fingerprint(run.policy)}
    return {**sources, **policy, **asdict(run.sampling), "seed": run.seed}


def _judging_settings(run: Inference) -> dict[str, Any]:
    """What candidates depend on beside their completions."""
    models = {"process reward model": run.prm, "outcome reward model": run.orm}
    weights = {f"{name}'s weights": fingerprint(model) for name, model in models.items() if model}
    return {**models, **weights, "timeout": run.timeout}


def _latency_questions(run: Inference, items: Sequence[T]) -> Sequence[T]:
    """The last ones: enough for every n."""
    return items[-run.latency * len(sizes(run.sampling.n)) :]


def _latency_file(out: Path, part: str) -> Path:
    return out / f"latency_{part}.json"
