#!/usr/bin/env bash
# ReToolSQL, second stage: reinforcement fine-tuning over trajectories in which the policy calls database tools between
# its turns. GRPO, composite reward, groups without variance dropped, KL coefficient by schedule. Run with verl 0.9.1.
#
#   bash recipes/retoolsql_rft.sh                         without a GPU: sample of look-ups, warm start, GRPO, table
#   MODEL=… BIRD_DIR=… bash recipes/retoolsql_rft.sh      with GPUs: GRPO on BIRD from MODEL, warmed up or not
#   TRAIN_FILE=… VAL_FILE=… DB_ROOT=… bash …              your own parquet, from data_prep/multi_turn.py
#   bash recipes/retoolsql_rft.sh trainer.total_training_steps=2     what follows the name is a hydra override for verl
#   STAGES=grpo bash …                                    a part alone, of data, cold_start and grpo
#
# Settings: recipes/conf/recipe/retoolsql_rft.yaml, recipes/conf/small/retoolsql_rft.yaml (CPU), and the variables at the
# top of recipes/lib/retoolsql.sh, data.sh and sft.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/retoolsql.sh"

RECIPE=retoolsql_rft
TITLE="ReToolSQL, GRPO over tool trajectories,"

main() {
  set_up
  check_inputs
  begin "$TITLE" "$@"
  prepare_data
  if [ "$PROFILE" = cpu ] && [ -z "$MODEL" ]; then
    make_policy
    check_prompts
    warm_start
  else
    check_prompts
  fi
  use_tools
  describe_run
  grpo_stage grpo "${tools[@]}"
  show_run grpo
  tool_table "$OUT" --out "$OUT/tool_table.json"
}

main "$@"; exit
