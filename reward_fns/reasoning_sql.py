"""Reasoning-SQL's composite reward (§3.2, Algorithm 1).

| term | value | weight |
|---|---|---|
| execution | 1 if the results match (BIRD's set comparison), else 0 | 3 |
| judge | 1 if execution is 1 (the judge is not called), else the judge's score in [0, 1] | 2 |
| syntax | 1 if the SQL parses and executes without error | 1 |
| schema | Jaccard of tables and table.column, aliases resolved, `*` expanded | 1 |
| ngram | Jaccard of token bigrams | 1 |
| format | 1 if the output is exactly `<reasoning>…</reasoning><answer>…</answer>` | 1 |

r = Σ w·f, range [0, 9]. No wrong SQL earns more than a right one: the worst right is 3 + 2 + 1 = 6, the best wrong
2 + 1 + 1 + 1 + 1 = 6. Without a judge its term is 0 for wrong SQL, and the log says so once.
The paper's advantage is r minus the group mean: `algorithm.norm_adv_by_std_in_grpo=False`.

A sample: gold `SELECT name FROM team WHERE city = 'Rome'`, completion
`<reasoning>by city</reasoning><answer>SELECT name FROM team</answer>`, judge's score 0.5. Execution 0; judge 0.5;
syntax 1; schema {team, team.name} of {team, team.name, team.city} = 2/3; bigrams (select name), (name from),
(from team) of those and (team where), (where city), (city =), (= 'Rome') = 3/7; format 1:
0 + 2·0.5 + 1 + 2/3 + 3/7 + 1 = 4.0952.

Use: `reward.custom_reward_function.path=<this file>` (or `pkg://verl_sql.reward_fns.reasoning_sql`), `name=`
`compute_score`, with a judge `compute_score_async`; `reward_kwargs`: weights, judge, db_root, timeout, comparator,
style, on_gold_error, workers (see verl_sql.rewards.settings and verl_sql.rewards.judge.config).
"""

from collections.abc import Mapping
from typing import Any

from verl_sql.rewards.execution import execution
from verl_sql.rewards.judge.prompts import JudgeKind
from verl_sql.rewards.judge.terms import judge_score, judged
from verl_sql.rewards.ngrams import bigram_jaccard
from verl_sql.rewards.output_format import reasoning_format
from verl_sql.rewards.reward import Reward, Term
from verl_sql.rewards.schema_items import parsed, schema_jaccard
from verl_sql.rewards.settings import Settings
from verl_sql.rewards.syntax import syntax
from verl_sql.rewards.verdict import verdict_dict
from verl_sql.sqltext.extract import AnswerStyle

REWARD = Reward(
    name="reasoning_sql",
    style=AnswerStyle.AUTO,
    terms={
        "execution": Term(3.0, execution),
        "judge": Term(2.0, judge_score),
        "syntax": Term(1.0, syntax),
        "schema": Term(1.0, schema_jaccard),
        "ngram": Term(1.0, bigram_jaccard),
        "format": Term(1.0, reasoning_format),
    },
    facts={"judged": judged, "parsed": parsed},
    judges=(JudgeKind.SCORE,),
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


async def compute_score_async(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """`compute_score` on verl's event loop: its thread pool is small, and a judge is slow."""
    return verdict_dict(await REWARD.ascore(solution_str, ground_truth, extra_info, Settings.from_kwargs(kwargs)))
