#!/usr/bin/env bash
# The whole test suite, with the environment made first if it is not there. Arguments go on to pytest:
#
#   bash tests/run.sh                     everything, the run of the real trainer included
#   bash tests/run.sh -m 'not trainer'    without it
#   bash tests/run.sh -m long             the runs of minutes that are otherwise left out
#   bash tests/run.sh tests/sqltext -x
#
# VERL_SQL_SHARED names the folder of real data and recorded verdicts; tests that need it are skipped without it.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export VENV=${VENV:-$ROOT/.venv}
bash "$ROOT/recipes/setup.sh"
if [ -z "${VERL_SQL_SHARED:-}" ] && [ -d "$ROOT/../shared" ]; then
  VERL_SQL_SHARED=$(cd "$ROOT/../shared" && pwd)
  export VERL_SQL_SHARED
fi
echo "verl_sql tests: $("$VENV/bin/python" --version) in $VENV, shared data: ${VERL_SQL_SHARED:-none}" >&2
cd "$ROOT"
# Hubs are never asked: what the tests need, they make. One thread for each worker, as in training on CPU.
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
unset PYTHONDONTWRITEBYTECODE # each of the trainer's processes would compile verl and torch anew
exec "$VENV/bin/python" -m pytest --durations=15 --durations-min=3 "$@"
