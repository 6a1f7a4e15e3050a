#!/usr/bin/env bash
# Reward-SQL, the process reward model (paper §4.2): the cold-started policy samples chains of CTEs for its training
# questions and completions from their step prefixes; a step is wrong if all of them fail; a token classifier learns the
# labels at the step tags. Run with transformers 5.10 and, for sampling, vLLM.
#
#   bash recipes/reward_sql_prm.sh                        without a GPU: sample, tiny policy, cold start, labels, PRM
#   MODEL=… BIRD_DIR=… bash recipes/reward_sql_prm.sh     with GPUs: from MODEL, the cold-started policy
#   LABELS=labels.jsonl MODEL=… TRAIN_FILE=… VAL_FILE=… DB_ROOT=… bash …    labels that are there already
#   bash recipes/reward_sql_prm.sh soft=true              what follows the name is a hydra override for the training
#   STAGES=prm bash …                                     a part alone, of data, cold_start, prm
#
# $OUT/prm/model is what vLLM serves (`vllm serve FOLDER --runner pooling`) and transformers loads. Settings:
# recipes/conf/reward_model/reward_sql.yaml (the paper's), reward_sql_cpu.yaml (CPU), and the variables at the top of
# recipes/lib/reward_model.sh, data.sh and sft.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/reward_model.sh"

RECIPE=reward_sql_prm
TITLE="Reward-SQL's process reward model"
PARTS=(data cold_start prm)

reward_model_main prm "$@"; exit
