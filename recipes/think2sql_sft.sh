#!/usr/bin/env bash
# Think2SQL's supervised stage (paper §2.3, Appendix): fine-tuning on traces of a larger model, only those whose execution
# accuracy is 1.0; loss on the completion. Run with verl 0.9.1.
#
#   bash recipes/think2sql_sft.sh                         without a GPU: the sample's answers, a tiny policy
#   MODEL=… BIRD_DIR=… TEACHER_URL=http://…/v1 bash …     with GPUs: traces of the teacher, on BIRD
#   SFT_FILE=traces.parquet MODEL=… bash …                a set that is there already
#   bash recipes/think2sql_sft.sh trainer.total_epochs=1  what follows the name is a hydra override for verl's SFT trainer
#
# Settings: recipes/conf/sft/think2sql_sft.yaml (the paper's), the variables at the top of recipes/lib/paper_sft.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/paper_sft.sh"

RECIPE=think2sql_sft
TITLE="Think2SQL, distilled traces,"
TEMPLATE=think2sql
DATA=(settings.scope=gold_tables)
STYLE=think

write_paper_set() { traces distilled style=answer_tag reasoning=true out="$1"; }

main "$@"; exit
