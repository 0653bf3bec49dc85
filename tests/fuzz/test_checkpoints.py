"""What lies in a run's folder beside its config, from anybody: weights, or one sentence; nothing there is changed."""

import functools
import shutil
import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from muzero_jax.storage import checkpoint, run_directory
from muzero_jax.storage import config as configs
from tests.fuzz import fuzzing
from tests.fuzz.fuzzing import refusal
from tests.fuzz.samples import disturbed, json_text

PARAMS = {"dense": np.arange(6, dtype=np.float32).reshape(2, 3), "scale": np.ones(3, np.float32)}
ABSTRACT = jax.eval_shape(lambda: jax.tree.map(jax.numpy.asarray, PARAMS))
STEP = "7"
NAMES = [
    "007",
    "7 ",
    "٣",
    "²",
    "9" * 200,
    "8",
    "-1",
    "0x8",
    "8.saving",
    "9.orbax-checkpoint-tmp",
    "1e1",
    "nan",
    "mark.py",
]


@functools.cache
def saved() -> dict[str, bytes]:
    """The files of a checkpoint of the weights."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint.save_params(folder, int(STEP), PARAMS)
        root = Path(folder) / STEP
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True, scope="module")
def saved_outside():
    """Makes the checkpoint before an example may write in its own folder alone."""
    saved()


@st.composite
def runs(draw):
    """A file of the checkpoint with other content, the name of a folder beside the checkpoint's, and a summary."""
    name = draw(st.sampled_from(sorted(saved())))
    changed = {name: draw(disturbed(st.just(saved()[name])))}
    return changed, draw(st.sampled_from([None, None, *NAMES])), draw(json_text(st.just({})))


@fuzzing.fuzzed(runs(), found=[({}, "٣", b"{}"), ({}, "007", b"{}")])
def test_checkpoints_and_summaries(example, folder):
    changed, other, summary = example
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    for name, content in (saved() | changed).items():
        file = run / "checkpoints" / STEP / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (run / configs.FILE).write_text("{}")
    (run / run_directory.SUMMARY).write_bytes(summary)
    if other:
        (run / "checkpoints" / other).mkdir(exist_ok=True)
    before = sorted(run.rglob("*"))
    look_at(run)
    assert sorted(run.rglob("*")) == before


def look_at(run):
    """Everything that asks about a run's checkpoints and reads them."""
    checkpoints = run / "checkpoints"
    steps = checkpoint.checkpoint_steps(checkpoints)
    assert all((checkpoints / str(step)).is_dir() for step in steps)
    found, _ = refusal(lambda: checkpoint.restore_params(checkpoints, ABSTRACT, step=int(STEP)), checkpoints)
    if found is not None:
        assert found[0] in steps and jax.tree.map(np.shape, found[1]) == jax.tree.map(np.shape, PARAMS)
    refusal(lambda: checkpoint.describe_replay(checkpoints), checkpoints)
    for path in (run, checkpoints, *checkpoints.iterdir()):
        saved_at = run_directory.find_saved(path)
        if saved_at is not None:
            refusal(lambda: run_directory.version_of(saved_at))  # noqa: B023
    assert run_directory.versions_in(checkpoints) == [checkpoints / str(step) for step in steps]
    assert run_directory.has_ended(run, 7) in (True, False)
