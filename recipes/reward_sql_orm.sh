#!/usr/bin/env bash
# Reward-SQL, the outcome reward model that the process reward model is compared with (paper, Table 4): the same labels
# and the same training as recipes/reward_sql_prm.sh, but the loss stands at the last tag only, behind the final query,
# and its label is whether the whole chain is right.
#
#   bash recipes/reward_sql_orm.sh                        without a GPU: sample, tiny policy, cold start, labels, ORM
#   MODEL=… BIRD_DIR=… bash recipes/reward_sql_orm.sh     with GPUs: from MODEL, the cold-started policy
#   LABELS=labels.jsonl MODEL=… TRAIN_FILE=… VAL_FILE=… DB_ROOT=… bash …    labels that are there already
#   STAGES=orm bash …                                     a part alone, of data, cold_start, prm (the labels), orm
#
# Settings: see recipes/reward_sql_prm.sh. Labels that its run made are taken from the cache.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/reward_model.sh"

RECIPE=reward_sql_orm
TITLE="Reward-SQL's outcome reward model"
PARTS=(data cold_start prm orm)

reward_model_main orm "$@"; exit
