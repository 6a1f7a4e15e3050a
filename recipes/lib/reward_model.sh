# Reward models (Reward-SQL §4.2): step labels by Monte Carlo from the policy, and a process or outcome model trained on
# them; sourced.
#
#   label_inputs          refuses wrong settings in one sentence
#   make_labels           stage prm_labels (part prm): the labels of MODEL's own chains; or what LABELS names. Sets labels
#   train_reward_model NAME [OVERRIDE...]   stage NAME, prm or orm, which says what it is; the model is then in
#                         $OUT/NAME/model, its numbers on held-out questions in $OUT/NAME/model/prm_report.json
#   reward_model_main NAME ARGUMENT...      the whole of a recipe that makes one
#
# MODEL must be the cold-started policy by then, MAX_PROMPT_LENGTH set, train and db_root too (data.sh, sft.sh).
declare -F cold_start >/dev/null || source "$(dirname "${BASH_SOURCE[0]}")/sft.sh" # grpo.sh may have done so
LABELS=${LABELS:-}                   # a file of data_prep/prm_labels.py; made when empty
LABEL_QUESTIONS=${LABEL_QUESTIONS:-} # the first so many training questions; all when empty, on a CPU 1000
LABEL_CHAINS=${LABEL_CHAINS:-8}      # chains a question
LABEL_COMPLETIONS=${LABEL_COMPLETIONS:-8} # completions that must fail before a step is called wrong
LABELLING=(${LABELLING:-})           # further keys for data_prep/prm_labels.py, say "labelling.budget=40 block=64"
GPUS=${GPUS:-8}
MAX_RESPONSE_LENGTH=${MAX_RESPONSE_LENGTH:-}
SHOW="$SHOW|prm labels: .*|prm: .*|orm: .*"
PART[prm_labels]=prm
LABEL_CODE=("data_prep=@$ROOT/data_prep/prm_labels.py" "conf.labels=@$ROOT/data_prep/conf/prm_labels.yaml")
for room in sqltext database generation; do LABEL_CODE+=("code.$room=@$ROOT/verl_sql/$room"); done
for file in labels label_files tree cutting rendering stepping; do
  LABEL_CODE+=("code.$file=@$ROOT/verl_sql/prm/$file.py")
done
TRAINING_CODE=("conf=@$ROOT/recipes/conf/reward_model")
for file in training label_files encoding metrics model; do
  TRAINING_CODE+=("code.$file=@$ROOT/verl_sql/prm/$file.py")
done

label_inputs() {
  if [ -n "$LABELS" ]; then
    [ -f "$LABELS" ] || fail "there are no step labels $LABELS; make them with data_prep/prm_labels.py, or leave LABELS empty"
    absolute LABELS
  fi
  if [ "$PROFILE" = cpu ]; then
    : "${LABEL_QUESTIONS:=1000}" "${MAX_RESPONSE_LENGTH:=96}"
    label_engine=(engine.dtype=float32 engine.enforce_eager=true engine.max_num_seqs=256)
  else
    : "${MAX_RESPONSE_LENGTH:=1024}"
    label_engine=(engine.tensor_parallel_size="$GPUS")
  fi
}

write_labels() {
  launched "$PY" "$ROOT/data_prep/prm_labels.py" source="$train" db_root="$db_root" model="$MODEL" \
    out="$OUT/$1/labels.jsonl" questions="${LABEL_QUESTIONS:-null}" labelling.chains="$LABEL_CHAINS" \
    labelling.completions="$LABEL_COMPLETIONS" labelling.sampling.max_tokens="$MAX_RESPONSE_LENGTH" \
    "${label_engine[@]}" engine.seed="$SEED" engine.max_model_len=$((MAX_PROMPT_LENGTH + MAX_RESPONSE_LENGTH)) \
    "${LABELLING[@]}"
}

make_labels() {
  if [ -n "$LABELS" ]; then
    labels=$LABELS
    label_sources=("labels=@$LABELS")
    return
  fi
  stage prm_labels write_labels "${data_inputs[@]}" "model=$(reference "$MODEL")" "seed=$SEED" \
    "questions=$LABEL_QUESTIONS" "chains=$LABEL_CHAINS" "completions=$LABEL_COMPLETIONS" \
    "length=$MAX_PROMPT_LENGTH+$MAX_RESPONSE_LENGTH" "engine=${label_engine[*]}" "labelling=${LABELLING[*]}" \
    "${LABEL_CODE[@]}"
  labels=$OUT/prm_labels/labels.jsonl
  label_sources=("labels=@$OUT/prm_labels")
}

fit_reward_model() {
  local name=$1 outcome=false command=("$PY" -m verl_sql.prm.train)
  if [ "$name" = orm ]; then outcome=true; fi
  if [ "$PROFILE" = cpu ]; then
    command+=(--config-name reward_model/reward_sql_cpu)
  else
    command=("$PY" -m torch.distributed.run --standalone --nproc_per_node="$GPUS" -m verl_sql.prm.train)
  fi
  launched "${command[@]}" policy="$MODEL" labels="$labels" out="$OUT/$name/model" metrics="$OUT/$name/metrics.jsonl" \
    outcome="$outcome" training.seed="$SEED" "${reward_model_overrides[@]}"
}

train_reward_model() {
  local name=$1
  reward_model_overrides=("${@:2}")
  stage "$name" fit_reward_model "${label_sources[@]}" "model=$(reference "$MODEL")" "seed=$SEED" \
    "overrides=${reward_model_overrides[*]}" "${TRAINING_CODE[@]}"
}

reward_model_main() {
  local name=$1
  shift
  set_up
  check_inputs
  label_inputs
  begin "$TITLE" "$@"
  prepare_data
  if [ "$PROFILE" = cpu ] && [ -z "$MODEL" ]; then
    make_policy
    cold_start
  fi
  check_prompts
  make_labels
  train_reward_model "$name" "${OVERRIDES[@]}"
  echo "verl_sql: the model is in $OUT/$name/model"
}
