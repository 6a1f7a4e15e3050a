#!/usr/bin/env bash
# Sparks of Tabular Reasoning, second stage: GRPO with edit count, string match, component match and a judge's classes;
# reasoning first, then the answer in <sql>…</sql>. Run with verl 0.9.1.
#
#   bash recipes/tabular_reasoning_grpo.sh                       no GPU: sample, tiny policy, cold start, GRPO, report
#   MODEL=… BIRD_DIR=… bash recipes/tabular_reasoning_grpo.sh    with GPUs: GRPO on BIRD from MODEL
#   ADVANTAGE=gae bash recipes/tabular_reasoning_grpo.sh         PPO: a critic and GAE instead of the group's mean
#   JUDGE_BASE_URL=…/v1 JUDGE_MODEL=… bash …                     a judge behind an OpenAI-compatible endpoint
#
# Without a judge edits are counted by token, and the term of its classes is 0 for SQL that is not right.
# MODEL is the policy after the first stage, SFT on verified chains of thought.
#
# Further variables, STAGES and CACHE: recipes/lib/. Hydra overrides for verl follow the name. Settings:
# recipes/conf/recipe/tabular_reasoning_grpo.yaml (the paper's) and recipes/conf/small/tabular_reasoning_grpo.yaml (CPU).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib/grpo.sh"

RECIPE=tabular_reasoning_grpo
TITLE="Sparks of Tabular Reasoning's four rewards"
TEMPLATE=tabular
STYLE=sql

main "$@"; exit
