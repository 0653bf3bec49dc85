"""Checkpoints of a whole run: saved while training goes on, complete when listed, and never trusted unread.

Decision: of Orbax we use only the functions that write and read one folder. Its `training.Checkpointer` lists damaged
steps as the latest, and it loads arrays with flipped bits without complaint (3 of 3 tried). So a save is written to a
hidden folder, gets a manifest with checksums and is then renamed. A folder named by a number was complete, whenever the
run was killed. If it disagrees with its manifest, it is damaged and passed over.
"""

import hashlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import jax
from jax.sharding import SingleDeviceSharding
from orbax.checkpoint import v1 as ocp

from muzero_jax.own.faults import shown
from muzero_jax.storage import operations, shapes, unfinished
from muzero_jax.types import Params, ReplayState, TrainState

MANIFEST = "manifest"
"""A file in JSON: for each part of the checkpoint its arrays' shapes and dtypes, and its checksum."""
LONGEST_NAME = 500  # characters of an array's name or shape in a manifest


class Checkpointer:
    """Keeps the newest `keep` checkpoints (None: all) in `directory`, one folder per step, named by its number.

    Open it with `with`: leaving the block waits for the last save. Neither construction nor opening touches the disk.

    `announce` is for several processes that train together, each of which writes its own part into one folder: process
    0 calls it with the step once the others may begin to save that, too. Without it each process saves for itself.
    """

    def __init__(self, directory: str | Path, *, keep: int | None = 3, announce: Callable[[int], None] | None = None):
        if keep is not None and keep < 1:
            raise ValueError(f"a checkpointer keeps at least 1 checkpoint, not {keep}")
        self.directory = Path(directory).absolute()
        self.keep = keep
        self._announce = announce if announce and jax.process_count() > 1 else None
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None

    def __enter__(self) -> "Checkpointer":
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        # What the block raised is the first cause; a failed save must not hide it.
        with self._worker, suppress(Exception) if error_type else nullcontext():
            self.wait()

    def save(self, step: int, state: TrainState) -> None:
        """Saves `state` as `step`, in the background: returns as soon as the arrays may be donated.

        Waits for the save before it, if that still runs: no save is ever skipped. Raises `ValueError` if the folder
        cannot be written; a failure in the background is raised by the next `save`, by `wait` or when the block ends.
        """
        self._save(step, _parts(state))

    def save_params(self, step: int, params: Params) -> None:
        """Saves weights alone, for `restore_params`: a version to play against, not one to resume from."""
        self._save(step, {"params": params})

    def _save(self, step: int, parts: dict[str, Any]) -> None:
        self.wait()
        saving, is_alone = self.directory / f".saving-{step}", self._announce is None
        context = operations.options(is_alone=is_alone)
        with unfinished.writing(self.directory, cleans=self._leads):
            if self._leads:
                self._make_room(saving)
            if self._announce and self._leads:
                self._announce(step)
            # Else Orbax has each device write a part of what all hold, with a program a shape and device to cut it.
            context.array.saving.use_replica_parallel = False
            with context:
                response = ocp.save_checkpointables_async(saving, parts, overwrite=True)
            arrays = {part: shapes.describe(tree) for part, tree in parts.items()}
            self._pending = self._worker.submit(self._commit, response, saving, step, arrays)
            if not is_alone:  # a failure is then known before process 0 says what comes next
                self.wait()

    @property
    def _leads(self) -> bool:
        """Whether this process makes the folder of a save, and gives it its name when it is whole."""
        return self._announce is None or jax.process_index() == 0

    def _make_room(self, saving: Path) -> None:
        """Makes an empty folder for a save; OSError where nothing can be written."""
        self.directory.mkdir(exist_ok=True)  # but never the run's folder around it, once that is deleted
        unfinished.remove_unfinished(self.directory)
        unfinished.mark(saving).mkdir()
        # Where Orbax itself fails to write, its threads hang for minutes.
        with tempfile.TemporaryFile(dir=self.directory) as probe:
            probe.write(bytes(1 << 16))
            probe.flush()

    def wait(self) -> None:
        """Returns once everything saved lies on the disk; raises `ValueError` if it cannot be written."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def restore_latest(
        self, abstract_state: TrainState, *, among: Collection[int] | None = None
    ) -> tuple[int, TrainState] | None:
        """The newest intact checkpoint as (step, state), or None if there is no checkpoint.

        Damaged ones after it are passed over with a warning and renamed to `<step>.damaged`. Raises `ValueError` if all
        are damaged or if the shapes are another configuration's.

        Args:
          abstract_state: `jax.ShapeDtypeStruct`s with the shardings to restore onto (default: the first device). The
            run may have been saved from any number of devices.
          among: the steps that may be restored; by default all.
        """
        self.wait()
        steps = [step for step in checkpoint_steps(self.directory) if among is None or step in among]
        found = _restore_newest(self.directory, steps, _parts(abstract_state), is_alone=self._announce is None)
        if found is None:
            return None
        step, restored = found
        for damaged in steps[steps.index(step) + 1 :] if self._leads else []:
            with suppress(OSError):  # on a read-only disk it stays, and is passed over again next time
                unfinished.replace_folder(self.directory / str(damaged), self.directory / f"{damaged}.damaged")
        learner = restored["state"].learner._replace(params=restored["params"])
        return step, restored["state"]._replace(learner=learner)

    def _commit(self, response: Any, saving: Path, step: int, arrays: dict[str, dict[str, str]]) -> None:
        """Background: waits for Orbax, adds the manifest, gives the folder its name, deletes the oldest."""
        if not self._leads:
            with unfinished.writing(self.directory, cleans=False):
                response.result()
            return
        with unfinished.writing(self.directory):
            with unfinished.still_there(unfinished.mark(saving)):
                response.result()
                checksums = {part: _checksum(saving / part, arrays[part]) for part in arrays}
                manifest = {part: {"arrays": arrays[part], "checksum": checksums[part]} for part in arrays}
                (saving / MANIFEST).write_text(json.dumps(manifest))
            unfinished.replace_folder(saving, self.directory / str(step))
        if self.keep is not None:
            for old in checkpoint_steps(self.directory)[: -self.keep]:
                shutil.rmtree(self.directory / str(old), ignore_errors=True)


def checkpoint_steps(directory: str | Path) -> list[int]:
    """The steps of the complete (though perhaps since damaged) checkpoints in `directory`, oldest first."""
    names = (path.name for path in Path(directory).glob("*/"))
    return sorted(int(name) for name in names if name.isdecimal() and name == str(int(name)))  # 007 was never saved


def restore_params(directory: str | Path, abstract_params: Params, *, step: int | None = None) -> tuple[int, Params]:
    """Restores only the weights, from the newest intact checkpoint or from `step`: (step, params).

    Reads the folder `params` alone (the replay buffer stays on the disk) and changes nothing. Leaves of
    `abstract_params` without a sharding are put on the first device. Raises `ValueError` if there is no intact
    checkpoint or if the shapes are another configuration's.
    """
    directory, abstract = Path(directory).absolute(), {"params": abstract_params}
    steps = [each for each in checkpoint_steps(directory) if step in (None, each)]
    found = _restore_newest(directory, steps, abstract)
    if found is None:
        name = "checkpoint" if step is None else f"checkpoint {step}"
        raise ValueError(f"no {name} in {directory}; give the folder of a run that has saved one")
    return found[0], found[1]["params"]


def describe_replay(directory: str | Path) -> dict[str, str]:
    """Shape and dtype of each array of the newest checkpoint's replay buffer, by its path; ValueError if there is none.

    Reads no array.
    """
    for step in reversed(checkpoint_steps(directory)):
        with suppress(OSError, ValueError, KeyError):  # a damaged one
            return _saved_replay(Path(directory) / str(step))
    raise ValueError(f"no checkpoint in {directory}; give the folder of a run that has saved one")


def restore_replay(directory: str | Path, abstract_replay: ReplayState) -> tuple[int, ReplayState]:
    """Restores only the replay buffer, from the newest intact checkpoint: (step, buffer).

    Reads nothing else, so the run may have trained another network, and changes nothing. What the buffer holds beyond
    `abstract_replay` stays on the disk. Raises `ValueError` if there is no intact checkpoint, or for other shapes.
    """
    directory = Path(directory).absolute()
    newest = _newest_intact(directory, checkpoint_steps(directory), ["state"])
    if newest is None:
        raise ValueError(f"no checkpoint in {directory}; give the folder of a run that has saved one")
    folder, wanted = directory / str(newest), shapes.describe(abstract_replay)
    saved = {path: array for path, array in _saved_replay(folder).items() if path in wanted}
    _check_shapes(f"the replay of checkpoint {folder} is another", saved, wanted)
    context = operations.options(is_alone=True)
    context.pytree.loading.partial_load = True
    with context:
        return newest, _read(folder, {"state": {"replay": abstract_replay}})["state"]["replay"]


def _saved_replay(folder: Path) -> dict[str, str]:
    """The result of `shapes.describe` for the buffer, when it was saved."""
    arrays, prefix = _manifest(folder)["state"]["arrays"], ".replay"
    return {path.removeprefix(prefix): array for path, array in arrays.items() if path.startswith(prefix)}


def _parts(state: TrainState) -> dict[str, Any]:
    """`state` in two folders, so that the weights can be read without the rest."""
    return {"params": state.learner.params, "state": state._replace(learner=state.learner._replace(params=None))}


def _restore_newest(
    directory: Path, steps: list[int], abstract: dict[str, Any], *, is_alone: bool = True
) -> tuple[int, dict[str, Any]] | None:
    """The newest intact checkpoint of `steps`, if there are any."""
    newest = _newest_intact(directory, steps, abstract)
    return None if newest is None else (newest, _load(directory / str(newest), abstract, is_alone=is_alone))


def _newest_intact(directory: Path, steps: list[int], parts: Iterable[str]) -> int | None:
    """The newest of `steps` whose named parts are intact, if there are any; warns of the damaged ones after it."""
    newest = next((step for step in reversed(steps) if _is_intact(directory / str(step), parts)), None)
    if newest is None:
        if steps:
            which = "every checkpoint" if len(steps) > 1 else f"checkpoint {steps[0]}"
            raise ValueError(f"{which} in {directory} is damaged; restore a copy or choose another --run-dir")
        return None
    for step in steps[steps.index(newest) + 1 :]:
        warnings.warn(f"checkpoint {directory / str(step)} is damaged; using the one before, {newest}", stacklevel=4)
    return newest


def _is_intact(folder: Path, parts: Iterable[str]) -> bool:
    """Whether the files of the named parts are those that were saved."""
    try:
        manifest = _manifest(folder)
        return all(manifest[part]["checksum"] == _checksum(folder / part, manifest[part]["arrays"]) for part in parts)
    except (OSError, ValueError, KeyError):
        return False


def _manifest(folder: Path) -> dict[str, Any]:
    """The entries of a checkpoint's manifest, by part; ValueError, OSError or KeyError where it is none of ours."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        words = [word for part in manifest.values() for pair in part["arrays"].items() for word in pair]
        is_ours = all(word.isprintable() and len(word) < LONGEST_NAME for word in words)
    except (AttributeError, TypeError, RecursionError) as error:
        raise ValueError("it is not built as a manifest") from error
    if not is_ours:
        raise ValueError("it names arrays as no network does")
    return manifest


