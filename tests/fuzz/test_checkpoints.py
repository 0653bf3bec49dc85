"""What lies in a run's folder beside its config, from anybody: weights, or one sentence; nothing there is changed."""

import functools
import gc
import json
import shutil
import tempfile
import warnings
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muzero_jax.storage import checkpoint, run_directory
from muzero_jax.storage import config as configs
from tests.fuzz import fuzzing
from tests.fuzz.fuzzing import refusal
from tests.fuzz.samples import JSON_VALUES, disturbed, edited, json_text

PARAMS = {"dense": np.arange(6, dtype=np.float32).reshape(2, 3), "scale": np.ones(3, np.float32)}
ABSTRACT = jax.eval_shape(lambda: jax.tree.map(jax.numpy.asarray, PARAMS))
REPLAY = {".replay.action": "int32[4,2]", ".replay.reward": "float32[4,2]", ".seed_key": "key<fry>[]"}
STEP = "7"
NAMES = ["007", "7 ", "٣", "²", "9" * 200, "8", "-1", "0x8", "8.damaged", ".saving-9", "1e1", "nan", "mark.py"]


@functools.cache
def saved() -> dict[str, bytes]:
    """The files of a checkpoint of the weights, and what its manifest would say of a replay ring."""
    with tempfile.TemporaryDirectory() as folder:
        with checkpoint.Checkpointer(folder) as checkpoints:
            checkpoints.save_params(int(STEP), jax.tree.map(jax.numpy.asarray, PARAMS))
        root = Path(folder) / STEP
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True, scope="module")
def saved_outside():
    """Makes the checkpoint before an example may write in its own folder alone."""
    saved()


def manifest() -> dict:
    return json.loads(saved()[checkpoint.MANIFEST]) | {"state": {"arrays": REPLAY, "checksum": "0" * 64}}


@st.composite
def manifests(draw):
    """A changed manifest, the name of another folder beside the checkpoint's, and a summary of the run."""
    tree = edited(manifest(), JSON_VALUES | st.sampled_from(NAMES))
    changed = {checkpoint.MANIFEST: draw(json_text(tree))}
    return changed, draw(st.sampled_from([None, None, *NAMES])), draw(st.booleans()), draw(json_text(st.just({})))


@st.composite
def orbaxes(draw):
    """Another of the checkpoint's files with other content, and the checksums of that."""
    name = draw(st.sampled_from(sorted(set(saved()) - {checkpoint.MANIFEST})))
    content = saved()[name]
    content = draw(json_text(edited(json.loads(content)))) if content[:1] == b"{" else draw(disturbed(st.just(content)))
    return {name: content}, None, True, b"{}"


def lay_out(step: Path, changed: dict[str, bytes], is_sealed: bool) -> None:
    """Writes the checkpoint; sealed, it has the checksums of its content, which anybody can compute."""
    for name, content in (saved() | changed).items():
        (step / name).parent.mkdir(parents=True, exist_ok=True)
        (step / name).write_bytes(content)
    if is_sealed:
        try:
            parts = json.loads((step / checkpoint.MANIFEST).read_bytes())
            for name, part in parts.items():
                part["checksum"] = checkpoint._checksum(step / name, part["arrays"])
        except Exception:
            return
        (step / checkpoint.MANIFEST).write_text(json.dumps(parts))


FOUND = [
    ({checkpoint.MANIFEST: b'{"params": ' + b"[" * 100_000}, None, False, b"{}"),
    ({checkpoint.MANIFEST: b'{"state": {"arrays": "007"}}'}, None, False, b"{}"),
    ({checkpoint.MANIFEST: b'{"params": {"arrays": [], "checksum": ""}}'}, None, True, b"{}"),
    ({}, "٣", False, b"{}"),
    ({}, "007", False, b"{}"),
]


@fuzzing.fuzzed(manifests(), found=FOUND, growth=1_000_000)  # Orbax 0.12 keeps 14 KB of each read for ever
def test_manifests_and_summaries(example, folder):
    check(example, folder)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # coroutines that Orbax drops
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_files_of_orbax_with_right_checksums(tmp_path):
    """500 examples: where Orbax fails, it takes up to a second."""

    @fuzzing.settings(500, is_repeated=False)
    @given(orbaxes())
    def attempt(example):
        with fuzzing.guarded(tmp_path):
            check(example, tmp_path)

    attempt()
    gc.collect()  # here, or the next test is blamed for them


def check(example, folder):
    changed, other, is_sealed, summary = example
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    lay_out(run / "checkpoints" / STEP, changed, is_sealed)
    (run / configs.FILE).write_text("{}")
    (run / run_directory.SUMMARY).write_bytes(summary)
    if other:
        (run / "checkpoints" / other).mkdir(exist_ok=True)
    before = sorted(run.rglob("*"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a newer one is damaged
        look_at(run)
    assert sorted(run.rglob("*")) == before


def look_at(run):
    """Everything that asks about a run's checkpoints and reads them."""
    checkpoints = run / "checkpoints"
    steps = checkpoint.checkpoint_steps(checkpoints)
    assert all((checkpoints / str(step)).is_dir() for step in steps)
    found, _ = refusal(lambda: checkpoint.restore_params(checkpoints, ABSTRACT), checkpoints)
    if found is not None:
        assert found[0] in steps and jax.tree.map(np.shape, found[1]) == jax.tree.map(np.shape, PARAMS)
    refusal(lambda: checkpoint.describe_replay(checkpoints), checkpoints)
    for path in (run, checkpoints, *checkpoints.iterdir()):
        saved_at = run_directory.find_saved(path)
        if saved_at is not None:
            refusal(lambda: run_directory.version_of(saved_at))  # noqa: B023
    assert run_directory.versions_in(checkpoints) == [checkpoints / str(step) for step in steps]
    assert run_directory.is_finished(run, 7) in (True, False) and isinstance(run_directory.strength(run), dict)
