# What the recipes share; sourced, not run. Gives ROOT, VENV, PROFILE and PY, and the functions below.
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

# stage NAME COMMAND...: say what begins, run it, note the seconds in $OUT/stages.jsonl.
stage() {
  local name=$1 began=$SECONDS
  shift
  echo "── $name ($(date +%H:%M:%S))"
  "$@"
  printf '{"stage": "%s", "seconds": %d}\n' "$name" $((SECONDS - began)) >>"$OUT/stages.jsonl"
  echo "── $name took $((SECONDS - began)) s"
}

# launched COMMAND...: a trainer, ended with one sentence if a worker of it dies. Its whole output goes to
# $OUT/console.log, the screen gets what SHOW matches (SHOW=. for everything).
SHOW=${SHOW:-'step [0-9]+ of .*|Epoch [0-9]+/[0-9]+: .* [0-9]*00/.*|[A-Za-z.]+(Error|Exception): .*|verl_sql: .*'}
launched() {
  "$PY" -m verl_sql.integration.launch --log "$OUT/console.log" --show "$SHOW" --grace "${GRACE:-45}" \
    --stall-seconds "${STALL_SECONDS:-900}" -- "$@"
}
