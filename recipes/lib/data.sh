# Where a recipe's questions come from; sourced.
#
#   check_inputs      refuses wrong settings in one sentence; before anything is started
#   prepare_data      stages sample and data (part data). Afterwards: train, validation (an array), db_root; on a CPU
#                     cold, the parquet that the cold start learns from; data_inputs, what they come from, as inputs
#   check_prompts     every prompt fits; sets MAX_PROMPT_LENGTH to the longest if it is empty
#
# A recipe sets TEMPLATE (prompt of verl_sql/prompts) and DATA (further keys for data_prep/bird.py); both are for GPUs.
# On a CPU the prompt is `compact`, without example values: a tiny policy can read no instructions, and cannot use the
# values, which take a third of the prompt.
source "$(dirname "${BASH_SOURCE[0]}")/stages.sh"
SEED=${SEED:-0}
MODEL=${MODEL:-}           # policy to train; on CPU a tiny one is made when it is empty
BIRD_DIR=${BIRD_DIR:-}     # BIRD as its archives unpack
TRAIN_FILE=${TRAIN_FILE:-} # parquet instead of BIRD or the sample, with VAL_FILE and DB_ROOT
VAL_FILE=${VAL_FILE:-}
DB_ROOT=${DB_ROOT:-}
SAMPLE=(${SAMPLE:-})             # keys for data_prep/sample.py, say "sizes.train=100 sizes.test=50"
EVALUATE=${EVALUATE:-test,unseen} # the sample's splits that accuracy is measured on before and after
MAX_PROMPT_LENGTH=${MAX_PROMPT_LENGTH:-}
TEMPLATE=reward_sql
DATA=()
PART[sample]=data
DATA_CODE=("data_prep=@$ROOT/data_prep")
for room in dataset schema database sqltext prompts; do DATA_CODE+=("code.$room=@$ROOT/verl_sql/$room"); done

check_inputs() {
  if [ -n "$TRAIN_FILE$VAL_FILE" ]; then
    [ -n "$TRAIN_FILE" ] && [ -n "$VAL_FILE" ] && [ -n "$DB_ROOT" ] || fail "TRAIN_FILE, VAL_FILE and DB_ROOT go together; set all three"
  elif [ "$PROFILE" = gpu ]; then
    [ -n "$BIRD_DIR" ] || fail "set BIRD_DIR to BIRD's folder (or TRAIN_FILE, VAL_FILE and DB_ROOT to parquet of your own)"
    [ -d "$BIRD_DIR" ] || fail "BIRD_DIR=$BIRD_DIR is not a folder"
  elif [ -n "$BIRD_DIR" ]; then
    fail "BIRD_DIR is for GPUs; on a CPU prepare parquet with data_prep/bird.py and set TRAIN_FILE, VAL_FILE and DB_ROOT"
  fi
  [ "$PROFILE" = cpu ] || [ -n "$MODEL" ] || fail "set MODEL to the policy to train (a folder, or a name on the hub)"
  preflight ${TRAIN_FILE:+--train "$TRAIN_FILE" --val "$VAL_FILE" --db-root "$DB_ROOT"} ${MODEL:+--model "$MODEL"}
  absolute TRAIN_FILE VAL_FILE DB_ROOT BIRD_DIR MODEL
}

make_sample() { "$PY" "$ROOT/data_prep/sample.py" out="$OUT/sample" seed="$SEED" "${SAMPLE[@]}"; }

prepare_sample() {
  "$PY" "$ROOT/data_prep/bird.py" source="$OUT/sample" out="$OUT/data" splits=[cold_start,train,dev,test,unseen] \
    settings.train_splits=[cold_start,train] settings.template=compact settings.examples=0
}

prepare_bird() {
  "$PY" "$ROOT/data_prep/bird.py" source="$BIRD_DIR" out="$OUT/data" splits=[train,dev] settings.template="$TEMPLATE" \
    settings.tokenizer="$MODEL" settings.max_prompt_tokens="$MAX_PROMPT_LENGTH" "${DATA[@]}"
}

prepare_data() {
  if [ -n "$TRAIN_FILE" ]; then
    train=$TRAIN_FILE cold=$TRAIN_FILE validation=("$VAL_FILE") db_root=$DB_ROOT
    data_inputs=("train=@$TRAIN_FILE" "val=@$VAL_FILE" "db_root=@$DB_ROOT")
    return
  fi
  if [ "$PROFILE" = gpu ]; then
    : "${MAX_PROMPT_LENGTH:=4096}"
    stage data prepare_bird "bird=@$BIRD_DIR" "template=$TEMPLATE" "settings=${DATA[*]}" "tokenizer=$(reference "$MODEL")" \
      "max_prompt_length=$MAX_PROMPT_LENGTH" "${DATA_CODE[@]}"
    train=$OUT/data/train.parquet validation=("$OUT/data/dev.parquet") db_root=$BIRD_DIR
  else
    stage sample make_sample "seed=$SEED" "sizes=${SAMPLE[*]}" "data_prep=@$ROOT/data_prep" \
      "code.sample=@$ROOT/verl_sql/dataset/sample"
    stage data prepare_sample "sample=@$OUT/sample" "${DATA_CODE[@]}"
    train=$OUT/data/train.parquet cold=$OUT/data/cold_start.parquet db_root=$OUT/sample
    mapfile -t validation < <(tr , '\n' <<<"$EVALUATE" | sed "s|.*|$OUT/data/&.parquet|")
  fi
  data_inputs=("data=@$OUT/data" "evaluate=$EVALUATE")
  export VERL_SQL_GOLD_CACHE=$OUT/data/golds.jsonl # what data preparation found out about the golds
}

# reference PATH: as an input of a stage, what lies there; a name on the hub as it is.
reference() { if [ -e "$1" ]; then echo "@$1"; else echo "$1"; fi; }

check_prompts() {
  preflight --train "$train" "${validation[@]/#/--val=}" --db-root "$db_root" --model "$MODEL" \
    --max-prompt-length "${MAX_PROMPT_LENGTH:-0}" --longest-to "$OUT/longest_prompt.txt"
  : "${MAX_PROMPT_LENGTH:=$(cat "$OUT/longest_prompt.txt")}"
}
