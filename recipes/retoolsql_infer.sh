#!/usr/bin/env bash
# ReToolSQL at inference: a single greedy pass with tools, and self-consistency, the majority vote over N sampled
# trajectories by execution result. Run with verl 0.9.1, whose validation does the sampling.
#
#   MODEL=outputs/retoolsql_rft/…/checkpoint TRAIN_FILE=… VAL_FILE=… DB_ROOT=… bash recipes/retoolsql_infer.sh
#   bash recipes/retoolsql_infer.sh                       without a GPU and without MODEL: what retoolsql_rft.sh made
#   MODEL=… BIRD_DIR=… N=16 bash recipes/retoolsql_infer.sh     with GPUs: BIRD dev
#
# TRAIN_FILE is only there for verl, which opens it: VAL_FILE will do. Settings as in recipes/retoolsql_rft.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/retoolsql.sh"

RECIPE=retoolsql_rft
TITLE="ReToolSQL at inference"
PARTS=(data cold_start grpo single samples)
N=${N:-16}

# pass NAME [OVERRIDE...]: verl's validation alone, its answers in $OUT/NAME/validation/0.jsonl.
pass() {
  local name=$1
  local args=(
    'hydra.searchpath=[pkg://verl_sql.integration.conf,pkg://verl_sql.recipes.conf]' +recipe="$RECIPE"
    data.train_files="$train" "data.val_files=[$(IFS=,; echo "${validation[*]}")]"
    data.max_prompt_length="$MAX_PROMPT_LENGTH" actor_rollout_ref.model.path="$MODEL"
    actor_rollout_ref.rollout.seed="$SEED" +reward.custom_reward_function.reward_kwargs.db_root="$db_root"
    trainer.val_before_train=true trainer.val_only=true trainer.default_local_dir="$OUT/$name"
    trainer.validation_data_dir="$OUT/$name/validation" hydra.run.dir="$OUT/hydra/$name"
  )
  if [ "$PROFILE" = cpu ]; then args+=(+preset=cpu +small="$RECIPE"); fi
  VERL_FILE_LOGGER_PATH="$OUT/$name/metrics.jsonl" launched \
    "$PY" -m verl.trainer.main_ppo "${args[@]}" "${tools[@]}" "${pass_overrides[@]}" "${OVERRIDES[@]}"
}

pass_stage() {
  local name=$1
  pass_overrides=("${@:2}")
  stage "$name" pass "recipe=$RECIPE" "${data_inputs[@]}" "model=$(reference "$MODEL")" "seed=$SEED" \
    "overrides=${pass_overrides[*]} ${OVERRIDES[*]}" "conf=@$ROOT/recipes/conf" "reward_fns=@$ROOT/reward_fns" \
    "code=@$ROOT/verl_sql"
}

main() {
  local -a asked
  set_up
  check_inputs
  asked=("$@")
  begin "$TITLE" # the trained policy comes from the cache as it was made: overrides are for the two passes
  prepare_data
  if [ "$PROFILE" = cpu ] && [ -z "$MODEL" ]; then
    make_policy
    check_prompts
    warm_start
    use_tools
    grpo_stage grpo "${tools[@]}"
    MODEL=$OUT/grpo/checkpoint
  else
    check_prompts
    use_tools
  fi
  OVERRIDES=("${asked[@]}")
  describe_run
  pass_stage single actor_rollout_ref.rollout.val_kwargs.n=1
  pass_stage samples actor_rollout_ref.rollout.val_kwargs.n="$N" actor_rollout_ref.rollout.val_kwargs.do_sample=true \
    actor_rollout_ref.rollout.val_kwargs.temperature=1.0
  tool_table "$OUT" --passes single samples --db-root "$db_root" --out "$OUT/tool_table.json"
}

main "$@"; exit
