#!/usr/bin/env bash
# Reward-SQL's inference (§5.4): N samples a question, executed and scored step by step, and the answer chosen from them
# by greedy decoding, self-consistency, outcome model and process reward model. Run with vLLM 0.27.1 on a CPU.
#
#   MODEL=… PRM=… VAL_FILE=… DB_ROOT=… bash recipes/reward_sql_infer.sh
#   N=8 ORM=… … bash recipes/reward_sql_infer.sh --questions 100      what follows the name goes to `verl-sql infer`
#
# Without a GPU everything runs on the CPU. Run it again with the same OUT and it goes on where it stopped.
# docs/inference.md says what it writes; `verl-sql policies` puts several runs into one table.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

MODEL=${MODEL:-}       # the policy: a folder, or a name on the hub
BASE_URL=${BASE_URL:-} # or an OpenAI-compatible endpoint that serves it
PRM=${PRM:-}           # process reward model (recipes/reward_sql_prm.sh); empty: chosen without one
ORM=${ORM:-}           # outcome reward model (recipes/reward_sql_orm.sh); empty: chosen without one
VAL_FILE=${VAL_FILE:-} # questions, parquet from data_prep; several with commas
DB_ROOT=${DB_ROOT:-}   # their databases
N=${N:-32}             # the paper's
TEMPERATURE=${TEMPERATURE:-1.0}
MAX_TOKENS=${MAX_TOKENS:-}
SEED=${SEED:-0}
LATENCY=${LATENCY:-4} # questions a number of samples on which latency is measured; 0 leaves it out
export VLLM_LOGGING_LEVEL=${VLLM_LOGGING_LEVEL:-ERROR}
OUT=${OUT:-$ROOT/outputs/reward_sql_infer/$(date +%Y%m%d_%H%M%S)}

check_inputs() {
  local file
  [ -n "$MODEL$BASE_URL" ] || fail "set MODEL to the policy (a folder, or a name on the hub), or BASE_URL to its endpoint"
  [ -n "$VAL_FILE" ] || fail "set VAL_FILE to the questions: parquet from data_prep"
  [ -n "$DB_ROOT" ] || fail "set DB_ROOT to the folder of the questions' databases"
  [ -d "$DB_ROOT" ] || fail "DB_ROOT=$DB_ROOT is not a folder"
  IFS=, read -ra files <<<"$VAL_FILE"
  for file in "${files[@]}"; do [ -f "$file" ] || fail "VAL_FILE: there is no file $file"; done
}

# What vLLM needs where there is no GPU: single precision, no graphs.
engine_options() {
  if [ "$PROFILE" = cpu ]; then
    printf -- '--engine=%s\n' dtype=float32 enforce_eager=true max_num_seqs=256 max_model_len="${MAX_MODEL_LEN:-2048}"
  elif [ -n "${MAX_MODEL_LEN:-}" ]; then
    echo "--engine=max_model_len=$MAX_MODEL_LEN"
  fi
}

infer() {
  local options=(--out "$OUT" --db-root "$DB_ROOT" --n "$N" --temperature "$TEMPERATURE" --seed "$SEED"
    --latency "$LATENCY" --max-tokens "${MAX_TOKENS:-$([ "$PROFILE" = cpu ] && echo 256 || echo 2048)}")
  if [ -n "$MODEL" ]; then options+=(--model "$MODEL"); else options+=(--base-url "$BASE_URL"); fi
  if [ -n "$PRM" ]; then options+=(--prm "$PRM"); fi
  if [ -n "$ORM" ]; then options+=(--orm "$ORM"); fi
  mapfile -t -O "${#options[@]}" options < <(engine_options)
  "$VENV/bin/verl-sql" infer "${files[@]}" "${options[@]}" "$@"
}

main() {
  local files
  check_inputs
  set_up
  echo "verl_sql: best of $N on the $PROFILE profile; everything goes to $OUT"
  infer "$@"
}

main "$@"; exit
