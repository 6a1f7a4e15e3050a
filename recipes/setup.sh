#!/usr/bin/env bash
# The environment that the recipes and the tests run in: .venv in the repository, made once, a no-op afterwards.
#
#   bash recipes/setup.sh                 the CPU set without an NVIDIA GPU, the GPU set with one
#   PROFILE=cpu|gpu bash recipes/setup.sh
#   VENV=/some/folder                     another place than .venv
#   PYTHON=python3.12                     the interpreter to build it with (3.11 or 3.12)
#
# Packages come from the index that pip and uv are set to. The CPU build of torch comes from the folder that
# PIP_FIND_LINKS names, if its wheel lies there, else from PyTorch's own CPU index.
# The versions stand in verl_sql/integration/versions.py.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=${VENV:-$ROOT/.venv}
VERSIONS=$ROOT/verl_sql/integration/versions.py
MADE=$VENV/verl_sql.made   # written first: this script made the folder, here, and may make it again
STAMP=$VENV/verl_sql.ready # written last: what was installed; missing while an install is going on

say() { echo "verl_sql set-up: $*" >&2; }
fail() { say "$*"; exit 1; }

default_profile() { if [ -e /dev/nvidia0 ] || nvidia-smi -L 2>/dev/null | grep -q GPU; then echo gpu; else echo cpu; fi; }

# What the environment depends on; the folders are part of it, since neither can be moved.
fingerprint() { { echo "$PROFILE $ROOT $VENV"; cat "$ROOT/setup.py" "$VERSIONS" "${BASH_SOURCE[0]}"; } | sha256sum | cut -d' ' -f1; }

ready() { [ -x "$VENV/bin/python" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$(fingerprint)" ]; }

# In range, and able to make an environment with pip in it.
usable() { "$1" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))' >/dev/null 2>&1; }

find_python() {
  local candidate candidates=(python3.11 python3.12 python3 python)
  if [ -n "${PYTHON:-}" ]; then candidates=("$PYTHON"); fi
  for candidate in "${candidates[@]}"; do
    if usable "$candidate"; then command -v "$candidate"; return; fi
  done
  fail "no Python 3.11 or 3.12 with the venv module among: ${candidates[*]}." \
    "Install one (on Debian and Ubuntu its package python3.x-venv too), or name one with PYTHON=/path/to/python3.11"
}

# Whether this script made the folder and has to make it again: cut short, moved, or its Python is gone.
broken() {
  [ -e "$MADE" ] || return 1
  [ ! -e "$STAMP" ] || [ "$(cat "$MADE")" != "$VENV" ] || ! usable "$VENV/bin/python"
}

# An environment that somebody else made is added to, never removed.
make_venv() {
  if broken; then
    say "an earlier set-up of $VENV is incomplete or was moved; making it again"
    rm -rf "$VENV"
  fi
  if [ ! -e "$VENV/bin/python" ]; then
    mkdir -p "$VENV"
    echo "$VENV" >"$MADE"
    "$python" -m venv "$VENV" || fail "$python could not make a virtual environment in $VENV"
  fi
  usable "$VENV/bin/python" || fail "$VENV holds no working Python 3.11 or 3.12; move it away"
  rm -f "$STAMP"
}

pins() { "$VENV/bin/python" "$VERSIONS" "$1"; }

offline() {
  fail "could not install (see above). If the network is the reason: the package index must be reachable," \
    "and for the CPU set also PyTorch's CPU index or a folder with its wheel, named by PIP_FIND_LINKS"
}

uv_install() { "$VENV/bin/uv" pip install --quiet --python "$VENV/bin/python" "$@" || offline; }

# Where torch's CPU build comes from, as arguments for uv.
torch_arguments() {
  local folder torch tag
  torch=$(pins torch)
  tag=$("$VENV/bin/python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
  for folder in ${PIP_FIND_LINKS:-}; do
    if compgen -G "$folder/torch-$torch+cpu-$tag-*.whl" >/dev/null; then
      printf '%s\n' --find-links "$folder" "torch==$torch+cpu"
      return
    fi
  done
  printf '%s\n' --torch-backend cpu "torch==$torch"
}

install_cpu() {
  local torch
  mapfile -t torch < <(torch_arguments)
  pins overrides >"$VENV/overrides.txt"
  uv_install --override "$VENV/overrides.txt" "${torch[@]}" --editable "$ROOT[cpu,dev]"
}

install_gpu() {
  uv_install --editable "$ROOT[gpu,dev]"
  say "building flash-attn against the installed torch (needs the CUDA toolkit's nvcc; up to half an hour)"
  uv_install setuptools wheel ninja packaging psutil
  "$VENV/bin/uv" pip install --quiet --python "$VENV/bin/python" --no-build-isolation "$ROOT[flash]" ||
    say "flash-attn did not build: runs need +actor_rollout_ref.model.override_config.attn_implementation=sdpa" \
      "and actor_rollout_ref.model.use_remove_padding=False"
}

main() {
  PROFILE=${PROFILE:-$(default_profile)}
  case $PROFILE in cpu | gpu) ;; *) fail "PROFILE must be cpu or gpu, not '$PROFILE'" ;; esac
  [ -f "$ROOT/setup.py" ] || fail "runs in a checkout of the repository only; there is no setup.py in $ROOT"
  if ready; then return; fi
  exec 9<"$ROOT" # one set-up at a time: the lock is the repository's folder itself
  if command -v flock >/dev/null && ! flock --nonblock 9; then say "waiting for another set-up to end" && flock 9; fi
  if ready; then return; fi
  local python size start=$SECONDS
  python=$(find_python)
  if [ "$PROFILE" = cpu ]; then size="2.5 GB, half a minute to five minutes"; else size="10 GB, 5 to 40 minutes"; fi
  say "installing the $PROFILE set with $python into $VENV ($size; once)"
  make_venv
  "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check uv || offline
  "install_$PROFILE"
  fingerprint >"$STAMP"
  say "ready after $((SECONDS - start)) s"
}

main "$@"
