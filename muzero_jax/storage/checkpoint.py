"""Checkpoints of a whole run: saved while training goes on, complete when listed, and never trusted unread.

Decision: of Orbax we use only its free functions, which write and read one folder, and keep the sequence of folders
ourselves. Its `training.Checkpointer` lists damaged steps as the latest, and Orbax loads arrays with flipped bytes as
if nothing had happened (3 of 3 tried). So a save is written to a hidden folder, gets a manifest (the CRC-32 of every
file, the shape and dtype of every array) and is then renamed: a folder named by a number was complete, whenever
the run was killed, and one whose files disagree with its manifest is damaged and passed over.
"""

import json
import logging
import shutil
import warnings
import zlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import jax
from jax.sharding import SingleDeviceSharding
from orbax.checkpoint import v1 as ocp

from muzero_jax.types import Params, TrainState

MANIFEST = "manifest"  # its own CRC-32 on the first line, then JSON


class Checkpointer:
    """Keeps the newest `keep` checkpoints (None: all) in `directory`, one folder per step, named by its number.

    Open it with `with`: leaving the block waits for the last save. Neither construction nor opening touches the disk.
    """

    def __init__(self, directory: str | Path, *, keep: int | None = 3):
        if keep is not None and keep < 1:
            raise ValueError(f"cannot keep {keep} checkpoints; keep at least 1")
        self.directory = Path(directory).absolute()
        self.keep = keep
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="checkpoint")
        self._pending: Future[None] | None = None

    def __enter__(self) -> "Checkpointer":
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        try:
            self.wait()
        except Exception:
            # What the block raised is the first cause; a failed save must not hide it.
            if error_type is None:
                raise
        finally:
            self._worker.shutdown()

    def save(self, step: int, state: TrainState) -> None:
        """Saves `state` as `step`, in the background: returns as soon as the arrays may be donated.

        Waits for the save before it, if that still runs: no save is ever skipped. Raises `ValueError` if the folder
        cannot be written; a failure in the background is raised by the next `save`, by `wait` or when the block ends.
        """
        self._save(step, _parts(state))

    def save_params(self, step: int, params: Params) -> None:
        """As `save`, but of weights alone, for `restore_params`: a version to play against, not one to resume from."""
        self._save(step, {"params": params})

    def _save(self, step: int, parts: dict[str, Any]) -> None:
        self.wait()
        saving, context = self.directory / f".saving-{step}", ocp.Context()
        try:
            _check_writable(self.directory)
            _remove_unfinished(self.directory)
            # Else Orbax has each device write a part of what all hold, with a program a shape and device to cut it.
            context.array.saving.use_replica_parallel = False
            with _quiet_absl(), context:
                response = ocp.save_checkpointables_async(saving, parts, overwrite=True)
        except Exception as error:
            raise _explain_write_error(self.directory, error) from error
        self._pending = self._worker.submit(self._commit, response, saving, step, _describe(parts))

    def wait(self) -> None:
        """Returns once everything saved lies on the disk; raises `ValueError` if it cannot be written."""
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def restore_latest(self, abstract_state: TrainState) -> tuple[int, TrainState] | None:
        """The newest intact checkpoint as (step, state), or None if there is no checkpoint.

        abstract_state: the `jax.ShapeDtypeStruct`s to restore, with the shardings to restore onto (default: the first
        device). The run may have been saved from any number of devices. Damaged checkpoints are passed over with a
        warning and renamed to `<step>.damaged`. Raises `ValueError` if all are damaged or if the shapes are another
        configuration's.
        """
        self.wait()
        found = _restore_newest(self.directory, _parts(abstract_state), set_aside=True)
        if found is None:
            return None
        step, restored = found
        learner = restored["state"].learner._replace(params=restored["params"])
        return step, restored["state"]._replace(learner=learner)

    def _commit(self, response: Any, saving: Path, step: int, arrays: dict[str, dict[str, str]]) -> None:
        """Background: waits for Orbax, adds the manifest, gives the folder its name, deletes the oldest."""
        try:
            with _quiet_absl():
                response.result()
            content = json.dumps({"arrays": arrays, "files": _checksums(saving)})
            (saving / MANIFEST).write_text(f"{zlib.crc32(content.encode())}\n{content}")
            _replace_folder(saving, self.directory / str(step))
        except Exception as error:
            _remove_unfinished(self.directory)
            raise _explain_write_error(self.directory, error) from error
        if self.keep is not None:
            for old in checkpoint_steps(self.directory)[: -self.keep]:
                shutil.rmtree(self.directory / str(old), ignore_errors=True)


def checkpoint_steps(directory: str | Path) -> list[int]:
    """The steps of the complete (though perhaps since damaged) checkpoints in `directory`, oldest first."""
    directory = Path(directory)
    if not directory.is_dir():
        return []
    return sorted(int(path.name) for path in directory.iterdir() if path.name.isdecimal() and path.is_dir())


def restore_params(directory: str | Path, abstract_params: Params, *, step: int | None = None) -> tuple[int, Params]:
    """Restores only the weights, from the newest intact checkpoint or from `step`: (step, params).

    Reads the folder `params` alone (the replay buffer stays on the disk) and changes nothing. Leaves of
    `abstract_params` without a sharding are put on the first device, whatever devices saved them. Raises `ValueError`
    if there is no intact checkpoint or if the shapes are another configuration's.
    """
    directory = Path(directory).absolute()
    abstract = {"params": abstract_params}
    if step is None:
        found = _restore_newest(directory, abstract, set_aside=False)
    elif step in checkpoint_steps(directory):
        found = step, _load(directory / str(step), abstract)
    else:
        found = None
    if found is None:
        name = "checkpoint" if step is None else f"checkpoint {step}"
        raise ValueError(f"no {name} in {directory}; give the folder of a run that has saved one")
    return found[0], found[1]["params"]


