"""`kill -9` at random moments of real runs: each goes on, and ends as one that was never killed, bit for bit."""

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

RUNS, LAST, CHUNK = 2, 40, CONFIG.iterations_per_chunk
EVALUATION = replace(  # once the matches are compiled, and at the end; long enough to be met
    CONFIG.evaluation, interval_minutes=1000.0, games=64, final_games=64, mcts_simulations=(100,)
)
SELDOM = 2.0
"""Minutes between two saves, longer than such a run, so that it is killed while it trains and does not save."""


def newest_record(run_dir):
    records = metrics.read_records(run_dir)
    return records[-1] if records else {"iteration": 0}


def is_saving(run_dir):
    return any(run_dir.glob("checkpoints/*.orbax-checkpoint-tmp"))


PHASES = {  # what the run says before the phase, how to see that it has begun, and the most seconds until the kill
    "compiling": ("compiling", lambda record, run_dir: True, 1.0),
    "training": (("training;", "continuing"), lambda record, run_dir: record["iteration"] > 0, 0.02),
    "saving": (("training;", "continuing"), lambda record, run_dir: is_saving(run_dir), 0.02),
    "evaluating": (("training;", "continuing"), lambda record, run_dir: record["iteration"] == LAST, 0.4),
    "concluding": ("training is over", lambda record, run_dir: True, 0.5),
}


def kill(run_dir, phase, dice, cache):
    """Kills a run at a random moment in or soon after a phase; returns how many iterations were lost."""
    said, is_there, longest = PHASES[phase]
    with process.start(run_dir, cache=cache, checkpoint_minutes=SELDOM if phase == "training" else 1e-9) as run:
        process.read_until(run, said)
        while not is_there(newest_record(run_dir), run_dir):
            assert run.poll() is None, "the run ended too early"
            time.sleep(0.001)
        time.sleep(dice.uniform(0, longest))
        assert run.poll() is None, "the run ended too early"
        run.kill()
    steps = checkpoint_steps(run_dir / "checkpoints")
    return newest_record(run_dir)["iteration"] - (steps[-1] if steps else 0)


def run_to_its_end(run_dir, cache):
    """Resumes a run, unless it had ended when it was killed."""
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
    """The folder of a run that was never killed."""
    run_dir = tmp_path_factory.mktemp("runs") / "unbroken"
    process.begin(run_dir, max_iterations=LAST, evaluation=EVALUATION)
    run_to_its_end(run_dir, cache)
    return run_dir


@pytest.mark.slow
@pytest.mark.parametrize("number", range(RUNS))
def test_a_run_killed_at_any_moment_ends_bit_for_bit_like_an_uninterrupted_one(number, cache, unbroken, tmp_path):
    """Each run is killed five times, once in every phase, and resumed each time.

    A save takes place while the next chunk runs, so a kill can lose two chunks although each one is saved.
    """
    run_dir, seed = tmp_path / "run", random.randrange(1000)
    dice = random.Random(seed)
    process.begin(run_dir, max_iterations=LAST, evaluation=EVALUATION)
    for phase in PHASES:
        lost = kill(run_dir, phase, dice, cache)
        assert lost <= 2 * CHUNK or phase == "training", f"{lost} iterations lost while {phase}, seed {seed}"
    run_to_its_end(run_dir, cache)
    assert_same(saved_state(run_dir)[1], saved_state(unbroken)[1])
    assert process.chunks(run_dir) == process.chunks(unbroken)
