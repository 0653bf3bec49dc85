#!/usr/bin/env bash
# The short tests with the lowest versions that pyproject.toml allows, or with the newest: scripts/floors.sh [--newest]
# PYTHON names the interpreter (python3 if unset); further arguments go to pytest. The environment and all else that
# the tests leave, but compiled programs (.pytest_cache/programs), lie in a temporary folder, removed at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
resolution=lowest-direct
if [ "${1:-}" = --newest ]; then resolution=highest && shift; fi
python=$(command -v "${PYTHON:-python3}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONPYCACHEPREFIX=$work/pycache HYPOTHESIS_STORAGE_DIRECTORY=$work/hypothesis VIRTUAL_ENV=$work/env
unset PYTHONPATH

"$python" -m venv "$work/uv"
"$work/uv/bin/pip" install --quiet uv
"$work/uv/bin/uv" venv --quiet --python "$python" "$VIRTUAL_ENV"
"$work/uv/bin/uv" pip install --quiet --resolution "$resolution" -e ".[dev]"
"$work/uv/bin/uv" pip freeze

"$VIRTUAL_ENV/bin/pytest" -n 2 --dist loadfile -p no:cacheprovider "$@"