def _parts(state: TrainState) -> dict[str, Any]:
    """`state` in two folders, so that the weights can be read without the rest."""
    return {"params": state.learner.params, "state": state._replace(learner=state.learner._replace(params=None))}


def _restore_newest(directory: Path, abstract: dict[str, Any], *, set_aside: bool) -> tuple[int, dict[str, Any]] | None:
    """The newest checkpoint in `directory` that is intact; if `set_aside`, the damaged ones after it are renamed."""
    damaged: list[Path] = []
    for step in reversed(checkpoint_steps(directory)):
        try:
            restored = _load(directory / str(step), abstract)
        except _DamagedError:
            damaged.append(directory / str(step))
            continue
        for folder in damaged:
            warnings.warn(f"checkpoint {folder} is damaged; using the one before, {step}", stacklevel=3)
            if set_aside:
                _rename_damaged(folder)
        return step, restored
    if damaged:
        raise ValueError(f"every checkpoint in {directory} is damaged; restore a copy or choose another --run-dir")
    return None


class _DamagedError(ValueError):
    """A checkpoint's files are not those that were saved."""


def _load(folder: Path, abstract: dict[str, Any]) -> dict[str, Any]:
    """Reads the parts of one checkpoint that `abstract` names, after checking all their files and shapes."""
    damaged = _DamagedError(f"checkpoint {folder} is damaged; delete it or restore a copy")
    try:
        checksum, _, content = (folder / MANIFEST).read_text().partition("\n")
        if checksum != str(zlib.crc32(content.encode())):
            raise damaged
        manifest = json.loads(content)
        files = {name: entry for name, entry in manifest["files"].items() if name.split("/")[0] in abstract}
        if files != _checksums(folder, list(abstract)):
            raise damaged
    except (OSError, UnicodeDecodeError) as error:
        raise damaged from error
    for part, wanted in _describe(abstract).items():
        _check_shapes(folder, manifest["arrays"].get(part, {}), wanted)
    return ocp.load_checkpointables(folder, _on_devices(abstract))


def _check_shapes(folder: Path, saved: dict[str, str], wanted: dict[str, str]) -> None:
    """Raises `ValueError` naming the first array whose shape or dtype is not the one wanted."""
    for name in [*wanted, *saved]:
        if saved.get(name) != wanted.get(name):
            raise ValueError(
                f"checkpoint {folder} is of another configuration: it holds {name} as {saved.get(name, 'nothing')}, not"
                f" {wanted.get(name, 'nothing')}; use that run's own settings (and the version of this program that it "
                "was made with) or choose another --run-dir"
            )


def _describe(parts: dict[str, Any]) -> dict[str, dict[str, str]]:
    """Of each part, the path of every array and its shape and dtype: {"params": {"['w']": "float32[3,4]"}}."""
    return {
        part: {
            jax.tree_util.keystr(path): f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
            for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        }
        for part, tree in parts.items()
    }


def _on_devices(abstract: Any) -> Any:
    """`abstract` with the first device's sharding on every leaf that has none."""
    device = SingleDeviceSharding(jax.devices()[0])

    def with_sharding(leaf: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=getattr(leaf, "sharding", None) or device)

    return jax.tree.map(with_sharding, abstract)


def _checksums(folder: Path, parts: list[str] | None = None) -> dict[str, list[int]]:
    """[size, CRC-32] of every file in the named subfolders of `folder` (all of them by default), by relative path."""
    roots = [folder / part for part in parts] if parts is not None else [folder]
    files = sorted(path for root in roots for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(folder).as_posix()): [path.stat().st_size, _crc32(path)] for path in files}


def _crc32(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 22):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _replace_folder(source: Path, target: Path) -> None:
    """Renames `source` to `target`; at no moment is `target` half written."""
    if target.exists():
        replaced = target.with_name(f".replaced-{target.name}")
        target.rename(replaced)
        source.rename(target)
        shutil.rmtree(replaced, ignore_errors=True)
    else:
        source.rename(target)


def _rename_damaged(folder: Path) -> None:
    """Best effort: on a read-only disk the folder stays, and is passed over again next time."""
    target = folder.with_name(f"{folder.name}.damaged")
    shutil.rmtree(target, ignore_errors=True)
    with suppress(OSError):
        folder.rename(target)


def _remove_unfinished(directory: Path) -> None:
    """Deletes what killed or failed saves left behind."""
    for pattern in (".saving-*", ".replaced-*"):
        for path in directory.glob(pattern):
            shutil.rmtree(path, ignore_errors=True)


def _check_writable(directory: Path) -> None:
    """Raises `OSError` early: where Orbax itself fails to make a folder, its threads hang for minutes."""
    directory.mkdir(parents=True, exist_ok=True)
    probe = directory / ".saving-probe"
    try:
        probe.write_bytes(bytes(1 << 16))
    finally:
        probe.unlink(missing_ok=True)


def _explain_write_error(directory: Path, error: Exception) -> Exception:
    """A failure to write as one sentence for the user; any other error (a bug) as it is."""
    text = str(error)
    if any(sign in text for sign in ("No space left", "quota", "File too large")):
        cause, remedy = "disk full", "free space"
    elif isinstance(error, OSError) or any(sign in text for sign in ("PERMISSION_DENIED", "Read-only")):
        cause, remedy = "not writable", "change its permissions"
    else:
        return error
    return ValueError(f"cannot write checkpoints to {directory}: {cause}; {remedy} or choose another --run-dir")


@contextmanager
def _quiet_absl() -> Iterator[None]:
    """Keeps Orbax's background tracebacks (hundreds of lines a failure) off the terminal; the error is raised too."""
    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
