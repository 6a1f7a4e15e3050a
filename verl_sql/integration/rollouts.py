"""Scored rollouts for offline training: N chains a question from a policy, each with its reward, as JSON lines.

A line names the question (`data_source`, `split`, `question_id`, `db_id`), holds the `completion`, whether it was
`finished`, its `score` and what it stands on (`acc`, `outcome`, `pred`, `n_steps`, `step_scores`); with `with_prompt`
also `input`, `output` and `gts`, as verl's dumps do. `data_prep/sft.py` reads the file for its kinds `rejection` and
`preference`. A run that was killed goes on after the last question whose lines are all there.
"""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from verl_sql.database.catalog import Catalog
from verl_sql.dataset.sft.questions import Question, read_questions
from verl_sql.generation.sampler import Completion, Prompt, Sampler, Sampling
from verl_sql.integration.rollout_scoring import Scoring, scored_rows
from verl_sql.prm.scoring import StepScorer

PART = 128
"""Questions that are sampled, scored and written at once."""

Line = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RolloutSettings:
    """What is sampled, and what its score is.

    Attributes:
        policy: the model's folder or name, or the endpoint's; part of what a file may be continued for.
        sampling: completions a question, temperature, length.
        scoring: how they are scored.
        prm: the process reward model's folder or name, nothing without one.
        questions: the first so many questions; None for all.
        with_prompt: whether lines also hold the prompt and the gold.
    """

    policy: str
    sampling: Sampling
    scoring: Scoring
    prm: str = ""
    questions: int | None = None
    with_prompt: bool = False


@dataclass(slots=True)
class RolloutCounts:
    """What came out: rollouts by outcome, and questions by what their rollouts say of each other."""

    outcomes: Counter[str] = field(default_factory=Counter)
    groups: Counter[str] = field(default_factory=Counter)
    score: float = 0.0
    right: float = 0.0
    cut: int = 0

    def add(self, lines: Sequence[Line]) -> None:
        """Count the rollouts of one question."""
        right = sum(line["acc"] for line in lines)
        self.outcomes.update(line["outcome"] for line in lines)
        self.groups["all_right" if right == len(lines) else "mixed" if right else "all_wrong"] += 1
        self.score += sum(line["score"] for line in lines)
        self.right += right
        self.cut += sum(not line["finished"] for line in lines)

    def as_dict(self) -> dict[str, Any]:
        """Plain values: numbers of questions and rollouts, means, the share of each outcome's rollouts, groups."""
        rollouts = self.outcomes.total()
        return {
            "questions": self.groups.total(),
            "rollouts": rollouts,
            "mean_score": round(self.score / max(rollouts, 1), 4),
            "accuracy": round(self.right / max(rollouts, 1), 4),
            "cut": self.cut,
            "outcomes": dict(sorted(self.outcomes.items())),
            "groups": dict(sorted(self.groups.items())),
        }


