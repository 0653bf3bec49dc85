"""The tiny run as a user has it: `experiments/train.py` in a process of its own, which tests kill and interrupt."""

import os
import subprocess
import sys
from dataclasses import replace

from muzero_jax.config import config_file
from muzero_jax.run import metrics
from tests.reference import tiny_run
from tests.reference.pages import ROOT

VARYING = "time/", "eval/"
FLAGS = "--device cpu --devices 2 --no-tensorboard --checkpoint-minutes".split()


def begin(run_dir, **changes):
    """Makes a run's folder with only a config: resuming it begins the run."""
    run_dir.mkdir()
    config_file.save(replace(tiny_run.CONFIG, **changes), run_dir)


def start(run_dir, *, cache, checkpoint_minutes=1e-9):
    """Begins the run, or resumes it; by default it saves after every chunk. Its output is a pipe.

    Its programs are kept in the folder `cache`.
    """
    environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": str(cache), "PYTHONUNBUFFERED": "1"}
    words = [sys.executable, str(ROOT / "experiments" / "train.py"), "--resume", "--run-dir", str(run_dir)]
    words += [*FLAGS, str(checkpoint_minutes)]
    ends = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(words, env=environment, cwd=ROOT, start_new_session=True, text=True, **ends)


def chunks(run_dir):
    """A run's records of its chunks, without values that depend on the clock: times, rates and evaluations."""
    records = [record for record in metrics.read_records(run_dir) if "selfplay/frames_per_second" in record]
    return [
        {name: value for name, value in record.items() if not name.startswith(VARYING) and "per_second" not in name}
        for record in records
    ]


def read_until(process, words):
    """The lines that a process prints, up to one that begins with `words`; fails if it ends before."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(words):
            return lines
    raise AssertionError(f"{words!r} was never said: {''.join(lines)}")
