#!/usr/bin/env bash
# Reward-SQL: a policy learns to answer with a chain of CTEs, by a cold start (SFT) first, then by GRPO on the rule-based
# outcome reward (the process reward model joins later). Run with verl 0.9.1.
#
#   bash recipes/reward_sql_grpo.sh                       without a GPU: sample, tiny policy, cold start, GRPO, report
#   MODEL=… BIRD_DIR=… bash recipes/reward_sql_grpo.sh    with GPUs: GRPO on BIRD from MODEL, the cold-started policy
#   TRAIN_FILE=… VAL_FILE=… DB_ROOT=… bash …              your own parquet, from data_prep
#   bash recipes/reward_sql_grpo.sh trainer.total_training_steps=2     what follows the name is a hydra override for verl
#   STAGES=grpo bash …                                    a part alone, of data, cold_start and grpo
#
# Settings: recipes/conf/recipe/reward_sql_grpo.yaml (the paper's), recipes/conf/small/reward_sql_grpo.yaml (CPU), and
# the variables at the top of recipes/lib/data.sh and sft.sh. Stages that would do again what an earlier run did are
# taken from there (CACHE, see recipes/lib/stages.sh).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/grpo.sh"

RECIPE=reward_sql_grpo
TITLE="Reward-SQL, trained on the rule-based outcome alone,"
TEMPLATE=reward_sql
STYLE=chain

main "$@"; exit