def _load(folder: Path, abstract: dict[str, Any], *, is_alone: bool) -> dict[str, Any]:
    """Reads the parts of one checkpoint that `abstract` names, if their shapes are the saved ones."""
    manifest = _manifest(folder)
    for part, tree in abstract.items():
        maker = "by another network" if part == "params" else "with other settings"
        _check_shapes(f"checkpoint {folder} was made {maker}", manifest[part]["arrays"], shapes.describe(tree))
    first = SingleDeviceSharding(jax.local_devices()[0])
    placed = jax.tree.map(lambda leaf: leaf.update(sharding=leaf.sharding or first), abstract)
    with operations.options(is_alone=is_alone):
        return _read(folder, placed)


def _read(folder: Path, abstract: dict[str, Any]) -> dict[str, Any]:
    """The arrays that Orbax reads. If the content is wrong under right checksums, its parsers raise any error."""
    try:
        return ocp.load_checkpointables(folder, abstract)
    except Exception as error:
        raise ValueError(
            f"checkpoint {folder} cannot be read ({shown(error)}); restore a copy or choose another --run-dir"
        ) from error


def _check_shapes(problem: str, saved: dict[str, str], wanted: dict[str, str]) -> None:
    """Raises `ValueError`: the problem, and the first array that is missing, of another shape or dtype, or too many."""
    if found := shapes.difference(saved, wanted):
        raise ValueError(
            f"{problem}: {found}; use the settings and the version of this program that it was made with, or choose "
            "another --run-dir"
        )


def _checksum(folder: Path, arrays: dict[str, str]) -> str:
    """SHA-256 of one part of a checkpoint: its arrays' shapes, and the name and content of every file."""
    checksum = hashlib.sha256(json.dumps(arrays).encode())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        checksum.update(path.relative_to(folder).as_posix().encode())
        with path.open("rb") as file:
            while block := file.read(1 << 22):
                checksum.update(block)
    return checksum.hexdigest()
