#!/usr/bin/env bash
# ReToolSQL, first stage: a policy is warmed up on conversations with database tools, by supervised fine-tuning on traces
# that end in the right SQL. Run with verl 0.9.1.
#
#   bash recipes/retoolsql_sft.sh                         without a GPU: sample of look-ups, a script's traces, tiny policy
#   MODEL=… BIRD_DIR=… TEACHER_URL=http://…/v1 bash …     with GPUs: traces of a teacher that sees the gold, on BIRD
#   SELF_TRACES="1.jsonl 2.jsonl" …                       besides, the policy's own trajectories, from verl's dumps
#   bash recipes/retoolsql_sft.sh data.train_batch_size=16   what follows the name is a hydra override for verl
#
# Settings: the variables at the top of recipes/lib/retoolsql.sh, data.sh and sft.sh; with GPUs recipes/conf/sft/retoolsql_sft.yaml.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/retoolsql.sh"

RECIPE=retoolsql_sft
TITLE="ReToolSQL, warm start on tool traces,"
PARTS=(data cold_start)
GPUS=${GPUS:-8}
MAX_TRACE_LENGTH=${MAX_TRACE_LENGTH:-16384}

check_teacher() {
  if [ "$PROFILE" = gpu ] || [ -n "$TRAIN_FILE" ]; then
    [ -n "$TEACHER_URL" ] || fail "set TEACHER_URL to the teacher's endpoint (http://…/v1)"
  fi
}

warm_start_gpu() {
  local sets=("$OUT"/sft_set/*.parquet)
  VERL_FILE_LOGGER_PATH="$OUT/$1/metrics.jsonl" launched \
    "$PY" -m torch.distributed.run --standalone --nproc_per_node="$GPUS" -m verl.trainer.sft_trainer \
    'hydra.searchpath=[pkg://verl_sql.recipes.conf]' +sft=retoolsql_sft \
    "data.train_files=[$(IFS=,; echo "${sets[*]}")]" data.max_length="$MAX_TRACE_LENGTH" model.path="$MODEL" \
    trainer.n_gpus_per_node="$GPUS" trainer.seed="$SEED" trainer.default_local_dir="$OUT/$1" \
    hydra.run.dir="$OUT/hydra/$1" "${OVERRIDES[@]}"
  cp -rl "$OUT/$1/global_step_$(cat "$OUT/$1/latest_checkpointed_iteration.txt")/huggingface" "$OUT/$1/policy"
}

main() {
  set_up
  check_inputs
  check_teacher
  begin "$TITLE" "$@"
  prepare_data
  make_policy
  if [ "$PROFILE" = gpu ]; then
    stage cold_start warm_start_gpu "sft_set=@$OUT/sft_set" "model=$(reference "$MODEL")" "seed=$SEED" \
      "overrides=${OVERRIDES[*]}" "conf=@$ROOT/recipes/conf" "code.dataset=@$ROOT/verl_sql/integration/tool_sft.py"
    MODEL=$OUT/cold_start/policy
  else
    warm_start
  fi
  ln -sfn "${MODEL#"$OUT/"}" "$OUT/checkpoint"
  echo "verl_sql: the warmed-up policy is in $OUT/checkpoint"
}

main "$@"; exit
