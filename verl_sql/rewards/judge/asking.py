"""From a sample to the judge's questions about it, and back."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from verl_sql.database.introspect import read_schema
from verl_sql.rewards.judge.config import JudgeConfig, judge_config
from verl_sql.rewards.judge.prompts import JudgeKind, JudgeQuestion
from verl_sql.rewards.judge.terms import warn_no_judge
from verl_sql.rewards.sample import Sample
from verl_sql.rewards.settings import Settings

log = logging.getLogger(__name__)


def with_judgement(reward: str, kinds: Sequence[JudgeKind], sample: Sample, settings: Settings) -> Sample:
    """The sample with the judge's values, waited for in this thread.

    Raises:
        JudgeError: no usable verdict came and `judge.on_failure` is `raise`.
    """
    config = _config(reward, kinds, settings)
    if config is None or not needs_judge(sample):
        return sample
    from verl_sql.rewards.judge.client import JudgeError, shared_judge

    judge = shared_judge(config)
    try:
        return replace(sample, judged={kind: judge.ask(question_of(kind, sample)) for kind in kinds})
    except JudgeError as error:
        return _failed(sample, config, error)


async def awith_judgement(reward: str, kinds: Sequence[JudgeKind], sample: Sample, settings: Settings) -> Sample:
    """`with_judgement` for an event loop; the kinds are asked at once."""
    config = _config(reward, kinds, settings)
    if config is None or not needs_judge(sample):
        return sample
    from verl_sql.rewards.judge.client import JudgeError, shared_judge

    judge = shared_judge(config)
    try:
        values = await asyncio.gather(*(judge.aask(question_of(kind, sample)) for kind in kinds))
    except JudgeError as error:
        return _failed(sample, config, error)
    judged: Mapping[str, float] = dict(zip(kinds, values, strict=True))
    return replace(sample, judged=judged)


def needs_judge(sample: Sample) -> bool:
    """Whether there is something to judge: SQL that is not right, beside a gold that ran."""
    return bool(sample.sql) and not sample.right and sample.final.comparison.gold.ok


def question_of(kind: JudgeKind, sample: Sample) -> JudgeQuestion:
    """What the judge is asked about a sample."""
    return JudgeQuestion(kind, sample.sql, sample.gold, sample.question, schema_text(sample.database))


def schema_text(database: Path) -> str:
    """Tables and columns of a database, one table a line."""
    state = database.stat()
    return _schema_text(str(database), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=512)
def _schema_text(database: str, mtime_ns: int, size: int) -> str:
    """The text behind a path; time and size are part of the key only."""
    tables = read_schema(database).tables
    return "\n".join(f"{t.name}({', '.join(f'{c.name} {c.declared_type}'.strip() for c in t.columns)})" for t in tables)


def _config(reward: str, kinds: Sequence[JudgeKind], settings: Settings) -> JudgeConfig | None:
    """The judge's configuration; a reward with judge terms and no judge says so once."""
    if not kinds:
        return None
    config = judge_config(settings.judge, settings.router)
    if config is None:
        warn_no_judge(reward)
    return config


def _failed(sample: Sample, config: JudgeConfig, error: Exception) -> Sample:
    """The sample marked as without a verdict, or the error, as configured."""
    if config.on_failure == "raise":
        raise error
    log.warning("sample skipped: %s", error)
    return replace(sample, unjudged=True)
