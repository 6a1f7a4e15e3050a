#!/usr/bin/env bash
# Reward-SQL: a policy learns to answer with a chain of CTEs, by a cold start (SFT) first, then by GRPO on the rule-based
# outcome reward (the process reward model joins later). Run with verl 0.9.1.
#
#   bash recipes/reward_sql_grpo.sh                       without a GPU: sample, tiny policy, cold start, GRPO, report
#   MODEL=… BIRD_DIR=… bash recipes/reward_sql_grpo.sh    with GPUs: GRPO on BIRD from MODEL, the cold-started policy
#   TRAIN_FILE=… VAL_FILE=… DB_ROOT=… bash …              your own parquet, from data_prep
#   bash recipes/reward_sql_grpo.sh trainer.total_training_steps=2     what follows the name is a hydra override for verl
#
# Settings: recipes/conf/recipe/reward_sql_grpo.yaml (the paper's), recipes/conf/small/reward_sql_grpo.yaml (CPU).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/common.sh"

SEED=${SEED:-0}
OUT=${OUT:-$ROOT/outputs/reward_sql_grpo/$(date +%Y%m%d_%H%M%S)}
MODEL=${MODEL:-}           # policy to train; on CPU a tiny one is made when it is empty
BIRD_DIR=${BIRD_DIR:-}     # BIRD as its archives unpack
TRAIN_FILE=${TRAIN_FILE:-} # parquet instead of BIRD or the sample, with VAL_FILE and DB_ROOT
VAL_FILE=${VAL_FILE:-}
DB_ROOT=${DB_ROOT:-}
COLD_START_STEPS=${COLD_START_STEPS:-1100} # CPU; 0 leaves the cold start out
COLD_START_LR=${COLD_START_LR:-4e-3}
FLAWED_SHARE=${FLAWED_SHARE:-0.6}          # of the sample's questions that know a typical mistake, see README
SAMPLE=(${SAMPLE:-})                       # keys for data_prep/sample.py, say "sizes.train=100 sizes.test=50"
EVALUATE=${EVALUATE:-test,unseen}          # the sample's splits that accuracy is measured on before and after
MAX_PROMPT_LENGTH=${MAX_PROMPT_LENGTH:-}

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
  local name # the trainer's processes have working folders of their own
  for name in TRAIN_FILE VAL_FILE DB_ROOT BIRD_DIR MODEL; do
    if [ -e "${!name}" ]; then printf -v "$name" %s "$(realpath "${!name}")"; fi
  done
}

preflight() { "$PY" -m verl_sql.integration.preflight "$@" || exit 2; }

prepare_sample() {
  "$PY" "$ROOT/data_prep/sample.py" out="$OUT/sample" seed="$SEED" "${SAMPLE[@]}"
  # Without example values: a policy this small cannot use them, and they take a third of the prompt.
  "$PY" "$ROOT/data_prep/bird.py" source="$OUT/sample" out="$OUT/data" splits=[cold_start,train,dev,test,unseen] \
    settings.train_splits=[cold_start,train] settings.template=compact settings.examples=0
}

prepare_bird() {
  "$PY" "$ROOT/data_prep/bird.py" source="$BIRD_DIR" out="$OUT/data" splits=[train,dev] settings.template=reward_sql \
    settings.tokenizer="$MODEL" settings.max_prompt_tokens="${MAX_PROMPT_LENGTH:=4096}"
}

# Sets train, validation (an array), db_root and, on CPU, cold: the parquet that the cold start learns from.
prepare_data() {
  if [ -n "$TRAIN_FILE" ]; then
    train=$TRAIN_FILE cold=$TRAIN_FILE validation=("$VAL_FILE") db_root=$DB_ROOT
  elif [ "$PROFILE" = gpu ]; then
    stage data prepare_bird
    train=$OUT/data/train.parquet validation=("$OUT/data/dev.parquet") db_root=$BIRD_DIR
  else
    stage data prepare_sample
    train=$OUT/data/train.parquet cold=$OUT/data/cold_start.parquet db_root=$OUT/sample
    mapfile -t validation < <(tr , '\n' <<<"$EVALUATE" | sed "s|.*|$OUT/data/&.parquet|")
  fi
}

make_policy() {
  "$PY" "$ROOT/data_prep/cold_start.py" source="$cold" out="$OUT/data/cold_start_sft.parquet" \
    flawed_share="$FLAWED_SHARE" seed="$SEED" or_sql=true
  if [ -z "$MODEL" ]; then
    "$PY" -m verl_sql.integration.make_tiny_policy "$OUT/data/cold_start_sft.parquet" "$OUT/policy" --seed "$SEED"
    MODEL=$OUT/policy
  fi
}

