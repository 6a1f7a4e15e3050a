# A paper's supervised stage: questions, a set to learn from, verl's SFT trainer; sourced. Gives `main`.
#
#   SFT_FILE=set.parquet    a ready set (SFT_SCHEMA, of data_prep/sft.py) instead of making one
#   TEACHER_URL=http://…/v1 the model whose answers are kept when they are right; TEACHER_MODEL its name there
#
# Without a GPU, and without a teacher, the set is the bundled sample's own answers written in the paper's form, for a
# tiny policy that is made from it.
#
# A recipe sets RECIPE (its name, and that of recipes/conf/sft/$RECIPE.yaml), TITLE, STYLE (sft.sh), TEMPLATE and DATA
# (data.sh), and defines write_paper_set FILE: the paper's set of $train, made with a GPU or a teacher. NEEDS_TEACHER= (empty)
# says that this can do without one.
FLAWED_SHARE=${FLAWED_SHARE:-0} # SFT alone cannot unlearn mistakes, so the sample's answers have none here
source "$(dirname "${BASH_SOURCE[0]}")/sft.sh"
PARTS=(data sft_set sft)
PART[sft_set]=sft_set
PART[policy]=sft_set
NEEDS_TEACHER=1
SMALL_SFT=() # further overrides on a CPU
SFT_FILE=${SFT_FILE:-}
TEACHER_URL=${TEACHER_URL:-}
TEACHER_MODEL=${TEACHER_MODEL:-}
GPUS=${GPUS:-8}
MAX_LENGTH=${MAX_LENGTH:-8192} # tokens of a whole conversation
SFT_STEPS=${SFT_STEPS:-200}    # CPU
SFT_LR=${SFT_LR:-4e-3}         # CPU: a policy made from nothing learns from high rates only

sft_inputs() {
  if [ -z "$SFT_FILE" ]; then
    check_inputs
    if [ "$PROFILE" = gpu ] && [ -n "$NEEDS_TEACHER" ] && [ -z "$TEACHER_URL" ]; then
      fail "set TEACHER_URL to the teacher's endpoint (http://…/v1), or SFT_FILE to a ready set of data_prep/sft.py"
    fi
    return
  fi
  [ -f "$SFT_FILE" ] || fail "there is no set SFT_FILE=$SFT_FILE; make one with data_prep/sft.py"
  [ "$PROFILE" = cpu ] || [ -n "$MODEL" ] || fail "set MODEL to the policy to train (a folder, or a name on the hub)"
  preflight ${MODEL:+--model "$MODEL"}
  absolute SFT_FILE MODEL
}

# traces KIND KEY=VALUE...: a set of a teacher's answers to $train, those whose SQL is right.
traces() {
  local kind=$1
  shift
  "$PY" "$ROOT/data_prep/sft.py" kind="$kind" source="$train" db_root="$db_root" endpoint.base_url="$TEACHER_URL" \
    endpoint.model="${TEACHER_MODEL:-null}" "$@"
}

write_set() { write_paper_set "$OUT/$1/train.parquet"; }

copy_set() { cp "$SFT_FILE" "$OUT/$1/cold_start.parquet"; }

# Sets set, the parquet to learn from, and MODEL.
make_set() {
  set=$OUT/sft_set/cold_start.parquet
  if [ -n "$SFT_FILE" ]; then
    stage sft_set copy_set "set=@$SFT_FILE"
  elif [ "$PROFILE" = gpu ] || [ -n "$TEACHER_URL" ]; then
    set=$OUT/sft_set/train.parquet
    stage sft_set write_set "${data_inputs[@]}" "recipe=$RECIPE" "teacher=$TEACHER_URL $TEACHER_MODEL" \
      "function=$(declare -f write_paper_set traces)" "${DATA_CODE[@]}"
  else
    make_policy
    return
  fi
  if [ -n "$MODEL" ]; then return; fi
  stage policy policy_of_set "sft_set=@$OUT/sft_set" "seed=$SEED" "code.policy=@$ROOT/verl_sql/integration/tiny_policy.py"
  MODEL=$OUT/policy
}

policy_of_set() { "$PY" -m verl_sql.integration.make_tiny_policy "$set" "$OUT/$1" --seed "$SEED"; }

sft_small() {
  sft "$set" "$MODEL" "$1" "$SFT_STEPS" "$SFT_LR" 'hydra.searchpath=[pkg://verl_sql.recipes.conf]' +sft="$RECIPE" \
    "${SMALL_SFT[@]}" "${OVERRIDES[@]}"
}

sft_gpu() {
  VERL_FILE_LOGGER_PATH="$OUT/$1/metrics.jsonl" launched \
    "$PY" -m torch.distributed.run --standalone --nproc_per_node="$GPUS" -m verl.trainer.sft_trainer \
    'hydra.searchpath=[pkg://verl_sql.recipes.conf]' +sft="$RECIPE" data.train_files="$set" \
    data.max_length="$MAX_LENGTH" model.path="$MODEL" trainer.n_gpus_per_node="$GPUS" trainer.seed="$SEED" \
    trainer.default_local_dir="$OUT/$1" hydra.run.dir="$OUT/hydra/$1" "${OVERRIDES[@]}"
}

train_sft() {
  local last
  "sft_$([ "$PROFILE" = cpu ] && echo small || echo gpu)" "$1"
  last=$OUT/$1/global_step_$(cat "$OUT/$1/latest_checkpointed_iteration.txt")
  "$PY" -m verl_sql.integration.sft_policy "$last" "$OUT/$1/policy"
}

main() {
  local set data_inputs=()
  set_up
  sft_inputs
  begin "$TITLE" "$@"
  if [ -z "$SFT_FILE" ]; then prepare_data; fi
  make_set
  stage sft train_sft "recipe=$RECIPE" "sft_set=@$OUT/sft_set" "model=$(reference "$MODEL")" "seed=$SEED" \
    "steps=$SFT_STEPS" "lr=$SFT_LR" "length=$MAX_LENGTH" "overrides=${SMALL_SFT[*]} ${OVERRIDES[*]}" "conf=@$ROOT/recipes/conf/sft" \
    "sft=$(declare -f sft sft_small sft_gpu)" "code.policy=@$ROOT/verl_sql/integration/sft_policy.py" "$CPU_CODE"
  ln -sfn sft/policy "$OUT/checkpoint"
  ln -sfn sft/metrics.jsonl "$OUT/metrics.jsonl"
  echo "verl_sql: the fine-tuned policy is in $OUT/checkpoint"
}
