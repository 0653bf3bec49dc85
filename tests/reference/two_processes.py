"""`train.py` as several processes over loopback, on CPU devices."""

import os
import socket
import subprocess
import sys
import time

from tests.reference.pages import ROOT

TINY = (
    "--env tic_tac_toe --model rules --network.width 16 --network.num-blocks 0 --search.num-simulations 4 "
    "--self-play.num-envs 8 --self-play.rollout-length 4 --replay.replay-length 16 --replay.min-frames 8 "
    "--targets.unroll-steps 1 --targets.td-steps 2 --optimiser.batch-size 8 "
    "--optimiser.updates-per-iteration 1 --iterations-per-chunk 1 --evaluation.interval-minutes 0 "
    "--evaluation.final-games 4 --evaluation.mcts-simulations 1 --evaluation.num-simulations 2 "
    "--no-tensorboard --no-compilation-cache"
).split()


def start(run_dir, *flags, devices=1):
    """The two processes of a run; each writes its output to its `said` file."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    together = f"--distributed --coordinator 127.0.0.1:{port} --num-processes 2 --process-id".split()
    return [
        begin(run_dir, *flags, *together, str(index), devices=devices, said=said(run_dir, index)) for index in (0, 1)
    ]


def begin(run_dir, *flags, devices, said):
    """One `train.py`."""
    words = [*TINY, "--devices", str(devices), "--run-dir", str(run_dir), *flags]
    with said.open("w") as file:
        return subprocess.Popen(
            [sys.executable, "experiments/train.py", *words],
            cwd=ROOT,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=os.environ | {"JAX_PLATFORMS": "cpu"},
        )


def said(run_dir, index):
    """Where process `index` writes."""
    return run_dir.with_name(f"{run_dir.name}.{index}.txt")


def wait_for(condition, seconds=120.0):
    """Waits until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)