def sample_rollouts(
    sources: Sequence[Path],
    out: Path,
    settings: RolloutSettings,
    make_sampler: Callable[[], Sampler],
    make_scorer: Callable[[], StepScorer] | None = None,
) -> dict[str, Any]:
    """Write the rollouts of prepared questions, and a report beside them.

    Args:
        sources: parquet files in RL_SCHEMA.
        out: the JSON lines to write or to continue; `<stem>.report.json` beside it.
        settings: what to sample.
        make_sampler: loads the policy; called only if something is left to sample.
        make_scorer: loads the process reward model, likewise.

    Returns:
        The report.

    Raises:
        FileNotFoundError, ValueError: something the user must change; also when `out` is of other settings.
        DatabaseNotFound: there is no folder of databases.
        SamplingError: the model gave no completions.
    """
    catalog = Catalog(settings.scoring.db_root)
    every = chain.from_iterable(read_questions(source, catalog) for source in sources)
    questions = list(islice(every, settings.questions))
    if not questions:
        raise ValueError(f"no question in {', '.join(map(str, sources)) or 'no file'}")
    report = {"sources": [source.name for source in sources], "settings": _told(sources, settings)}
    note = out.with_suffix(".report.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    _check_same(note, out, report)
    _write(note, report)
    done = continue_after(out, questions, settings.sampling.n)
    if left := questions[done:]:
        scorer = make_scorer() if make_scorer else None
        _sample(left, out, settings, make_sampler(), scorer, done)
    report["counts"] = _counts(out).as_dict()
    _write(note, report)
    return report


def continue_after(out: Path, questions: Sequence[Question], n: int) -> int:
    """How many questions the file answers already, in order, with `n` lines each; what follows them is cut off.

    Raises:
        ValueError: its lines are of other questions.
    """
    if not out.is_file():
        return 0
    wanted = (question.key for question in questions for _ in range(n))
    kept, position, lines = 0, 0, 0
    with out.open("rb") as file:
        for raw, key in zip(file, wanted, strict=False):
            if not raw.endswith(b"\n"):
                break
            if _key(json.loads(raw)) != key:
                raise ValueError(f"{out} holds rollouts of other questions: name another file, or delete it")
            position, lines = position + len(raw), lines + 1
            kept = position if lines % n == 0 else kept
    os.truncate(out, kept)
    return lines // n


def _sample(
    questions: Sequence[Question],
    out: Path,
    settings: RolloutSettings,
    sampler: Sampler,
    scorer: StepScorer | None,
    done: int,
) -> None:
    """Sample, score and append part by part."""
    rest = iter(questions)
    with out.open("a", encoding="utf-8") as sink, _bar(done, len(questions)) as bar:
        while batch := list(islice(rest, PART)):
            for line in _lines(batch, settings, sampler, scorer):
                sink.write(json.dumps(line, ensure_ascii=False) + "\n")
            sink.flush()
            bar.update(len(batch))


def _bar(done: int, left: int) -> Any:
    """A progress bar; a line now and then where the output is no terminal."""
    return tqdm(desc="rollouts", unit=" questions", initial=done, total=done + left, mininterval=5.0)


def _lines(
    questions: Sequence[Question], settings: RolloutSettings, sampler: Sampler, scorer: StepScorer | None
) -> Iterator[Line]:
    """The lines of a batch of questions, in order."""
    groups = sampler.sample([Prompt(question.prompt) for question in questions], settings.sampling)
    answered = [(q, completion) for q, group in zip(questions, groups, strict=True) for completion in group]
    scored = scored_rows([(q, completion.text) for q, completion in answered], settings.scoring, scorer)
    for (question, completion), row in zip(answered, scored, strict=True):
        yield {**_line(question, completion, settings.with_prompt), **row}


def _line(question: Question, completion: Completion, with_prompt: bool) -> Line:
    """Who was asked what, and what was said."""
    source, _, rest = question.key.partition("/")
    line = {"data_source": source, "split": rest.partition("/")[0], "question_id": question.info["question_id"]}
    line |= {"db_id": question.info["db_id"], "completion": completion.text, "finished": completion.finished}
    if with_prompt:
        shown = "\n".join(f"{message['role']}\n{message['content']}" for message in question.prompt)
        line |= {"input": shown, "output": completion.text, "gts": question.gold}
    return line


def _key(line: Line) -> str:
    """The key of a line's question."""
    return f"{line['data_source']}/{line['split']}/{line['question_id']}"


def _counts(out: Path) -> RolloutCounts:
    """What the whole file holds."""
    counts = RolloutCounts()
    with out.open(encoding="utf-8") as lines:
        for _, group in groupby((json.loads(line) for line in lines), key=_key):
            counts.add(list(group))
    return counts


def _told(sources: Sequence[Path], settings: RolloutSettings) -> dict[str, Any]:
    """What the file depends on, as plain values: the settings, the questions' and the policy's content."""
    told = json.loads(json.dumps(asdict(settings), default=str))
    told["scoring"].pop("workers")
    names = [*map(str, sources), settings.policy, *filter(None, [settings.prm])]
    told["content"] = {name: fingerprint(Path(name)) for name in names}
    return told


def fingerprint(path: Path) -> str:
    """A digest of a file, or of the weights in a folder; empty for what is neither (a name on a hub, an address)."""
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path] if path.is_file() else []
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:16] if files else ""


def _check_same(note: Path, out: Path, report: dict[str, Any]) -> None:
    """See that a file that is there already was sampled as it would be now.

    Raises:
        ValueError: it was not.
    """
    if not out.exists():
        return
    known = json.loads(note.read_text(encoding="utf-8")) if note.is_file() else {}
    if known.get("settings") != report["settings"]:
        raise ValueError(f"{out} was sampled with other settings: name another file, or delete it")


def _write(file: Path, content: dict[str, Any]) -> None:
    """Write a report whole or not at all."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, file)
