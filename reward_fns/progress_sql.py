"""Progress-SQL's progressive reward over the turns of one completion (abstract; the weights are not public).

| term | value | weight |
|---|---|---|
| execution | 1 if the final SQL's result matches the gold's | 2.0 |
| progress | alignment(final) − alignment(initial), in [−1, 1] | 0.5 |
| latency | 1/t if the final SQL is right and turn t was the first right one, else 0 | 1.5 |
| status | +1 invalid first SQL ended valid, −1 valid first SQL ended invalid | 0.2 |

alignment = α·structural + (1 − α)·lexical, α = 0.5: diagnostic trees clause by clause, and token edits; with the gold
or its chain of CTEs (`extra_info["gold_chain"]`), whichever is more like the SQL.
Range [−0.7, 4.0]. With these defaults no wrong final SQL earns more than a right one: the best wrong is 0.5 + 0.2,
the worst right 2 − 0.5 + 1.5/16 = 1.59 (16 turns are looked at). And spoiling the first turn on purpose does not pay a
policy that knows the answer: it would gain at most 0.5 + 0.2 and lose 1.5/2.
A single turn has progress 0 and status 0.

A sample: gold `SELECT name FROM team`, turns `<answer>SELECT nam FROM team</answer>` and
`<answer>SELECT name FROM team</answer>`. Initial: clauses SELECT 0, sources 1, structural 0.5; one token of four
differs, lexical 0.75; alignment 0.625. Final: 1. Progress 0.375, latency 1/2, status +1:
2 + 0.5·0.375 + 1.5·0.5 + 0.2 = 3.1375.

The turns come from `extra_info["attempts"]`, which the agent loop `verl_sql_refine` records, else from the text: the
turns between feedback, or the `<answer>` blocks. Beside the terms it logs what the turns did: `first_right`,
`repaired` (wrong to right), `spoiled` (right to wrong), `n_sql_turns`.

Use: `reward.custom_reward_function.path=<this file>` (or `pkg://verl_sql.reward_fns.progress_sql`), `name=`
`compute_score`; `reward_kwargs`: weights, db_root, timeout, comparator, style, on_gold_error, workers (see
verl_sql.rewards.settings).
"""

from collections.abc import Mapping
from typing import Any

from verl_sql.rewards.attempts import every_answer
from verl_sql.rewards.execution import execution
from verl_sql.rewards.progress import (
    final_alignment,
    first_right,
    latency,
    n_turns,
    progress,
    repaired,
    spoiled,
    status_change,
)
from verl_sql.rewards.reward import Reward, Term
from verl_sql.rewards.schema_items import parsed
from verl_sql.rewards.settings import Settings
from verl_sql.rewards.verdict import verdict_dict
from verl_sql.sqltext.extract import AnswerStyle
from verl_sql.sqltext.turns import own_text

REWARD = Reward(
    name="progress_sql",
    style=AnswerStyle.ANSWER_TAG,
    terms={
        "execution": Term(2.0, execution),
        "progress": Term(0.5, progress),
        "latency": Term(1.5, latency),
        "status": Term(0.2, status_change),
    },
    facts={
        "alignment": final_alignment,
        "n_sql_turns": n_turns,
        "parsed": parsed,
        "first_right": first_right,
        "repaired": repaired,
        "spoiled": spoiled,
    },
    attempts=every_answer,
    own=own_text,
)


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Score one completion for verl; the same keys for every sample."""
    return verdict_dict(REWARD.score(solution_str, ground_truth, extra_info, Settings.from_kwargs(kwargs)))
