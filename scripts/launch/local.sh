#!/usr/bin/env bash
# N processes on this machine train one agent together, as N machines would:
#   scripts/launch/local.sh 2 --env hex --board-size 5 --run-dir runs/two
# They share the cores evenly (--devices says otherwise). Ends when all have ended, with the worst of their statuses.
set -uo pipefail
if ! [[ "${1:-}" =~ ^[1-9][0-9]*$ ]] || ! [[ " $* " =~ " --run-dir"[\ =] ]]; then
  echo "usage: scripts/launch/local.sh NUMBER_OF_PROCESSES --run-dir FOLDER [flags of train.py]" >&2
  exit 2
fi
number=$1 && shift
train=$(dirname "${BASH_SOURCE[0]}")/../../experiments/train.py
if [ -z "${VIRTUAL_ENV:-}" ] && [ -x "$(dirname "$train")/../.venv/bin/python" ]; then
  PATH=$(cd "$(dirname "$train")/../.venv/bin" && pwd):$PATH
fi
python=$(command -v python || command -v python3)
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
cores=$("$python" -c 'import os; print(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())')
devices=$((cores / number > 0 ? cores / number : 1))

processes=()
trap 'kill -TERM "${processes[@]}" 2>/dev/null' INT TERM
for ((id = 0; id < number; id++)); do
  "$python" "$train" --devices "$devices" "$@" \
    --distributed --coordinator "127.0.0.1:$port" --num-processes "$number" --process-id "$id" &
  processes+=($!)
done
worst=0
for process in "${processes[@]}"; do
  wait "$process"
  status=$?
  while kill -0 "$process" 2>/dev/null; do # a signal ended the waiting, not the process
    wait "$process"
    status=$?
  done
  [ "$status" -gt "$worst" ] && worst=$status
done
exit "$worst"
