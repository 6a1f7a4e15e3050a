"""The rewards of Sparks of Tabular Reasoning (§3.2.2, Appendix B.3 and B.4).

| term | value | weight |
|---|---|---|
| edit | R_exec = 1/(x + 1), x = changes needed; 0 changes for SQL that executes to the gold's result | 1 |
| string | 2·M / (len(pred) + len(gold)), M = characters in matching blocks (difflib, autojunk off) | 1 |
| component | token F1 per clause, averaged over the clauses that either query has | 1 |
| judge | class of the judge: Very bad 0, Bad 0.2, Average 0.4, Above average 0.6, Good 0.8, Excellent 1 | 1 |

Range [0, 4]; the paper gives no weights, these are equal and configurable. The answer stands in `<sql>…</sql>`.
x comes from the judge (B.3 asks for all predictions of a group at once; here each sample is asked for by itself, with
a list of one), else it is the number of token edits between the two strings, a stand-in. The judge is not called for
SQL that executes to the gold's result, which earns `edit` and `judge` 1; without a judge, `judge` is 0 for the rest.

A sample: gold `SELECT name FROM team`, completion `<sql>SELECT city FROM team</sql>`, no judge. Tokens differ in one
place: edit 1/(1 + 1) = 0.5. difflib's blocks are `SELECT ` (7) and ` FROM team` (10): 2·17/(21 + 21) = 0.8095.
Clauses: SELECT {city} against {name} F1 0, FROM 1: component 0.5. Sum 1.8095.

Use: `reward.custom_reward_function.path=<this file>` (or `pkg://verl_sql.reward_fns.tabular_reasoning`), `name=`
`compute_score`, with a judge `compute_score_async`; `reward_kwargs`: weights, judge, db_root, timeout, comparator,
style, on_gold_error, workers (see verl_sql.rewards.settings and verl_sql.rewards.judge.config).
"""

from collections.abc import Mapping
from typing import Any

from verl_sql.rewards.components import component_match
from verl_sql.rewards.edit_count import edit_count
from verl_sql.rewards.judge.prompts import JudgeKind
from verl_sql.rewards.judge.terms import judge_grade, judged
from verl_sql.rewards.reward import Reward, Term
from verl_sql.rewards.settings import Settings
from verl_sql.rewards.string_match import string_match
from verl_sql.rewards.verdict import verdict_dict
from verl_sql.sqltext.extract import AnswerStyle

REWARD = Reward(
    name="tabular_reasoning",
    style=AnswerStyle.SQL_TAG,
    terms={
        "edit": Term(1.0, edit_count),
        "string": Term(1.0, string_match),
        "component": Term(1.0, component_match),
        "judge": Term(1.0, judge_grade),
    },
    facts={"judged": judged},
    judges=(JudgeKind.CHANGES, JudgeKind.GRADE),
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
