#!/usr/bin/env bash
# Reasoning-SQL: GRPO with the composite reward (execution, judge, syntax, schema items, bigrams, format); answers are
# <reasoning>…</reasoning><answer>…</answer>. Run with verl 0.9.1.
#
#   bash recipes/reasoning_sql_grpo.sh                       no GPU: sample, tiny policy, cold start, GRPO, report
#   MODEL=… BIRD_DIR=… bash recipes/reasoning_sql_grpo.sh    with GPUs: GRPO on BIRD from MODEL
#   ADVANTAGE=gae bash recipes/reasoning_sql_grpo.sh         PPO: a critic and GAE instead of the group's mean
#   JUDGE_BASE_URL=…/v1 JUDGE_MODEL=… bash …                 a judge behind an OpenAI-compatible endpoint
#
# Without a judge its term is 0 for SQL that is not right. On GPUs prompts show the tables and columns that the schema
# linker finds, in training with the gold's added (§4).
#
# Further variables, STAGES and CACHE: recipes/lib/. Hydra overrides for verl follow the name. Settings:
# recipes/conf/recipe/reasoning_sql_grpo.yaml (the paper's) and recipes/conf/small/reasoning_sql_grpo.yaml (CPU).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/grpo.sh"

RECIPE=reasoning_sql_grpo
TITLE="Reasoning-SQL's composite reward"
TEMPLATE=reasoning_sql
DATA=(settings.scope=linked_and_gold settings.evaluation_scope=linked)
STYLE=reasoning

main "$@"; exit
