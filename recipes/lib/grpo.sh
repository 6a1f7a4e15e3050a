# GRPO (or PPO) with verl's trainer, the report, and the `main` of a recipe that does nothing else; sourced.
#
#   grpo_stage NAME [OVERRIDE...]   train MODEL as recipes/conf/recipe/$RECIPE.yaml says; $OUT/NAME then holds metrics.jsonl,
#                                   validation/, rollouts/, checkpoint/ (the final policy) and verl's own checkpoints.
#                                   Overrides that name files of this run go into the array grpo_paths instead, and what
#                                   lies there into grpo_inputs, as inputs of a stage
#   grpo_settings                   refuses wrong settings in one sentence
#   describe_run                    run.json: what the run was made with
#   show_run NAME                   links to the stage's files at the top of $OUT, and `verl-sql report`
#
# ADVANTAGE=gae trains by PPO instead: a critic of the policy's size and GAE (recipes/conf/ppo/).
# A recipe sets RECIPE (its name), TITLE (what the first line says) and, if its prompts or answers are its own,
# TEMPLATE, DATA (data.sh) and STYLE (sft.sh). The command line's overrides come last, so they win.
source "$(dirname "${BASH_SOURCE[0]}")/sft.sh"
PARTS=(data cold_start grpo)
ADVANTAGE=${ADVANTAGE:-grpo} # grpo, or gae for PPO
grpo_paths=() grpo_inputs=()

grpo_settings() { case $ADVANTAGE in grpo | gae) ;; *) fail "ADVANTAGE must be grpo or gae, not '$ADVANTAGE'" ;; esac; }

train_grpo() {
  local name=$1 folder=$OUT/$1 last
  local args=(
    'hydra.searchpath=[pkg://verl_sql.integration.conf,pkg://verl_sql.recipes.conf]' +recipe="$RECIPE"
    data.train_files="$train" "data.val_files=[$(IFS=,; echo "${validation[*]}")]" data.seed="$SEED"
    data.max_prompt_length="$MAX_PROMPT_LENGTH"
    actor_rollout_ref.model.path="$MODEL" actor_rollout_ref.actor.data_loader_seed="$SEED"
    actor_rollout_ref.rollout.seed="$SEED"
    +reward.custom_reward_function.reward_kwargs.db_root="$db_root"
    trainer.default_local_dir="$folder" trainer.validation_data_dir="$folder/validation"
    trainer.rollout_data_dir="$folder/rollouts" hydra.run.dir="$OUT/hydra/$name"
  )
  if [ "$PROFILE" = cpu ]; then args+=(+preset=cpu +small="$RECIPE"); fi
  case $ADVANTAGE-$PROFILE in
    gae-cpu) args+=(+ppo=critic_cpu) ;;
    gae-gpu) args+=(+ppo=critic) ;;
  esac
  VERL_FILE_LOGGER_PATH="$folder/metrics.jsonl" launched "$PY" -m verl.trainer.main_ppo "${args[@]}" \
    "${grpo_paths[@]}" "${grpo_overrides[@]}"
  last=$(cat "$folder/latest_checkpointed_iteration.txt")
  cp -rl "$folder/global_step_$last/actor/huggingface" "$folder/checkpoint"
}

grpo_stage() {
  local name=$1
  shift
  grpo_overrides=("$@" "${OVERRIDES[@]}")
  stage "$name" train_grpo "recipe=$RECIPE" "advantage=$ADVANTAGE" "${data_inputs[@]}" "model=$(reference "$MODEL")" \
    "seed=$SEED" "max_prompt_length=$MAX_PROMPT_LENGTH" "overrides=${grpo_overrides[*]}" \
    "judge=${JUDGE_BASE_URL:-} ${JUDGE_MODEL:-}" "${grpo_inputs[@]}" \
    "conf=@$ROOT/recipes/conf" "reward_fns=@$ROOT/reward_fns" "code=@$ROOT/verl_sql"
}

describe_run() {
  "$PY" -m verl_sql.integration.run_record "$OUT/run.json" recipe="$RECIPE" profile="$PROFILE" seed="$SEED" \
    model="$MODEL" train="$train" db_root="$db_root" cold_start_steps="$COLD_START_STEPS" flawed_share="$FLAWED_SHARE" \
    advantage="$ADVANTAGE" overrides="${OVERRIDES[*]}" --evaluation "${validation[@]}"
}

show_run() {
  local name=$1 item
  for item in metrics.jsonl validation rollouts checkpoint; do ln -sfn "$name/$item" "$OUT/$item"; done
  "$VENV/bin/verl-sql" report "$OUT"
}

main() {
  grpo_settings
  set_up
  check_inputs
  begin "$TITLE" "$@"
  prepare_data
  if [ "$PROFILE" = cpu ]; then make_policy; fi
  check_prompts
  if [ "$PROFILE" = cpu ]; then cold_start; fi
  describe_run
  grpo_stage grpo
  show_run grpo
}
