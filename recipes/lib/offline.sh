# Offline training on scored rollouts (Reward-SQL §5.2): the policy answers its training questions once, the rewards are
# fixed, and a set or pairs are made of them. Sourced by recipes/reward_sql_rs.sh and recipes/reward_sql_dpo.sh.
#
#   offline_inputs        refuses wrong settings in one sentence
#   starting_policy       MODEL; without it, on a CPU, the tiny policy and its cold start
#   sample_rollouts       stage rollouts, or what ROLLOUTS names; sets rollouts (an array of files)
#   offline_set KIND KEY=VALUE...   stage ${RECIPE##*_}_set: a parquet of data_prep/sft.py, in $set
#   measure before|after MODEL      stage of that name: greedy answers to the evaluation questions
#   need_trl              TRL, installed if it is missing
#   show_offline NAME     the run's files where `verl-sql report` looks for them, and the report
#
# A recipe sets RECIPE, TITLE, PARTS and, after its training, policy: the folder of the trained one.
source "$(dirname "${BASH_SOURCE[0]}")/sft.sh"
ROLLOUTS=${ROLLOUTS:-} # files of data_prep/rollouts.py (or verl's dumps) with spaces between; sampled when empty
N=${N:-8}              # chains a question
QUESTIONS=${QUESTIONS:-} # the first so many training questions; all when empty
PRM=${PRM:-}           # checkpoint of the process reward model; R is then PR + OR, else OR alone
MODE=${MODE:-}         # rule_or | prm | prm+rule_or, when it is to be another than that
MAX_RESPONSE_LENGTH=${MAX_RESPONSE_LENGTH:-}
SAMPLING=(${SAMPLING:-}) # further keys for data_prep/rollouts.py, say "engine.tensor_parallel_size=8 prm.engine=vllm"
SHOW="$SHOW|rollouts: .*"
PART[before]=rollouts # the policy's accuracy comes before anything is trained
PART[after]=evaluation
OFFLINE_CODE=("data_prep=@$ROOT/data_prep" "code.reward=@$ROOT/reward_fns/reward_sql.py")
for room in sqltext database generation prm dataset/sft; do OFFLINE_CODE+=("code.$room=@$ROOT/verl_sql/$room"); done
for file in "$ROOT"/verl_sql/integration/rollout*.py; do OFFLINE_CODE+=("code.$(basename "$file")=@$file"); done

offline_inputs() {
  local file
  [ -z "$PRM" ] || [ -d "$PRM" ] || fail "PRM=$PRM is not a folder; train one with recipes/reward_sql_prm.sh"
  MODE=${MODE:-$([ -n "$PRM" ] && echo prm+rule_or || echo rule_or)}
  case $MODE in
    rule_or) ;;
    prm | prm+rule_or) [ -n "$PRM$ROLLOUTS" ] || fail "MODE=$MODE needs a process reward model: set PRM to its checkpoint" ;;
    *) fail "MODE must be rule_or, prm or prm+rule_or, not '$MODE'" ;;
  esac
  for file in $ROLLOUTS; do
    [ -f "$file" ] || fail "there are no rollouts $file; make them with data_prep/rollouts.py, or leave ROLLOUTS empty"
  done
  if [ -n "$ROLLOUTS" ] && [ -z "$TRAIN_FILE$BIRD_DIR" ]; then
    fail "ROLLOUTS belong to questions and databases: set TRAIN_FILE, VAL_FILE and DB_ROOT (or BIRD_DIR) too"
  fi
  [ -z "$ROLLOUTS" ] || [ -n "$MODEL" ] || fail "ROLLOUTS belong to a policy: set MODEL to the one that wrote them"
  absolute PRM
  if [ "$PROFILE" = cpu ]; then
    : "${MAX_RESPONSE_LENGTH:=96}"
    engine=(engine.dtype=float32 engine.enforce_eager=true engine.max_num_seqs=256)
  else
    : "${MAX_RESPONSE_LENGTH:=1024}"
    engine=()
  fi
}

starting_policy() {
  if [ -n "$MODEL" ]; then return; fi
  make_policy
  cold_start
}

# ask FILE KEY=VALUE...: data_prep/rollouts.py with the keys that all of its uses share.
ask() {
  local out=$1
  shift
  launched "$PY" "$ROOT/data_prep/rollouts.py" out="$out" db_root="$db_root" "${engine[@]}" engine.seed="$SEED" \
    engine.max_model_len=$((MAX_PROMPT_LENGTH + MAX_RESPONSE_LENGTH)) sampling.max_tokens="$MAX_RESPONSE_LENGTH" "$@"
}

