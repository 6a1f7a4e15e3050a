#!/usr/bin/env bash
# Sparks of Tabular Reasoning, first stage (paper §3.1): fine-tuning with adapters on chains of thought that a verifier let
# pass. Run with verl 0.9.1.
#
#   bash recipes/tabular_reasoning_sft.sh                 without a GPU: the sample's answers, a tiny policy
#   MODEL=… BIRD_DIR=… TEACHER_URL=http://…/v1 bash …     with GPUs: chains of thought of the teacher, on BIRD
#   SFT_FILE=thoughts.parquet MODEL=… bash …              a set that is there already
#   bash recipes/tabular_reasoning_sft.sh model.lora_rank=64   what follows the name is a hydra override
#
# The paper's questions are Clinton/Text-to-sql-v1, which has no databases: nothing of it can be verified by execution.
# The verifier here is execution, so the chains of thought are BIRD's. QLoRA, the paper's, is not in verl's FSDP trainer (it
# loads no 4-bit weights): this is LoRA on weights in bf16, which learns the same adapters and needs more memory.
#
# Settings: recipes/conf/sft/tabular_reasoning_sft.yaml, the variables at the top of recipes/lib/paper_sft.sh.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/paper_sft.sh"

RECIPE=tabular_reasoning_sft
TITLE="Sparks of Tabular Reasoning, chains of thought,"
TEMPLATE=tabular
STYLE=sql
# Adapters would leave a policy that is made from nothing as it was drawn; model.lora_rank=16 has them all the same.
SMALL_SFT=(model.lora_rank=0)

write_paper_set() { traces distilled style=sql_tag reasoning=true out="$1"; }

main "$@"; exit
