#!/usr/bin/env bash
# Builds the documentation into site/, or serves it while you write: scripts/docs.sh serve
# `scripts/docs.sh build FLAGS` passes flags to mkdocs, as tests do. A warning ends it with status 1.
# Uses the active virtual environment, else .venv, else what is on PATH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [ -z "${VIRTUAL_ENV:-}" ] && [ -x .venv/bin/mkdocs ]; then PATH=$PWD/.venv/bin:$PATH; fi
export NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true
need_mkdocs() {
  command -v mkdocs >/dev/null || { echo "error: mkdocs is missing; pip install -e '.[docs]' -c constraints.txt" >&2; exit 2; }
}

case "${1:-build}" in
  build) # without --quiet, with which mkdocs counts no warnings and so builds a site with dead links
    need_mkdocs
    output=$(mkdocs build --strict "${@:2}" 2>&1) || { echo "$output" >&2; exit 1; }
    if [ $# -lt 2 ]; then echo "built: open $PWD/site/index.html"; fi ;;
  serve) need_mkdocs && exec mkdocs serve ;;
  *) echo "error: there is no '$1'; use scripts/docs.sh, or scripts/docs.sh serve" >&2 && exit 2 ;;
esac