cold_start() {
  local args=(
    data.train_files="$OUT/data/cold_start_sft.parquet" data.train_batch_size=8 data.micro_batch_size_per_gpu=8
    data.max_length=8192 data.use_dynamic_bsz=False data.num_workers=0 data.ignore_input_ids_mismatch=True
    model.path="$MODEL" model.use_remove_padding=False model.enable_gradient_checkpointing=False
    +model.override_config.attn_implementation=sdpa
    engine.strategy=fsdp2 engine.use_torch_compile=False +engine.mixed_precision.param_dtype=fp32
    +engine.mixed_precision.reduce_dtype=fp32 +engine.mixed_precision.buffer_dtype=fp32
    optim.lr="$COLD_START_LR" optim.betas=[0.9,0.98] optim.lr_warmup_steps_ratio=0.06
    optim.lr_scheduler_type=cosine optim.min_lr_ratio=0.1
    checkpoint.save_contents=[model,hf_model]
    trainer.device=cpu trainer.n_gpus_per_node=1 trainer.total_epochs=1000 trainer.seed="$SEED"
    trainer.total_training_steps="$COLD_START_STEPS" trainer.save_freq=1000000 trainer.test_freq=-1
    trainer.resume_mode=disable "trainer.logger=[file]" trainer.default_local_dir="$OUT/cold_start"
    hydra.run.dir="$OUT/hydra/cold_start"
  )
  VERL_FILE_LOGGER_PATH="$OUT/cold_start_metrics.jsonl" launched \
    "$PY" -m torch.distributed.run --standalone --nproc_per_node=1 -m verl.trainer.sft_trainer "${args[@]}"
  MODEL=$OUT/cold_start/global_step_$COLD_START_STEPS/huggingface
}

grpo() {
  local args=(
    'hydra.searchpath=[pkg://verl_sql.integration.conf,pkg://verl_sql.recipes.conf]' +recipe=reward_sql_grpo
    data.train_files="$train" "data.val_files=[$(IFS=,; echo "${validation[*]}")]" data.seed="$SEED"
    data.max_prompt_length="$MAX_PROMPT_LENGTH"
    actor_rollout_ref.model.path="$MODEL" actor_rollout_ref.actor.data_loader_seed="$SEED"
    actor_rollout_ref.rollout.seed="$SEED"
    +reward.custom_reward_function.reward_kwargs.db_root="$db_root"
    trainer.default_local_dir="$OUT/grpo" trainer.validation_data_dir="$OUT/validation"
    trainer.rollout_data_dir="$OUT/rollouts" hydra.run.dir="$OUT/hydra/grpo"
  )
  if [ "$PROFILE" = cpu ]; then args+=(+preset=cpu +small=reward_sql_grpo); fi
  VERL_FILE_LOGGER_PATH="$OUT/metrics.jsonl" launched "$PY" -m verl.trainer.main_ppo "${args[@]}" "$@"
}

# The final policy, where a user looks for it.
keep_checkpoint() {
  local last
  last=$(cat "$OUT/grpo/latest_checkpointed_iteration.txt")
  cp -r "$OUT/grpo/global_step_$last/actor/huggingface" "$OUT/checkpoint"
}

describe_run() {
  "$PY" -m verl_sql.integration.run_record "$OUT/run.json" recipe=reward_sql_grpo profile="$PROFILE" seed="$SEED" \
    model="$MODEL" train="$train" db_root="$db_root" cold_start_steps="$COLD_START_STEPS" flawed_share="$FLAWED_SHARE" \
    overrides="$*" --evaluation "${validation[@]}"
}

main() {
  set_up
  check_inputs
  mkdir -p "$OUT"
  OUT=$(cd "$OUT" && pwd)
  [ ! -e "$OUT/stages.jsonl" ] || fail "$OUT holds an earlier run; choose another folder with OUT="
  echo "verl_sql: Reward-SQL on the $PROFILE profile, trained on the rule-based outcome alone; everything goes to $OUT"
  local train cold db_root validation
  prepare_data
  if [ -f "$OUT/data/golds.jsonl" ]; then export VERL_SQL_GOLD_CACHE=$OUT/data/golds.jsonl; fi
  if [ "$PROFILE" = cpu ]; then stage policy make_policy; fi
  : "${MAX_PROMPT_LENGTH:=$(longest_prompt)}"
  preflight --train "$train" "${validation[@]/#/--val=}" --db-root "$db_root" --model "$MODEL" \
    --max-prompt-length "$MAX_PROMPT_LENGTH"
  if [ "$PROFILE" = cpu ] && [ "$COLD_START_STEPS" != 0 ]; then stage cold_start cold_start; fi
  describe_run "$@"
  stage grpo grpo "$@"
  keep_checkpoint
  "$VENV/bin/verl-sql" report "$OUT"
}

longest_prompt() {
  "$PY" -m verl_sql.integration.preflight --print-longest --model "$MODEL" --train "$train" "${validation[@]/#/--val=}"
}

main "$@"; exit
