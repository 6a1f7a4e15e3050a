"""Think2SQL's reward (§2.3, Appendix D, Eq. 12).

| term | value | weight |
|---|---|---|
| sql | `r_sql=qatch` (default): mean(CP, CR, TC); `r_sql=ex`: 1 if the results match; never both | 0.85 |
| format | 1 if the output fully matches `<think>…</think>\\s*<answer>…</answer>` | 0.10 |
| tag_count | 0.25 for each of the four tags that stands exactly once | 0.05 |

Range [0, 1]. EX compares by `bird_set`; "row by row" in the paper's words is `comparator=ordered`. EX = 1 does not
imply QATCH = 1 under a set comparison: one row against the same row twice has TC 0.5.

A sample: T = [(1,), (2,)], P = [(1, 'a'), (2, 'b'), (1, 'a'), (2, 'b'), (1, 'a')], in the right tags.
cells(T) = {1, 2}, cells(P) = {1, 2, 'a', 'b'}: CP = 2/4 = 0.5, CR = 2/2 = 1, TC = min(2/5, 5/2) = 0.4, mean 0.6333;
0.85·0.6333 + 0.10 + 0.05 = 0.6883.

Use: `reward.custom_reward_function.path=<this file>` (or `pkg://verl_sql.reward_fns.think2sql`), `name=compute_score`;
`reward_kwargs`: r_sql, weights, db_root, timeout, comparator, style, on_gold_error, workers (see
verl_sql.rewards.settings).
"""

from collections.abc import Mapping
from typing import Any

from verl_sql.rewards.execution import execution
from verl_sql.rewards.output_format import think_format
from verl_sql.rewards.qatch import COMPARATOR, cell_precision, cell_recall, qatch, tuple_cardinality
from verl_sql.rewards.reward import Reward, Term, Value
from verl_sql.rewards.settings import Settings
from verl_sql.rewards.tag_count import tag_count
from verl_sql.rewards.verdict import verdict_dict
from verl_sql.sqltext.extract import AnswerStyle


def reward_with(r_sql: Value) -> Reward:
    """The reward with one of the two readings of R_sql."""
    return Reward(
        name="think2sql",
        style=AnswerStyle.AUTO,
        terms={
            "sql": Term(0.85, r_sql),
            "format": Term(0.10, think_format),
            "tag_count": Term(0.05, tag_count),
        },
        compares=(COMPARATOR,),
        facts={"cp": cell_precision, "cr": cell_recall, "tc": tuple_cardinality},
    )


REWARDS = {"qatch": reward_with(qatch), "ex": reward_with(execution)}
REWARD = REWARDS["qatch"]


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    r_sql: str = "qatch",
    **kwargs: Any,
) -> dict[str, Any]:
    """Score one completion for verl; the same keys for every sample.

    Raises:
        ValueError: an `r_sql` that is neither `qatch` nor `ex`.
    """
    if r_sql not in REWARDS:
        raise ValueError(f"r_sql={r_sql!r} is none of {', '.join(REWARDS)}")
    settings = Settings.from_kwargs(kwargs)
    return verdict_dict(REWARDS[r_sql].score(solution_str, ground_truth, extra_info, settings))
