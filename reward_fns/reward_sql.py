"""Reward-SQL (chains of CTEs), outcome part: OR = 1 when the chain's result equals the gold's, else 0.

| mode | R_i | paper |
|---|---|---|
| `rule_or` | OR, the rule-based outcome reward | §5.3, Table 5 |

| term | value | weight |
|---|---|---|
| outcome_reward | OR: 1 if the results match by the comparator, default `bird_set` | 1 |

Range {0, 1}. `n_steps` is K, the number of CTEs (a query without CTE is one step, itself). The answer is a bare or a
fenced chain. A sample: gold `SELECT count(*) FROM singer`, completion
`WITH a AS (SELECT * FROM singer) SELECT count(*) FROM a` -> OR = 1, K = 1, score 1.0.

Use: `reward.custom_reward_function.path=<this file>` (or `pkg://verl_sql.reward_fns.reward_sql`), `name=compute_score`;
`reward_kwargs`: mode, db_root, timeout, comparator, style, on_gold_error, workers (see verl_sql.rewards.settings).
"""

from collections.abc import Mapping
from typing import Any

from verl_sql.rewards.execution import execution
from verl_sql.rewards.reward import Reward, Term
from verl_sql.rewards.sample import Sample
from verl_sql.rewards.settings import Settings
from verl_sql.rewards.verdict import verdict_dict
from verl_sql.sqltext.chain import count_steps
from verl_sql.sqltext.extract import AnswerStyle

MODES = ("rule_or",)


def n_steps(sample: Sample) -> float:
    """K, the number of steps of the chain; 0 without an answer."""
    return float(count_steps(sample.sql)) if sample.sql else 0.0


REWARD = Reward(
    name="reward_sql",
    style=AnswerStyle.AUTO,
    terms={"outcome_reward": Term(1.0, execution)},
    facts={"n_steps": n_steps},
)


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    mode: str = "rule_or",
    **kwargs: Any,
) -> dict[str, Any]:
    """Score one completion for verl; the same keys for every sample.

    Raises:
        ValueError: a mode that is none of MODES.
    """
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} is none of {', '.join(MODES)}")
    return verdict_dict(REWARD.score(solution_str, ground_truth, extra_info, Settings.from_kwargs(kwargs)))
