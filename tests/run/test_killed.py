"""`kill -9` at twenty random moments of real runs: each goes on, and ends as one that was never killed, bit for bit.

The figures: .venv/bin/pytest -m slow -s tests/run/test_killed.py
"""

import random
import time
from dataclasses import replace

import pytest

from muzero_jax.run import metrics
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import checkpoint_steps
from tests.reference import process
from tests.reference.tiny_run import CONFIG, assert_same
from tests.run.conftest import saved_state

RUNS, LAST, CHUNK = 4, 40, CONFIG.iterations_per_chunk
EVALUATION = replace(  # once the matches are compiled, and at the end; long enough to be met
    CONFIG.evaluation, interval_minutes=1000.0, games=64, final_games=64, mcts_simulations=(100,)
)
SELDOM = 2.0
"""Minutes between two saves, which are more than such a run takes: it is killed while it trains and saves nothing."""


def newest_record(run_dir):
    records = metrics.read_records(run_dir)
    return records[-1] if records else {"iteration": 0}


def is_saving(run_dir):
    return any(run_dir.glob("checkpoints/*.orbax-checkpoint-tmp"))


def is_evaluating(run_dir):
    """The last chunk, after which there is always an evaluation, is recorded, and the evaluation is not."""
    record = newest_record(run_dir)
    return record["iteration"] == LAST and not metrics.brings_evaluation(record)


def phase(run_dir, said):
    """What the run was at when it was killed, by what it had said and left."""
    if not any(line.startswith("memory") for line in said):
        return "compiling"
    record = newest_record(run_dir)
    if record["iteration"] == LAST and metrics.brings_evaluation(record):
        return "concluding"
    if is_evaluating(run_dir) and LAST in checkpoint_steps(run_dir / "checkpoints"):
        return "evaluating"
    return "saving" if is_saving(run_dir) else "training"


def await_moment(run, condition):
    while not condition():
        assert run.poll() is None, "the run ended too early"
        time.sleep(0.001)


def reach(run, run_dir, wanted, dice):
    """Waits for a phase, and then for a random while that mostly ends in it; returns what the run has said."""
    first = max(checkpoint_steps(run_dir / "checkpoints"), default=0)  # where it continues; later records are cut off
    further = min(first + CHUNK * dice.randint(1, 4), LAST - CHUNK)
    if wanted == "compiling":
        said, longest = process.read_until(run, "compiling"), 1.0
    elif wanted == "concluding":
        said, longest = process.read_until(run, "training is over"), 0.5
    else:
        said, longest = process.read_until(run, ("training;", "continuing")), {"evaluating": 0.4}.get(wanted, 0.02)
        moments = {
            "training": lambda: newest_record(run_dir)["iteration"] >= further,
            "saving": lambda: newest_record(run_dir)["iteration"] >= further and is_saving(run_dir),
            "evaluating": lambda: is_evaluating(run_dir),
        }
        await_moment(run, moments[wanted])
    time.sleep(dice.uniform(0, longest))
    return said


def kill(run_dir, wanted, dice, cache):
    """Kills a run in a phase; returns the phase that it was in, and how many iterations were lost."""
    with process.start(run_dir, cache=cache, checkpoint_minutes=SELDOM if wanted == "training" else 1e-9) as run:
        said = reach(run, run_dir, wanted, dice)
        assert run.poll() is None, "the run ended too early"
        run.kill()
        said += run.stdout.readlines()
    steps = checkpoint_steps(run_dir / "checkpoints")
    return phase(run_dir, said), newest_record(run_dir)["iteration"] - (steps[-1] if steps else 0)


def run_to_its_end(run_dir, cache):
    """Goes on with a run, if it had not written its last word when it was killed."""
    if run_directory.has_ended(run_dir):
        return
    with process.start(run_dir, cache=cache) as run:
        said = run.stdout.read()
    assert run.returncode == 0 and "Traceback" not in said and "damaged" not in said, said
    assert run_directory.has_ended(run_dir) and (run_dir / "curves.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder of compiled programs that all runs share."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def unbroken(cache, tmp_path_factory):
    """The folder of a run that nobody killed."""
    run_dir = tmp_path_factory.mktemp("runs") / "unbroken"
    process.begin(run_dir, max_iterations=LAST, evaluation=EVALUATION)
    run_to_its_end(run_dir, cache)
    return run_dir


@pytest.mark.slow
@pytest.mark.parametrize("number", range(RUNS))
def test_a_run_goes_on_after_kill_9_at_any_moment_as_if_nothing_had_happened(number, cache, unbroken, tmp_path):
    """Each run is killed five times, once in every phase, and each time gone on with.

    A save takes place while the next chunk runs. So where each chunk is saved, that of the save under way and the next
    may be lost.
    """
    run_dir, seed = tmp_path / "run", random.randrange(1000)
    print(f"\nrun {number}, seed {seed}")
    dice = random.Random(seed)
    process.begin(run_dir, max_iterations=LAST, evaluation=EVALUATION)
    for wanted in ("compiling", "training", "saving", "evaluating", "concluding"):
        found, lost = kill(run_dir, wanted, dice, cache)
        print(f"run {number} killed while {found} ({wanted} was aimed at), {lost} iterations lost", flush=True)
        assert lost <= 2 * CHUNK or found == "training"
    run_to_its_end(run_dir, cache)
    assert_same(saved_state(run_dir)[1], saved_state(unbroken)[1])
    assert process.chunks(run_dir) == process.chunks(unbroken)
    print(f"run {number} ended as the unbroken one did")
