"""The tiny run as a user has it: `experiments/train.py` in a process of its own, which tests kill and interrupt."""

import os
import subprocess
import sys
from dataclasses import replace

from muzero_jax.run import metrics
from muzero_jax.storage import config as configs
from tests.reference import tiny_run
from tests.reference.pages import ROOT

VARYING = "time/", "eval/"
FLAGS = "--device cpu --devices 2 --no-tensorboard --checkpoint-minutes".split()


def begin(run_dir, **changes):
    """Makes a run's folder that has a config alone: resuming it begins it."""
    run_dir.mkdir()
    configs.save(replace(tiny_run.CONFIG, **changes), run_dir)


def start(run_dir, *, cache, checkpoint_minutes=1e-9):
    """Begins the run, or goes on with it; by default it saves after every chunk. Its output is a pipe.

    Its programs are kept in the folder `cache`.
    """
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache), "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, str(ROOT / "experiments" / "train.py"), "--resume", "--run-dir", str(run_dir)]
    words += [*FLAGS, str(checkpoint_minutes)]
    ends = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(words, env=environment, cwd=ROOT, start_new_session=True, text=True, **ends)


def chunks(run_dir):
    """What a run says of its chunks, without what the clock decides: times, rates, and which versions are evaluated."""
    records = [record for record in metrics.read_records(run_dir) if "selfplay/frames_per_second" in record]
    return [
        {name: value for name, value in record.items() if not name.startswith(VARYING) and "per_second" not in name}
        for record in records
    ]


def read_until(process, words):
    """The lines that a process says, up to one that begins with these words; fails if it ends before."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(words):
            return lines
    raise AssertionError(f"{words!r} was never said: {''.join(lines)}")
