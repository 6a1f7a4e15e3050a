#!/usr/bin/env bash
# Think2SQL: GRPO with 0.85 QATCH (cell precision, cell recall, tuple cardinality), 0.10 format and 0.05 tag count; answers
# are <think>…</think><answer>…</answer>. Run with verl 0.9.1.
#
#   bash recipes/think2sql_grpo.sh                       no GPU: sample, tiny policy, cold start, GRPO, report
#   MODEL=… BIRD_DIR=… bash recipes/think2sql_grpo.sh    with GPUs: GRPO on BIRD from MODEL
#   ADVANTAGE=gae bash recipes/think2sql_grpo.sh         PPO: a critic and GAE instead of the group's mean
#   bash … reward.custom_reward_function.reward_kwargs.r_sql=ex                          EX in place of QATCH
#
# On GPUs training prompts show only the tables that the gold query uses, evaluation prompts the whole schema (the paper
# restricts both).
#
# Further variables, STAGES and CACHE: recipes/lib/. Hydra overrides for verl follow the name. Settings:
# recipes/conf/recipe/think2sql_grpo.yaml (the paper's) and recipes/conf/small/think2sql_grpo.yaml (CPU).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/grpo.sh"

RECIPE=think2sql_grpo
TITLE="Think2SQL's QATCH reward"
TEMPLATE=think2sql
DATA=(settings.scope=gold_tables)
STYLE=think

main "$@"; exit
