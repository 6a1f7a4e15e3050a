#!/usr/bin/env bash
# Reward-SQL whole: a policy learns to answer with a chain of CTEs by a cold start (SFT), a process reward model (PRM)
# learns to judge its steps, GRPO deals the reward PR + OR to the steps (paper §5.3), and at inference the PRM chooses
# among N answers (§5.4). Run with verl 0.9.1.
#
#   bash recipes/reward_sql_grpo.sh                       without a GPU: all of it in small, on a sample
#   MODEL=… BIRD_DIR=… bash recipes/reward_sql_grpo.sh    with GPUs: PRM, GRPO and best-of-N on BIRD from MODEL, the
#                                                         cold-started policy; PRM=folder where one is trained already
#   TRAIN_FILE=… VAL_FILE=… DB_ROOT=… bash …              your own parquet, from data_prep
#   bash recipes/reward_sql_grpo.sh trainer.total_training_steps=2     what follows is a hydra override for verl
#   STAGES=grpo bash …                                    a part alone, of data, cold_start, prm, grpo and best_of_n
#   MODE=rule_or bash …                                   the outcome reward alone; MODE=prm: the process reward alone
#   ESTIMATOR=deepseekmath_process bash …                 the paper's ablation (Appendix A.3); `grpo`: no step credit
#
# Settings: recipes/conf/recipe/reward_sql_grpo.yaml (the paper's), recipes/conf/prm/ (step credit),
# recipes/conf/small/reward_sql_grpo.yaml (CPU), and the variables here and at the top of recipes/lib/data.sh, sft.sh
# and reward_model.sh. Stages that would do again what an earlier run did are taken from there (CACHE, see
# recipes/lib/stages.sh).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/grpo.sh"
source "$(dirname "${BASH_SOURCE[0]}")/lib/reward_model.sh"

RECIPE=reward_sql_grpo
TEMPLATE=reward_sql
STYLE=chain
PARTS=(data cold_start prm grpo best_of_n)
PART[first_accuracy]=cold_start
MODE=${MODE:-prm+rule_or}
ESTIMATOR=${ESTIMATOR:-} # cocte_step_grpo with a PRM, else grpo
PRM=${PRM:-}             # process reward model; trained when it is empty and needed
PRM_AT=${PRM_AT:-}       # served: by verl with vLLM in its own pool; local: in the reward worker (default on a CPU)
ORM=${ORM:-}             # outcome model (recipes/reward_sql_orm.sh) to choose by as well
N=${N:-}                 # answers a question to choose from: 32, on a CPU 8; 0 leaves best-of-N out
TITLE="Reward-SQL with the reward $MODE"

mode_inputs() {
  case $MODE in
    rule_or) : "${ESTIMATOR:=grpo}" ;;
    prm | prm+rule_or) : "${ESTIMATOR:=cocte_step_grpo}" ;;
    *) fail "MODE must be rule_or, prm or prm+rule_or, not '$MODE'" ;;
  esac
  case $ESTIMATOR in
    grpo) ;;
    cocte_step_grpo | deepseekmath_process)
      [ "$MODE" != rule_or ] || fail "ESTIMATOR=$ESTIMATOR needs step scores: set MODE to prm or prm+rule_or" ;;
    *) fail "ESTIMATOR must be grpo, cocte_step_grpo or deepseekmath_process, not '$ESTIMATOR'" ;;
  esac
  [ "$ADVANTAGE" = grpo ] || [ "$MODE" = rule_or ] || fail "ADVANTAGE=$ADVANTAGE knows no steps: set MODE=rule_or"
  [ -z "$PRM" ] || [ -d "$PRM" ] || fail "PRM=$PRM is not a folder; train one with recipes/reward_sql_prm.sh"
  [ -z "$ORM" ] || [ -d "$ORM" ] || fail "ORM=$ORM is not a folder; train one with recipes/reward_sql_orm.sh"
  absolute PRM ORM
  : "${PRM_AT:=$([ "$PROFILE" = cpu ] && echo local || echo served)}"
  case $PRM_AT in served | local) ;; *) fail "PRM_AT must be served or local, not '$PRM_AT'" ;; esac
  : "${N:=$([ "$PROFILE" = cpu ] && echo 8 || echo 32)}"
}