write_rollouts() {
  ask "$OUT/$1/rollouts.jsonl" source="$train" model="$MODEL" mode="$MODE" ${PRM:+prm.folder="$PRM"} sampling.n="$N" \
    questions="${QUESTIONS:-null}" "${SAMPLING[@]}"
}

sample_rollouts() {
  local file
  if [ -n "$ROLLOUTS" ]; then
    read -ra rollouts <<<"$ROLLOUTS"
    mapfile -t rollouts < <(realpath "${rollouts[@]}")
    rollout_inputs=()
    for file in "${!rollouts[@]}"; do rollout_inputs+=("rollouts.$file=@${rollouts[file]}"); done
    return
  fi
  stage rollouts write_rollouts "${data_inputs[@]}" "model=$(reference "$MODEL")" "prm=$(reference "$PRM")" "mode=$MODE" \
    "n=$N" "questions=$QUESTIONS" "length=$MAX_PROMPT_LENGTH+$MAX_RESPONSE_LENGTH" "seed=$SEED" "engine=${engine[*]}" \
    "sampling=${SAMPLING[*]}" "${OFFLINE_CODE[@]}"
  rollouts=("$OUT/rollouts/rollouts.jsonl")
  rollout_inputs=("rollouts=@$OUT/rollouts")
}

write_offline_set() {
  "$PY" "$ROOT/data_prep/sft.py" source="$train" "rollouts=[$(IFS=,; echo "${rollouts[*]}")]" out="$OUT/$1/set.parquet" \
    "${set_keys[@]}"
}

offline_set() {
  local name=${RECIPE##*_}_set
  set_keys=("kind=$1" "${@:2}")
  stage "$name" write_offline_set "${data_inputs[@]}" "${rollout_inputs[@]}" "keys=${set_keys[*]}" "${OFFLINE_CODE[@]}"
  set=$OUT/$name/set.parquet
}

greedy() {
  ask "$OUT/$1/greedy.jsonl" "source=[$(IFS=,; echo "${validation[*]}")]" model="$measured" mode=rule_or with_prompt=true \
    sampling.n=1 sampling.temperature=0
}

measure() {
  measured=$2
  stage "$1" greedy "${data_inputs[@]}" "model=$3" "length=$MAX_PROMPT_LENGTH+$MAX_RESPONSE_LENGTH" "engine=${engine[*]}" \
    "${OFFLINE_CODE[@]}"
}

show_offline() {
  local steps
  "$PY" -m verl_sql.integration.run_record "$OUT/run.json" recipe="$RECIPE" profile="$PROFILE" seed="$SEED" \
    model="$MODEL" train="$train" db_root="$db_root" mode="$MODE" prm="$PRM" n="$N" questions="$QUESTIONS" \
    set="${set_keys[*]}" overrides="${OVERRIDES[*]}" --evaluation "${validation[@]}"
  steps=$(sed -nE '$s/.*"step": ?([0-9]+).*/\1/p' "$OUT/$1/metrics.jsonl")
  mkdir -p "$OUT/validation"
  ln -sfn ../before/greedy.jsonl "$OUT/validation/0.jsonl"
  ln -sfn ../after/greedy.jsonl "$OUT/validation/$steps.jsonl"
  ln -sfn "$1/metrics.jsonl" "$OUT/metrics.jsonl"
  ln -sfn "${policy#"$OUT/"}" "$OUT/checkpoint"
  "$VENV/bin/verl-sql" report "$OUT"
}

# TRL, installed if it is not there; what it needs besides comes with verl.
need_trl() {
  local pin
  if "$PY" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("trl") is None)'; then return; fi
  pin=$("$PY" -c 'from verl_sql.integration.versions import TRL; print(TRL)')
  echo "verl_sql: installing $pin into $VENV"
  "$VENV/bin/uv" pip install --quiet --python "$PY" "$pin" ||
    fail "DPO needs TRL and it could not be installed (see above): with a package index within reach, run" \
      "$VENV/bin/uv pip install --python $PY $pin"
}

needs() { :; } # what else a recipe installs

# The whole recipe; train_offline, which the recipe defines, makes the set, trains, and sets policy.
offline_main() {
  set_up
  check_inputs
  offline_inputs
  needs
  begin "$TITLE on rewards by $MODE," "$@"
  prepare_data
  starting_policy
  check_prompts
  measure before "$MODEL" "$(reference "$MODEL")"
  sample_rollouts
  train_offline
  measure after "$policy" "@$OUT/${RECIPE##*_}"
  show_offline "${RECIPE##*_}"
}
