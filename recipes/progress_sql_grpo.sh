#!/usr/bin/env bash
# Progress-SQL: a policy refines its SQL over turns. GRPO over whole trajectories (agent loop verl_sql_refine) with
# progressive, latency and status rewards; in training it is told which clause differs from the gold and how, never what
# the gold says, in validation what its SQL gave. Run with verl 0.9.1.
#
#   bash recipes/progress_sql_grpo.sh                       no GPU: sample, tiny policy, warm start, GRPO, report
#   MODEL=… BIRD_DIR=… bash recipes/progress_sql_grpo.sh    with GPUs: GRPO on BIRD from MODEL
#   bash … refinement.turns=4 refinement.feedback=both      what follows the name is a hydra override for verl
#
# On a CPU the warm start is made of conversations in two turns: a question's typical flawed chain, or one that fails,
# then feedback, then the right chain (data_prep/refinement_traces.py).
#
# Further variables, STAGES and CACHE: recipes/lib/. The paper's settings are not public: those in
# recipes/conf/recipe/progress_sql_grpo.yaml are ours, as are recipes/conf/small/progress_sql_grpo.yaml (CPU).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/grpo.sh"

RECIPE=progress_sql_grpo
TITLE="Progress-SQL, refinement over turns,"
TEMPLATE=progress_sql
FAILING_SHARE=${FAILING_SHARE:-0.1} # CPU: of the warm start's other questions, how many begin with SQL that fails

write_refinement_set() {
  "$PY" "$ROOT/data_prep/refinement_traces.py" source="$cold" out="$OUT/sft_set/cold_start.parquet" db_root="$db_root" \
    flawed_share="$FLAWED_SHARE" failing_share="$FAILING_SHARE" seed="$SEED"
}

make_policy() {
  stage sft_set write_refinement_set "${data_inputs[@]}" "flawed_share=$FLAWED_SHARE" "failing_share=$FAILING_SHARE" \
    "seed=$SEED" "code.traces=@$ROOT/verl_sql/dataset/refinement_traces.py" \
    "code.sqltext=@$ROOT/verl_sql/sqltext" "code.feedback=@$ROOT/verl_sql/database/feedback.py"
  if [ -n "$MODEL" ]; then return; fi
  stage policy tiny_policy "sft_set=@$OUT/sft_set" "seed=$SEED" \
    "code.policy=@$ROOT/verl_sql/integration/tiny_policy.py" "code.make=@$ROOT/verl_sql/integration/make_tiny_policy.py"
  MODEL=$OUT/policy
}

# Right at once, right in the end, repairs that worked and hurt; before and after training.
turn_table() { "$PY" -m verl_sql.evaluation.turn_table "$OUT" --out "$OUT/turn_table.json"; }

main "$@"; turn_table; exit
