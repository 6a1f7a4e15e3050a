# Supervised fine-tuning with verl's trainer in small, and the cold start; sourced.
#
#   sft SET MODEL NAME STEPS LR [OVERRIDE...]   train MODEL on a parquet in SFT_SCHEMA into $OUT/NAME, on a CPU; the
#                                               policy is then in $(sft_policy NAME STEPS)
#   make_policy                                 stages sft_set and, without MODEL, policy (part cold_start); sets MODEL
#   cold_start                                  stage cold_start; sets MODEL
#
# A recipe sets STYLE, how the answers of the cold start are written (see data_prep/cold_start.py).
source "$(dirname "${BASH_SOURCE[0]}")/data.sh"
COLD_START_STEPS=${COLD_START_STEPS:-1100} # CPU; 0 leaves the cold start out
COLD_START_LR=${COLD_START_LR:-4e-3}
FLAWED_SHARE=${FLAWED_SHARE:-0.6}          # of the sample's questions that know a typical mistake, see README
STYLE=chain
PART[sft_set]=cold_start
PART[policy]=cold_start
CPU_CODE="code.cpu=@$ROOT/verl_sql/integration/cpu_platform.py"

sft_policy() { echo "$OUT/$1/global_step_$2/huggingface"; }

sft() {
  local set=$1 model=$2 name=$3 steps=$4 lr=$5
  shift 5
  local args=(
    data.train_files="$set" data.train_batch_size=8 data.micro_batch_size_per_gpu=8
    data.max_length=8192 data.use_dynamic_bsz=False data.num_workers=0 data.ignore_input_ids_mismatch=True
    model.path="$model" model.use_remove_padding=False model.enable_gradient_checkpointing=False
    +model.override_config.attn_implementation=sdpa
    engine.strategy=fsdp2 engine.use_torch_compile=False +engine.mixed_precision.param_dtype=fp32
    +engine.mixed_precision.reduce_dtype=fp32 +engine.mixed_precision.buffer_dtype=fp32
    optim.lr="$lr" optim.betas=[0.9,0.98] optim.lr_warmup_steps_ratio=0.06
    optim.lr_scheduler_type=cosine optim.min_lr_ratio=0.1
    checkpoint.save_contents=[model,hf_model]
    trainer.device=cpu trainer.n_gpus_per_node=1 trainer.total_epochs=1000 trainer.seed="$SEED"
    trainer.total_training_steps="$steps" trainer.save_freq=1000000 trainer.test_freq=-1
    trainer.resume_mode=disable "trainer.logger=[file]" trainer.default_local_dir="$OUT/$name"
    hydra.run.dir="$OUT/hydra/$name"
  )
  VERL_FILE_LOGGER_PATH="$OUT/$name/metrics.jsonl" launched \
    "$PY" -m torch.distributed.run --standalone --nproc_per_node=1 -m verl.trainer.sft_trainer "${args[@]}" "$@"
}

write_sft_set() {
  "$PY" "$ROOT/data_prep/cold_start.py" source="$cold" out="$OUT/sft_set/cold_start.parquet" \
    flawed_share="$FLAWED_SHARE" seed="$SEED" or_sql=true style="$STYLE"
}

tiny_policy() {
  "$PY" -m verl_sql.integration.make_tiny_policy "$OUT/sft_set/cold_start.parquet" "$OUT/policy" --seed "$SEED"
}

make_policy() {
  stage sft_set write_sft_set "${data_inputs[@]}" "flawed_share=$FLAWED_SHARE" "seed=$SEED" "style=$STYLE" \
    "code.cold_start=@$ROOT/verl_sql/dataset/cold_start.py" "code.styles=@$ROOT/verl_sql/dataset/answer_styles.py"
  if [ -n "$MODEL" ]; then return; fi
  stage policy tiny_policy "sft_set=@$OUT/sft_set" "seed=$SEED" \
    "code.policy=@$ROOT/verl_sql/integration/tiny_policy.py" "code.make=@$ROOT/verl_sql/integration/make_tiny_policy.py"
  MODEL=$OUT/policy
}

train_cold_start() { sft "$OUT/sft_set/cold_start.parquet" "$MODEL" "$1" "$COLD_START_STEPS" "$COLD_START_LR"; }

cold_start() {
  if [ "$COLD_START_STEPS" = 0 ]; then return; fi
  stage cold_start train_cold_start "sft_set=@$OUT/sft_set" "model=$(reference "$MODEL")" "seed=$SEED" \
    "steps=$COLD_START_STEPS" "lr=$COLD_START_LR" "sft=$(declare -f sft)" "$CPU_CODE"
  MODEL=$(sft_policy cold_start "$COLD_START_STEPS")
}
