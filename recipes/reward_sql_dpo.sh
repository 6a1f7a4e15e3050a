#!/usr/bin/env bash
# Reward-SQL, direct preference optimisation (paper §5.2): the cold-started policy answers its training questions N
# times, of two chains the one with the higher reward wins, and DPO learns from the pairs. Run with TRL 1.16.0, which is
# installed beside the training set when it is missing (extra `dpo`), and verl 0.9.1.
#
#   bash recipes/reward_sql_dpo.sh                        without a GPU: sample, tiny policy, cold start, rollouts, DPO
#   MODEL=… BIRD_DIR=… bash recipes/reward_sql_dpo.sh     with GPUs: from MODEL, the cold-started policy
#   PRM=… bash recipes/reward_sql_dpo.sh                  R = PR + OR with the process reward model PRM; else R = OR
#   ROLLOUTS=file.jsonl MODEL=… TRAIN_FILE=… VAL_FILE=… DB_ROOT=… bash …    rollouts that are there already
#   bash recipes/reward_sql_dpo.sh training.beta=0.2      what follows the name is a hydra override for recipes/conf/dpo
#   STAGES=dpo bash …                                     a part alone, of data, cold_start, rollouts, dpo, evaluation
#
# Settings: recipes/conf/dpo/reward_sql.yaml (the paper's), recipes/conf/dpo/reward_sql_cpu.yaml (CPU), and the variables
# here and at the top of recipes/lib/offline.sh, data.sh and sft.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/offline.sh"

RECIPE=reward_sql_dpo
TITLE="Reward-SQL by DPO"
PARTS=(data cold_start rollouts dpo evaluation)
PART[dpo_set]=dpo
KEEP=${KEEP:-1}                # pairs a question at most, those with the greatest difference first; null for all
PAIRING=${PAIRING:-best_worst} # best_worst | all
MARGIN=${MARGIN:-0.0}          # how much better the chosen one must be
GPUS=${GPUS:-8}

needs() { if wanted dpo; then need_trl; fi; }

train_dpo() {
  local name=$1 command=("$PY" -m verl_sql.integration.dpo) args
  args=(model="$MODEL" pairs="$set" out="$OUT/$name/policy" metrics="$OUT/$name/metrics.jsonl" training.seed="$SEED")
  if [ "$PROFILE" = cpu ]; then
    command+=(--config-name dpo/reward_sql_cpu)
  else
    command=("$PY" -m torch.distributed.run --standalone --nproc_per_node="$GPUS" -m verl_sql.integration.dpo)
  fi
  args+=(training.max_length=$((MAX_PROMPT_LENGTH + MAX_RESPONSE_LENGTH + 256)))
  launched "${command[@]}" "${args[@]}" "${OVERRIDES[@]}"
}

train_offline() {
  offline_set preference pairing="$PAIRING" keep="$KEEP" margin="$MARGIN"
  stage dpo train_dpo "set=@$OUT/dpo_set" "model=$(reference "$MODEL")" "seed=$SEED" "overrides=${OVERRIDES[*]}" \
    "conf=@$ROOT/recipes/conf/dpo" "code.dpo=@$ROOT/verl_sql/integration/dpo.py"
  policy=$OUT/dpo/policy
}

offline_main "$@"; exit
