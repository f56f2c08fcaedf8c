#!/usr/bin/env bash
# Make a virtual environment, or add to it: install.sh FOLDER/STAMP CONSTRAINTS REQUIREMENT...
# Called by the Makefile. The stamp is written last, and only after everything succeeded, so an
# install that failed halfway is done again by the next `make`.
set -euo pipefail

stamp=$1 constraints=$2
shift 2
folder=$(dirname "$stamp")
python=${PYTHON:-python3.11}

if ! "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))'; then
  echo "make: PYTHON=$python is no Python 3.10, 3.11 or 3.12, for which $constraints is written;" \
    "name one with: make PYTHON=/path/to/python3.12" >&2
  exit 1
fi

# Two makes at once: the second waits, and then finds the work done.
if command -v flock >/dev/null; then
  exec 9>"$folder.lock"
  flock 9
  inputs=(pyproject.toml "$constraints" ci/install.sh pynq_torch/board/startup/*_autoload.p*)
  if [ "$stamp" != "$folder/.installed" ]; then
    inputs+=("$folder/.installed")
  fi
  if [ -e "$stamp" ] && [ -z "$(find "${inputs[@]}" -newer "$stamp")" ]; then
    exit 0
  fi
fi

rm -f "$stamp"
# A folder in which `python -m venv` was interrupted has no pip.
if ! "$folder/bin/python" -m pip --version >/dev/null 2>&1; then
  echo "creating $folder with $("$python" --version)"
  "$python" -m venv --clear "$folder"
fi

echo "installing into $folder (a few minutes the first time)"
pip=("$folder/bin/python" -m pip --disable-pip-version-check)
# setuptools-scm is for wavedrom, which is published as source only.
"${pip[@]}" install --quiet --constraint "$constraints" setuptools setuptools-scm hatchling editables
"${pip[@]}" install --quiet --constraint "$constraints" --no-build-isolation "$@"
"${pip[@]}" check
"$folder/bin/python" -m pynq_torch kernels-install
touch "$stamp"
