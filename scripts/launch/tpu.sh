#!/usr/bin/env bash
# All hosts of a TPU pod train one agent; run it where gcloud is set up:
#   scripts/launch/tpu.sh NAME ZONE --env hex --board-size 9 --frames 100000000 --run-dir /shared/runs/hex-9
# The repository must lie, installed, in ~/muzero_jax of every host. Never run on a pod by us: docs/many-machines.md.
set -euo pipefail
if [ "$#" -lt 3 ]; then
  echo "usage: scripts/launch/tpu.sh NAME ZONE flags of train.py, with a --run-dir that all hosts see" >&2
  exit 2
fi
name=$1 zone=$2 && shift 2
gcloud compute tpus tpu-vm ssh "$name" --zone "$zone" --worker=all \
  --command "cd muzero_jax && .venv/bin/python experiments/train.py --distributed --resume-if-any $(printf '%q ' "$@")"
