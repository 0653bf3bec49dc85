#!/usr/bin/env bash
# Makes dist/muzero_jax-VERSION-py3-none-any.whl, which installs without the repository: for Colab, or another machine.
# Uses the active virtual environment, else .venv, else python3; pip fetches what builds a wheel.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -z "${VIRTUAL_ENV:-}" ] && [ -x .venv/bin/python ]; then PATH=$PWD/.venv/bin:$PATH; fi
python=$(command -v python || command -v python3)
"$python" -m pip wheel --quiet --no-deps --wheel-dir dist .
echo "made $(ls -t dist/muzero_jax-*.whl | head -n 1)"
