"""ReToolSQL's composite reward (Table 1), on a single completion or on a whole trajectory with tool calls.

| term | value | weight |
|---|---|---|
| format | 1 if the output ends in its one `<answer>…</answer>`, every `<think>` closed before it | 0.2 |
| syntax | 1 if the SQL parses and executes | 0.5 |
| execution | 1 if the results match (BIRD's set comparison) | 2.0 |
| tables | 1 if the prediction's tables include the gold's | 0.5 |
| columns | Jaccard of table.column, aliases resolved, case folded | 0.5 |
| nonempty | 1 if it executes and returns at least one cell that is not NULL | 0.1 |

R = Σ w·R_k, range [0, 3.8]. No wrong SQL earns more than a right one: the best wrong is 0.2 + 0.5 + 0.5 + 0.5 + 0.1
= 1.8, the worst right 2.0 + 0.5 = 2.5. The paper names a template and does not print it: the format above is ours.
The paper drops groups whose rewards do not vary; our recipes filter on `acc`.

Of a trajectory only what the policy itself wrote is looked at, tool answers never; its answer is the last `<answer>`,
in whichever turn. A trajectory that ran out of turns or tokens before it answered is scored as it stands: no answer.
Every query it ran with `run_sql` is compared too, for the metrics `repaired` (a draft was wrong, the answer is right)
and `spoiled` (the other way round); they, the turns and the tool calls by kind are logged and earn nothing.

A sample: gold `SELECT name FROM team WHERE city = 'Rome'`, completion `<answer>SELECT name FROM team</answer>`:
format 1, syntax 1, execution 0, tables 1, columns {team.name} of {team.name, team.city} = 0.5, nonempty 1:
0.2 + 0.5 + 0 + 0.5 + 0.25 + 0.1 = 1.55.

Use: `reward.custom_reward_function.path=<this file>` (or `pkg://verl_sql.reward_fns.retoolsql`), `name=compute_score`;
`reward_kwargs`: weights, db_root, timeout, comparator, style, on_gold_error, workers (see verl_sql.rewards.settings).
"""

from collections.abc import Mapping
from typing import Any

from verl_sql.rewards.execution import execution
from verl_sql.rewards.nonempty import nonempty
from verl_sql.rewards.output_format import final_answer_format
from verl_sql.rewards.reward import Reward, Term
from verl_sql.rewards.schema_items import columns_jaccard, parsed, tables_superset
from verl_sql.rewards.settings import Settings
from verl_sql.rewards.syntax import syntax
from verl_sql.rewards.trajectory import drafts_and_answer, n_drafts, repaired, spoiled, tool_facts
from verl_sql.rewards.verdict import verdict_dict
from verl_sql.sqltext.extract import AnswerStyle
from verl_sql.sqltext.turns import own_text

REWARD = Reward(
    name="retoolsql",
    style=AnswerStyle.ANSWER_TAG,
    terms={
        "format": Term(0.2, final_answer_format),
        "syntax": Term(0.5, syntax),
        "execution": Term(2.0, execution),
        "tables": Term(0.5, tables_superset),
        "columns": Term(0.5, columns_jaccard),
        "nonempty": Term(0.1, nonempty),
    },
    facts={"parsed": parsed, "repaired": repaired, "spoiled": spoiled, "n_drafts": n_drafts},
    attempts=drafts_and_answer,
    own=own_text,
)


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Score one completion or trajectory for verl; the same keys for every sample."""
    verdict = REWARD.score(solution_str, ground_truth, extra_info, Settings.from_kwargs(kwargs))
    return verdict_dict(verdict) | tool_facts(solution_str, extra_info)
