#!/usr/bin/env bash
# Format, lint, types and the tree's own rules; runs them all and fails if any does. CI runs it too. With --previews it
# also compiles small boards for an absent H100, in the environment of the extra `preview` (three minutes).
# Uses the active virtual environment, else .venv, else what is on PATH.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
if [ -z "${VIRTUAL_ENV:-}" ] && [ -x .venv/bin/ruff ]; then PATH=$PWD/.venv/bin:$PATH; fi
failed=0

check() { # title, command...
  local title=$1
  shift
  if "$@"; then echo "ok      $title"; else echo "FAILED  $title" && failed=1; fi
}

no_registry_host() { # pip knows the hosts' names, so that this file need not
  local hosts host found=0
  hosts=$(python3 -c 'from pip._internal.models.index import PyPI; print(PyPI.netloc, PyPI.file_storage_domain)') || return 1
  for host in $hosts; do
    git grep --untracked -lF "$host" && echo "these files name a package registry" && found=1
  done
  return "$found"
}

check "format" ruff format --quiet --check .
check "lint" ruff check --quiet .
check "types" pyright --pythonpath "$(command -v python3)"
check "no registry's name" no_registry_host
if [ "${1:-}" = --previews ]; then check "one graph on an H100" python3 scripts/previews.py --check; fi
exit "$failed"