# The cold-started policy's greedy answers: the first result of a run, and the "before" of its report.
answer_greedily() {
  launched "$PY" "$ROOT/data_prep/rollouts.py" "source=[$(IFS=,; echo "${validation[*]}")]" out="$OUT/$1/greedy.jsonl" \
    db_root="$db_root" model="$MODEL" "${label_engine[@]}" engine.seed="$SEED" \
    engine.max_model_len=$((MAX_PROMPT_LENGTH + MAX_RESPONSE_LENGTH)) sampling.n=1 sampling.temperature=0 \
    sampling.max_tokens="$MAX_RESPONSE_LENGTH" with_prompt=true
}

first_accuracy() {
  stage first_accuracy answer_greedily "${data_inputs[@]}" "model=$(reference "$MODEL")" "seed=$SEED" \
    "length=$MAX_PROMPT_LENGTH+$MAX_RESPONSE_LENGTH" "${LABEL_CODE[@]}"
  "$PY" -m verl_sql.evaluation.accuracy_line "after the cold start" "$OUT/first_accuracy/greedy.jsonl"
}

process_reward_model() {
  if [ -n "$PRM" ]; then
    prm_inputs=("prm=@$PRM")
    return
  fi
  make_labels
  train_reward_model prm
  PRM=$OUT/prm/model prm_inputs=("prm=@$OUT/prm")
}

train_with_steps() {
  local overrides=("reward.custom_reward_function.reward_kwargs.mode=$MODE")
  if [ "$MODE" != rule_or ]; then
    grpo_inputs=("${prm_inputs[@]}")
    case $PRM_AT-$PROFILE in
      local-*) overrides+=(+prm=local) grpo_paths=("reward.custom_reward_function.reward_kwargs.prm.folder=$PRM") ;;
      served-cpu) overrides+=(+prm=served_cpu) grpo_paths=("reward.reward_model.model_path=$PRM") ;;
      served-gpu) overrides+=(+prm=served) grpo_paths=("reward.reward_model.model_path=$PRM") ;;
    esac
    overrides+=("algorithm.adv_estimator=$ESTIMATOR")
  fi
  if [ "$PROFILE" = cpu ]; then overrides+=(trainer.val_before_train=False); fi # first_accuracy has it
  grpo_stage grpo "${overrides[@]}"
}

choose() {
  local options=(--out "$OUT/$1" --db-root "$db_root" --model "$policy" --n "$N" --max-tokens "$MAX_RESPONSE_LENGTH"
    --seed "$SEED" --engine max_model_len=$((MAX_PROMPT_LENGTH + MAX_RESPONSE_LENGTH)))
  local option
  for option in "${label_engine[@]}"; do options+=(--engine "${option#engine.}"); done
  if [ -n "$PRM" ]; then options+=(--prm "$PRM"); fi
  if [ -n "$ORM" ]; then options+=(--orm "$ORM"); fi
  VLLM_LOGGING_LEVEL=ERROR "$VENV/bin/verl-sql" infer "${validation[0]}" "${options[@]}" 2>>"$OUT/console.log" >"$OUT/$1/table.txt"
}

best_of_n() {
  policy=$OUT/grpo/checkpoint
  stage best_of_n choose "${data_inputs[@]}" "policy=@$OUT/grpo" "${prm_inputs[@]}" "orm=$(reference "$ORM")" "n=$N" \
    "seed=$SEED" "length=$MAX_PROMPT_LENGTH+$MAX_RESPONSE_LENGTH" "code.evaluation=@$ROOT/verl_sql/evaluation" \
    "code.prm=@$ROOT/verl_sql/prm" "${LABEL_CODE[@]}"
}

main() {
  local prm_inputs=()
  grpo_settings
  set_up
  check_inputs
  mode_inputs
  label_inputs
  begin "$TITLE" "$@"
  prepare_data
  if [ "$PROFILE" = cpu ]; then make_policy; fi
  check_prompts
  if [ "$PROFILE" = cpu ]; then
    cold_start
    first_accuracy
  fi
  if [ "$MODE" != rule_or ] || [ "$N" != 0 ]; then process_reward_model; fi
  describe_run
  train_with_steps
  if [ "$N" != 0 ]; then best_of_n; fi
  if [ "$PROFILE" = cpu ]; then ln -sfn ../../first_accuracy/greedy.jsonl "$OUT/grpo/validation/0.jsonl"; fi
  show_run grpo
  if [ "$N" != 0 ]; then cat "$OUT/best_of_n/table.txt"; fi
}

main "$@"; exit
