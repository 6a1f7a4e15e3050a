#!/usr/bin/env bash
# Reward-SQL, first stage (paper §4.1, §5.1): the cold start, supervised fine-tuning on gold queries rewritten as chains
# of CTEs. Run with verl 0.9.1.
#
#   bash recipes/reward_sql_sft.sh                        without a GPU: the sample's chains, a tiny policy
#   MODEL=… BIRD_DIR=… bash recipes/reward_sql_sft.sh     with GPUs: BIRD's golds, converted by rule
#   TEACHER_URL=http://…/v1 …                             besides, chains that this model writes, as in the paper
#   SFT_FILE=chains.parquet MODEL=… bash …                a set that is there already
#   bash recipes/reward_sql_sft.sh trainer.total_epochs=1 what follows the name is a hydra override for verl's SFT trainer
#
# Settings: recipes/conf/sft/reward_sql_sft.yaml (the paper's), the variables at the top of recipes/lib/paper_sft.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/paper_sft.sh"

RECIPE=reward_sql_sft
TITLE="Reward-SQL, cold start,"
TEMPLATE=reward_sql
STYLE=chain
NEEDS_TEACHER=

write_paper_set() {
  local model=()
  if [ -n "$TEACHER_URL" ]; then
    model=(settings.llm.base_url="$TEACHER_URL" settings.llm.model="${TEACHER_MODEL:-null}" settings.llm.rows=all)
  fi
  "$PY" "$ROOT/data_prep/cocte.py" "sources=[$train]" db_root="$db_root" out="$OUT/sft_set/chains" "${model[@]}"
  "$PY" "$ROOT/data_prep/sft.py" kind=chains source="$OUT/sft_set/chains/$(basename "$train")" out="$1"
}

main "$@"; exit
