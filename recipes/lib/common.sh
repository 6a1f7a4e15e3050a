# What every recipe needs; sourced, not run. The files of recipes/lib/ build on each other, each sources the one above:
#
#   common.sh    ROOT, VENV, PY, PROFILE; fail, set_up, launched, absolute, preflight
#   stages.sh    begin, stage, ended: a run's folder, stages with a cache, STAGES
#   data.sh      check_inputs, prepare_data, check_prompts: the bundled sample, BIRD, or parquet of the user's own
#   sft.sh       sft, make_policy, cold_start: verl's SFT trainer in small, the tiny policy and its cold start
#   grpo.sh      grpo_stage, describe_run, show_run, and a `main` for recipes that need nothing else
#
# A recipe sources the last one it needs, sets what differs, and ends in `main "$@"; exit` on one line: bash has then
# read all of the file before it runs any of it, so that a file edited during a run does no harm.
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
export VENV=${VENV:-$ROOT/.venv}
PY=$VENV/bin/python

fail() { echo "verl_sql: $*" >&2; exit 2; }

default_profile() { if [ -e /dev/nvidia0 ] || nvidia-smi -L 2>/dev/null | grep -q GPU; then echo gpu; else echo cpu; fi; }

# The environment, made if it is not there, and what every process of a run inherits.
set_up() {
  export PROFILE=${PROFILE:-$(default_profile)}
  bash "$ROOT/recipes/setup.sh"
  export HYDRA_FULL_ERROR=1 TOKENIZERS_PARALLELISM=false PYTHONUNBUFFERED=1
  unset PYTHONDONTWRITEBYTECODE # each of verl's processes would compile verl and torch anew
  if [ "$PROFILE" = cpu ]; then
    export VERL_PLATFORM=cpu VERL_ENGINE_DEVICE=cuda HF_HUB_OFFLINE=1 VLLM_CPU_KVCACHE_SPACE=${VLLM_CPU_KVCACHE_SPACE:-1}
    export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$(nproc --all | awk '{print ($1 < 4) ? $1 : 4}')}
  fi
}

# launched COMMAND...: a trainer, ended with one sentence if a worker of it dies. Its whole output goes to
# $OUT/console.log, the screen gets what SHOW matches (SHOW=. for everything).
SHOW=${SHOW:-'step [0-9]+ of .*|validation (before|after) .*|Epoch [0-9]+/[0-9]+: .* [0-9]*00/.*|[A-Za-z.]+(Error|Exception): .*|verl_sql: .*'}
launched() {
  "$PY" -m verl_sql.integration.launch --log "$OUT/console.log" --show "$SHOW" --grace "${GRACE:-45}" \
    --stall-seconds "${STALL_SECONDS:-900}" -- "$@"
}

# absolute NAME...: variables that name a file or folder get its whole path; a trainer's processes have working folders
# of their own. A value that is no path here (a model on the hub) stays.
absolute() {
  local name
  for name; do
    if [ -e "${!name}" ]; then printf -v "$name" %s "$(realpath "${!name}")"; fi
  done
}

# What is wrong with a run's inputs, in one sentence, before anything is started.
preflight() { "$PY" -m verl_sql.integration.preflight "$@" || exit 2; }
