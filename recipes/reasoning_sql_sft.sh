#!/usr/bin/env bash
# Reasoning-SQL's supervised baseline (paper §5.1): STaR-SFT, fine-tuning on a model's own reasoning that ends in the right
# SQL; where nothing was right, the gold is shown as a hint and the model asked again. Run with verl 0.9.1.
#
#   bash recipes/reasoning_sql_sft.sh                     without a GPU: the sample's answers, a tiny policy
#   MODEL=… BIRD_DIR=… TEACHER_URL=http://…/v1 bash …     with GPUs: traces of the model behind the endpoint, on BIRD
#   SFT_FILE=star.parquet MODEL=… bash …                  a set that is there already
#   bash recipes/reasoning_sql_sft.sh trainer.total_epochs=1   what follows the name is a hydra override
#
# Settings: recipes/conf/sft/reasoning_sql_sft.yaml (the paper's), the variables at the top of recipes/lib/paper_sft.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/paper_sft.sh"

RECIPE=reasoning_sql_sft
TITLE="Reasoning-SQL, STaR-SFT,"
TEMPLATE=reasoning_sql
DATA=(settings.scope=linked_and_gold settings.evaluation_scope=linked)
STYLE=reasoning

write_paper_set() { traces star style=answer_tag reasoning=true out="$1"; }

main "$@"; exit
