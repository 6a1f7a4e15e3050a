"""Plain execution accuracy (EX): 1 when the prediction's result equals the gold's, else 0.

| term | value | weight |
|---|---|---|
| execution | 1 if the results match by the comparator, default `bird_set` (BIRD's EX) | 1 |

Range {0, 1}; `score` and `acc` are the same number. A sample: gold `SELECT name FROM singer`, completion
"```sql\nSELECT Name FROM singer ORDER BY age\n```" -> 1.0, since `bird_set` ignores the order of rows.

Use: `reward.custom_reward_function.path=<this file>` (or `pkg://verl_sql.reward_fns.execution`), `name=compute_score`;
`reward_kwargs`: db_root, timeout, comparator, style, on_gold_error, workers (see verl_sql.rewards.settings).
"""

from collections.abc import Mapping
from typing import Any

from verl_sql.rewards.execution import execution
from verl_sql.rewards.reward import Reward, Term
from verl_sql.rewards.settings import Settings
from verl_sql.rewards.verdict import verdict_dict
from verl_sql.sqltext.extract import AnswerStyle

REWARD = Reward(name="execution", style=AnswerStyle.AUTO, terms={"execution": Term(1.0, execution)})


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Score one completion for verl; the same keys for every sample."""
    return verdict_dict(REWARD.score(solution_str, ground_truth, extra_info, Settings.from_kwargs(kwargs)))
