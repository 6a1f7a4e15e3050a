# ReToolSQL's prompts, tools and warm start; sourced by recipes/retoolsql_{sft,rft,infer}.sh.
#
#   prepare_data (data.sh)   afterwards train and validation hold prompts for the agent loop verl_sql_tools; on a CPU also
#                            the same test questions without tools, and cold, the questions of the warm start
#   make_policy              stages sft_set (tool traces) and, on a CPU without MODEL, policy; sets MODEL
#   warm_start               stage cold_start: SFT on the tool traces; sets MODEL
#   tools                    overrides for verl: where the tools are; VERL_SQL_DB_ROOT is set for them
#   tool_table FILE...       the table (no tools, tools) x (policy) out of validation dumps
#
# On a CPU the questions are the sample of look-ups: names whose stored spelling has to be looked up. With GPUs they are
# BIRD's under the enriched M-Schema, and the teacher is a model behind an endpoint that sees the gold.
EVALUATE=${EVALUATE:-test,test_no_tools,unseen,unseen_no_tools}
COLD_START_STEPS=${COLD_START_STEPS:-1500}
source "$(dirname "${BASH_SOURCE[0]}")/grpo.sh"
TEACHER_URL=${TEACHER_URL:-}       # GPU: OpenAI-compatible endpoint of the teacher, ending in /v1
TEACHER_MODEL=${TEACHER_MODEL:-}   # its name there; the first it lists when empty
SELF_TRACES=${SELF_TRACES:-}       # GPU: verl dumps of the policy's own trajectories, with spaces between
PLAIN_SHARE=${PLAIN_SHARE:-0.25}   # CPU: share of the warm start that answers without tools, under prompts without
TOOL_TOKENS=${TOOL_TOKENS:-640}    # room in a prompt for what a chat template says of the tools
TEMPLATE=retoolsql
DATA=(settings.form=enriched)
DATA_CODE+=("code.tools=@$ROOT/verl_sql/tools")
TRACE_CODE=("data_prep=@$ROOT/data_prep")
for room in tools sqltext database dataset/tool_traces dataset/sft; do TRACE_CODE+=("code.$room=@$ROOT/verl_sql/$room"); done

tools=("actor_rollout_ref.rollout.multi_turn.tool_config_path=$ROOT/verl_sql/integration/conf/tools.yaml")

make_sample() { "$PY" "$ROOT/data_prep/sample.py" questions=lookups out="$OUT/sample" seed="$SEED" "${SAMPLE[@]}"; }

# for_agents FOLDER OUT SPLIT [KEY=VALUE...]: a prepared split with what agent loops read.
for_agents() { "$PY" "$ROOT/data_prep/multi_turn.py" source="$1/$3.parquet" out="$2" "${@:4}"; }

prepare_sample() {
  local split
  local shown=(settings.train_splits=[cold_start,train] settings.form=compact settings.examples=0)
  for split in compact compact_tools; do
    "$PY" "$ROOT/data_prep/bird.py" source="$OUT/sample" out="$OUT/data/$split" splits=[cold_start,train,test,unseen] \
      settings.template="$split" "${shown[@]}"
  done
  for split in cold_start train test unseen; do
    for_agents "$OUT/data/compact_tools" "$OUT/data/$split.parquet" "$split"
  done
  for split in test unseen; do
    for_agents "$OUT/data/compact" "$OUT/data/${split}_no_tools.parquet" "$split" agent=single_turn_agent mark=no_tools
  done
  cp "$OUT/data/compact/golds.jsonl" "$OUT/data/golds.jsonl"
}

prepare_bird() {
  local split
  "$PY" "$ROOT/data_prep/bird.py" source="$BIRD_DIR" out="$OUT/data/prompts" splits=[train,dev] \
    settings.template="$TEMPLATE" settings.tokenizer="$MODEL" \
    settings.max_prompt_tokens=$((MAX_PROMPT_LENGTH - TOOL_TOKENS)) "${DATA[@]}"
  for split in train dev; do for_agents "$OUT/data/prompts" "$OUT/data/$split.parquet" "$split"; done
  cp "$OUT/data/prompts/golds.jsonl" "$OUT/data/golds.jsonl"
}

# The script's traces of the sample; prompts without tools for a share of the questions.
script_traces() {
  use_tools
  "$PY" "$ROOT/data_prep/tool_traces.py" source="$cold" plain="$OUT/data/compact/cold_start.parquet" \
    plain_share="$PLAIN_SHARE" db_root="$db_root" seed="$SEED" out="$OUT/sft_set/cold_start.parquet"
}

# A model's traces, and the policy's own if there are any.
model_traces() {
  use_tools
  "$PY" "$ROOT/data_prep/tool_traces.py" teacher=model source="$train" db_root="$db_root" seed="$SEED" \
    endpoint.base_url="$TEACHER_URL" endpoint.model="${TEACHER_MODEL:-null}" out="$OUT/sft_set/cold_start.parquet"
  if [ -n "$SELF_TRACES" ]; then
    "$PY" "$ROOT/data_prep/sft.py" kind=traces source="$train" db_root="$db_root" style=answer_tag \
      rollouts="[${SELF_TRACES// /,}]" out="$OUT/sft_set/own.parquet"
  fi
}

make_policy() {
  if [ "$PROFILE" = gpu ] || [ -n "$TRAIN_FILE" ]; then
    stage sft_set model_traces "${data_inputs[@]}" "teacher=$TEACHER_URL $TEACHER_MODEL" "own=$SELF_TRACES" "seed=$SEED" \
      "${TRACE_CODE[@]}"
    return
  fi
  stage sft_set script_traces "${data_inputs[@]}" "plain_share=$PLAIN_SHARE" "seed=$SEED" "${TRACE_CODE[@]}"
  if [ -n "$MODEL" ]; then return; fi
  stage policy tiny_policy "sft_set=@$OUT/sft_set" "seed=$SEED" \
    "code.policy=@$ROOT/verl_sql/integration/tiny_policy.py" "code.make=@$ROOT/verl_sql/integration/make_tiny_policy.py"
  MODEL=$OUT/policy
}

with_tools=(data.custom_cls.path=pkg://verl_sql.integration.tool_sft data.custom_cls.name=ToolSFTDataset)

warm_start_small() {
  sft "$OUT/sft_set/cold_start.parquet" "$MODEL" "$1" "$COLD_START_STEPS" "$COLD_START_LR" "${with_tools[@]}"
}

warm_start() {
  if [ "$COLD_START_STEPS" = 0 ]; then return; fi
  stage cold_start warm_start_small "sft_set=@$OUT/sft_set" "model=$(reference "$MODEL")" "seed=$SEED" \
    "steps=$COLD_START_STEPS" "lr=$COLD_START_LR" "sft=$(declare -f sft)" "$CPU_CODE" \
    "code.dataset=@$ROOT/verl_sql/integration/tool_sft.py"
  MODEL=$(sft_policy cold_start "$COLD_START_STEPS")
}

# The tools look databases up where the run has them; what they index is kept with the cache.
use_tools() {
  export VERL_SQL_DB_ROOT=$db_root VERL_SQL_LITERALS=$CACHE/literals
  "$PY" -m verl_sql.database.literals "$db_root"
}

tool_table() { "$PY" -m verl_sql.evaluation.tool_table "$@"; }
