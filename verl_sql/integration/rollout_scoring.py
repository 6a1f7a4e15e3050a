"""Scores of sampled chains for offline training (Reward-SQL §5.2): OR by execution, PR by the process reward model.

| mode | R |
|---|---|
| `rule_or` | OR: 1 when the result equals the gold's, else 0 |
| `prm` | PR: the mean of the step scores, 0 for SQL that breaks off or does not run |
| `prm+rule_or` | PR + OR |

The weights and OR are those of `reward_fns/reward_sql.py`, so that offline and online training mean the same by R.
The process reward model scores a whole batch at once, on the same rendering as in its training.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from math import fsum
from pathlib import Path
from typing import Any

from verl_sql.database.catalog import DatabaseNotFound
from verl_sql.database.executor import shared_executor
from verl_sql.dataset.sft.questions import Question
from verl_sql.prm.rendering import prompt_text, render_chain
from verl_sql.prm.scoring import StepScorer
from verl_sql.prm.stepping import execute_chains
from verl_sql.rewards.loading import load_reward
from verl_sql.sqltext.chain import split_chain

THREADS = 8


class RewardMode(StrEnum):
    """What R is made of."""

    RULE_OR = "rule_or"
    """The outcome alone."""
    PRM = "prm"
    """The process reward model alone."""
    PRM_RULE_OR = "prm+rule_or"
    """Both, added."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """How rollouts are scored.

    Attributes:
        mode: what R is made of.
        db_root: folder of the databases.
        comparator: which comparator decides OR.
        timeout: seconds a query may run.
        workers: processes that run queries; None takes all cores.
    """

    mode: RewardMode
    db_root: Path
    comparator: str = "bird_set"
    timeout: float = 30.0
    workers: int | None = None


def outcome_rows(tried: Sequence[tuple[Question, str]], scoring: Scoring) -> list[Mapping[str, Any]]:
    """For each completion what `reward_fns/reward_sql.py` says of it by execution alone, in order, several at once."""
    compute_score = load_reward("reward_sql").compute_score
    options = {
        "db_root": str(scoring.db_root),
        "comparator": scoring.comparator,
        "timeout": scoring.timeout,
        "workers": scoring.workers,
    }

    def one(pair: tuple[Question, str]) -> Mapping[str, Any]:
        question, text = pair
        source = question.key.partition("/")[0]
        return compute_score(source, text, question.gold, question.info, mode=RewardMode.RULE_OR.value, **options)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(one, tried))


def step_scores(tried: Sequence[tuple[Question, str]], scorer: StepScorer, scoring: Scoring) -> list[list[float]]:
    """For each (question, SQL) the scores of its whole steps, in order; nothing where there is no step.

    Every step is executed (`WITH c1 … cj SELECT * FROM cj`), equal prefixes once, and shown to the model with its
    result, equal chains of a question once.
    """
    chains = [split_chain(sql) for _, sql in tried]
    shown = [i for i, chain in enumerate(chains) if chain.steps]
    items = [(_database(tried[i][0]), chains[i]) for i in shown]
    results = execute_chains(shared_executor(workers=scoring.workers), items, timeout=scoring.timeout)
    texts = [
        render_chain(prompt_text(tried[i][0].prompt), chains[i], found).text
        for i, found in zip(shown, results, strict=True)
    ]
    distinct = list(dict.fromkeys(texts))
    told = dict(zip(distinct, scorer.score(distinct) if distinct else [], strict=True))
    scores: list[list[float]] = [[] for _ in tried]
    for i, text in zip(shown, texts, strict=True):
        scores[i] = [float(score) for score in told[text]]
    return scores


def _database(question: Question) -> Path:
    """The question's file.

    Raises:
        DatabaseNotFound: it is not there.
    """
    if question.database is None:
        raise DatabaseNotFound(f"no database {question.info['db_id']!r} for question {question.key}")
    return question.database


def process_reward(scores: Sequence[float], sql: str, executed: bool) -> float:
    """PR, the mean step score (Reward-SQL §5.1); 0 without a step, and for SQL that breaks off or does not run.

    >>> process_reward([0.5, 1.0], "WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM b", executed=True)
    0.75
    """
    return fsum(scores) / len(scores) if scores and executed and split_chain(sql).complete else 0.0


def scored_rows(
    tried: Sequence[tuple[Question, str]], scoring: Scoring, scorer: StepScorer | None = None
) -> list[Mapping[str, Any]]:
    """For each completion its `score` (R), `acc`, `outcome`, `pred`, `n_steps`, and `step_scores` where there is a PRM.

    Raises:
        ValueError: the mode asks for a process reward model and there is none.
    """
    if scoring.mode is not RewardMode.RULE_OR and scorer is None:
        raise ValueError(f"mode={scoring.mode} needs a process reward model: prm.folder=… or prm.base_url=…")
    rows = outcome_rows(tried, scoring)
    if scorer is None:
        return [_row(row, scoring.mode, 0.0) for row in rows]
    asked = [(question, row["pred"]) for (question, _), row in zip(tried, rows, strict=True)]
    return [
        _row(row, scoring.mode, process_reward(scores, row["pred"], row["executed"] == 1.0)) | {"step_scores": scores}
        for row, scores in zip(rows, step_scores(asked, scorer, scoring), strict=True)
    ]


def _row(row: Mapping[str, Any], mode: RewardMode, process: float) -> dict[str, Any]:
    """What is written of a completion; R is weighted as the reward function does in training."""
    of_process, of_outcome = load_reward("reward_sql").WEIGHTS[mode.value]
    kept = {key: row[key] for key in ("acc", "outcome", "pred", "n_steps")}
    return {"score": of_process * process + of_outcome * row["outcome_reward"], **kept}
