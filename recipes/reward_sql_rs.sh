#!/usr/bin/env bash
# Reward-SQL, rejection sampling (paper §5.2): the cold-started policy answers its training questions N times, chains
# with R > τ are kept, and the policy is fine-tuned on them. Run with verl 0.9.1.
#
#   bash recipes/reward_sql_rs.sh                         without a GPU: sample, tiny policy, cold start, rollouts, RS
#   MODEL=… BIRD_DIR=… bash recipes/reward_sql_rs.sh      with GPUs: from MODEL, the cold-started policy
#   PRM=… bash recipes/reward_sql_rs.sh                   R = PR + OR with the process reward model PRM; else R = OR
#   ROLLOUTS=file.jsonl MODEL=… TRAIN_FILE=… VAL_FILE=… DB_ROOT=… bash …    rollouts that are there already
#   bash recipes/reward_sql_rs.sh trainer.total_epochs=1  what follows the name is a hydra override for verl's SFT trainer
#   STAGES=rs bash …                                      a part alone, of data, cold_start, rollouts, rs, evaluation
#
# Settings: recipes/conf/sft/reward_sql_rs.yaml (the paper's), and the variables here and at the top of
# recipes/lib/offline.sh, data.sh and sft.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/offline.sh"

RECIPE=reward_sql_rs
TITLE="Reward-SQL by rejection sampling"
PARTS=(data cold_start rollouts rs evaluation)
PART[rs_set]=rs
THRESHOLD=${THRESHOLD:-} # τ, not in the paper; 0.5, with R = PR + OR 1.5: right and PR > 0.5
KEEP=${KEEP:-null}       # chains a question at most, the best first; null for all
DIVERSITY=${DIVERSITY:-0.0} # edit distance of the trees that a chain must keep from better ones, in [0, 1]
EPOCHS=${EPOCHS:-3}
RS_LR=${RS_LR:-3e-4}     # CPU
GPUS=${GPUS:-8}

rs_small() {
  local rows batch=16
  rows=$("$PY" -c 'import sys, json; print(json.load(open(sys.argv[1]))["rows"])' "${set%.parquet}.report.json")
  if [ "$rows" -lt "$batch" ]; then batch=$rows; fi
  steps=$((EPOCHS * (rows / batch)))
  sft "$set" "$MODEL" "$1" "$steps" "$RS_LR" data.train_batch_size="$batch" "${OVERRIDES[@]}"
}

rs_gpu() {
  VERL_FILE_LOGGER_PATH="$OUT/$1/metrics.jsonl" launched \
    "$PY" -m torch.distributed.run --standalone --nproc_per_node="$GPUS" -m verl.trainer.sft_trainer \
    'hydra.searchpath=[pkg://verl_sql.recipes.conf]' +sft=reward_sql_rs data.train_files="$set" model.path="$MODEL" \
    data.max_length=$((MAX_PROMPT_LENGTH + MAX_RESPONSE_LENGTH + 256)) trainer.total_epochs="$EPOCHS" \
    trainer.n_gpus_per_node="$GPUS" trainer.seed="$SEED" trainer.default_local_dir="$OUT/$1" \
    hydra.run.dir="$OUT/hydra/$1" "${OVERRIDES[@]}"
}

train_rs() {
  local last
  "rs_$([ "$PROFILE" = cpu ] && echo small || echo gpu)" "$1"
  last=$(cat "$OUT/$1/latest_checkpointed_iteration.txt")
  cp -rl "$OUT/$1/global_step_$last/huggingface" "$OUT/$1/policy"
}

train_offline() {
  case $MODE in prm+rule_or) : "${THRESHOLD:=1.5}" ;; *) : "${THRESHOLD:=0.5}" ;; esac
  offline_set rejection threshold="$THRESHOLD" keep="$KEEP" diversity="$DIVERSITY"
  stage rs train_rs "set=@$OUT/rs_set" "model=$(reference "$MODEL")" "epochs=$EPOCHS" "lr=$RS_LR" "seed=$SEED" \
    "overrides=${OVERRIDES[*]}" "conf=@$ROOT/recipes/conf/sft" "sft=$(declare -f sft rs_small rs_gpu)" "$CPU_CODE"
  policy=$OUT/rs/policy
}

offline_main "$@"; exit
