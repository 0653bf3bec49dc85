"""Checkpoints of a whole run: Orbax keeps the newest few, written while training goes on, whole or absent.

Orbax's `training.Checkpointer` is its `CheckpointManager` with the handlers and options of the v1 API. A save goes to
`N.orbax-checkpoint-tmp` and is renamed at its end, so a folder whose name is a number was whole, whenever the run was
killed. What happens to it later is seen only if it cannot be read.

TensorStore, in whose format Orbax writes, reads them: Orbax counts operations in each process, and once one process
alone has read or saved something, the next save of all waits for ever. So versions, which one process keeps, are
TensorStore's alone.
"""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tensorstore as ts
from jax.sharding import SingleDeviceSharding
from orbax.checkpoint import v1 as ocp

from muzero_jax.own.faults import shown
from muzero_jax.storage import shapes
from muzero_jax.types import Params, ReplayState, TrainState

# What Orbax logs of a failure, tracebacks of its threads among them, is an exception here as well.
logging.getLogger("absl").addFilter(lambda record: "orbax" not in record.pathname)


class Checkpointer:
    """Keeps the newest `keep` checkpoints of a run in `directory`, one folder for each step, named by its number.

    Open it with `with`: leaving the block waits for the last save. The folder is made by the first save. Where several
    processes train together, each makes one, and all save and restore the same steps: each writes its own part.
    """

    def __init__(self, directory: str | Path, *, keep: int = 3):
        self.directory, self.keep = Path(directory).absolute(), keep
        self._saving: Any = None

    def __enter__(self) -> "Checkpointer":
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        # What the block raised is the first cause; a failed save must not hide it.
        with suppress(Exception) if error_type else nullcontext():
            self.wait()
        if "_manager" in vars(self):
            with suppress(Exception):  # the failure of a save again, which `wait` has raised
                self._manager.close()

    @cached_property
    def _manager(self) -> ocp.training.Checkpointer:
        context, newest = ocp.Context(), ocp.training.preservation_policies.LatestN(self.keep)
        # Else Orbax has each device write a part of what all hold, with a program a shape and device to cut it.
        context.array.saving.use_replica_parallel = False
        # Else its threads wait 20 minutes for a folder that could not be made, if a full disk has no room for one.
        context.asynchronous.create_directories_asynchronously = False
        return ocp.training.Checkpointer(
            self.directory, context=context, preservation_policy=newest, cleanup_tmp_directories=True
        )

    def save(self, step: int, state: TrainState) -> None:
        """Saves `state` as `step`, in the background: returns as soon as the arrays may be donated.

        Waits for the save before it, if that still runs: no save is ever skipped. Raises `ValueError` if the disk is
        full; a failure in the background is raised by the next `save`, by `wait` or when the block ends.
        """
        self.wait()
        with _writing(self.directory):
            self._saving = self._manager.save_checkpointables_async(step, _parts(state), force=True, overwrite=True)

    def wait(self) -> None:
        """Returns once everything saved lies on the disk; raises `ValueError` if the disk is full."""
        saving, self._saving = self._saving, None
        if saving is not None:
            with _writing(self.directory):
                saving.result()

    def restore(self, step: int, abstract_state: TrainState) -> TrainState:
        """The state that was saved as `step`.

        Raises `ValueError` if the checkpoint cannot be read, or if the shapes are another configuration's.

        Args:
          abstract_state: `jax.ShapeDtypeStruct`s with the shardings to restore onto (default: the first device). The
            run may have been saved from any number of devices.
        """
        folder, parts = self.directory / str(step), _parts(abstract_state)
        params = _read(folder, "params", parts["params"])
        state = _read(folder, "state", parts["state"])
        return state._replace(learner=state.learner._replace(params=params))


def checkpoint_steps(directory: str | Path) -> list[int]:
    """The steps of the checkpoints in `directory`, oldest first."""
    return sorted(int(path.name) for path in Path(directory).glob("*/") if path.name.isdecimal())


def save_params(directory: str | Path, step: int, params: Params) -> None:
    """Saves weights alone, for `restore_params`: a version to play against, not one to resume from.

    Returns once they lie on the disk; raises `ValueError` if that is full.
    """
    folder = Path(directory).absolute() / str(step)
    saving = folder.with_name(f"{step}.saving")
    with _writing(folder.parent):
        shutil.rmtree(saving, ignore_errors=True)
        with ts.Transaction() as transaction:
            for name, array in shapes.named(params).items():
                spec, values = _array_spec(saving / "params", name), np.asarray(array)
                kind = {"dtype": values.dtype, "shape": values.shape}
                ts.open(spec, create=True, transaction=transaction, **kind).result().write(values).result()
        shutil.rmtree(folder, ignore_errors=True)
        saving.rename(folder)


def restore_params(directory: str | Path, abstract_params: Params, *, step: int | None = None) -> tuple[int, Params]:
    """Restores only the weights, from the newest checkpoint or from `step`: (step, params).

    The replay buffer stays on the disk. Leaves of `abstract_params` without a sharding are put on the first device.
    Raises `ValueError` if there is no such checkpoint, if it cannot be read, or if the shapes are another network's.
    """
    folder = _find(directory, step)
    return int(folder.name), _read(folder, "params", abstract_params)


def describe_replay(directory: str | Path) -> dict[str, str]:
    """The result of `shapes.describe` for the newest checkpoint's replay buffer; ValueError if there is none.

    Reads no array.
    """
    prefix, arrays = "replay.", shapes.describe(_open(_find(directory), "state"))
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def restore_replay(directory: str | Path, abstract_replay: ReplayState) -> tuple[int, ReplayState]:
    """Restores only the replay buffer, from the newest checkpoint: (step, buffer).

    Reads nothing else, so the run may have trained another network. What the buffer holds beyond `abstract_replay`
    stays on the disk. Raises `ValueError` if there is no checkpoint, if it cannot be read, or for other shapes.
    """
    folder = _find(directory)
    return int(folder.name), _read(folder, "state", {"replay": abstract_replay}, partial=True)["replay"]


def _parts(state: TrainState) -> dict[str, Any]:
    """`state` in two folders, so that the weights can be read without the rest."""
    return {"params": state.learner.params, "state": state._replace(learner=state.learner._replace(params=None))}


def _find(directory: str | Path, step: int | None = None) -> Path:
    """The folder of the newest checkpoint, or of `step`; ValueError if there is none."""
    directory = Path(directory).absolute()
    steps = [each for each in checkpoint_steps(directory) if step in (None, each)]
    if not steps:
        name = "checkpoint" if step is None else f"checkpoint {step}"
        raise ValueError(f"no {name} in {directory}; give the folder of a run that has saved one")
    return directory / str(steps[-1])


def _store_spec(folder: Path) -> dict[str, Any]:
    return {"driver": "ocdbt", "base": {"driver": "file", "path": f"{folder}/"}}


def _array_spec(folder: Path, name: str) -> dict[str, Any]:
    store = _store_spec(folder) | {"path": f"{name}/"}
    # Else zeros are neither written nor missed.
    zeros = {"store_data_equal_to_fill_value": True, "fill_missing_data_reads": False}
    return {"driver": "zarr3", "kvstore": store} | zeros


def _open(folder: Path, part: str) -> dict[str, ts.TensorStore]:
    """The arrays of a part of a checkpoint by their names, not yet read."""
    with _reading(folder):
        keys = ts.KvStore.open(_store_spec(folder / part)).result().list().result()
        names = [key.decode().removesuffix("/zarr.json") for key in keys if key.endswith(b"/zarr.json")]
        if not names:
            raise ValueError(f"no arrays in {part}")
        opening = {name: ts.open(_array_spec(folder / part, name)) for name in names}
        return {name: future.result() for name, future in opening.items()}


def _read(folder: Path, part: str, abstract: Any, *, partial: bool = False) -> Any:
    """Reads a part of a checkpoint onto the shardings of `abstract`, if the shapes are the saved ones.

    `partial` leaves out what was saved beyond `abstract`.
    """
    stores, wanted = _open(folder, part), shapes.named(abstract)
    saved = {name: store for name, store in stores.items() if name in wanted or not partial}
    if found := shapes.difference(shapes.describe(saved), shapes.describe(wanted)):
        maker = "by another network" if part == "params" else "with other settings"
        raise ValueError(
            f"checkpoint {folder} was made {maker}: {found}; use the settings and the version of this program that it "
            "was made with, or choose another --run-dir"
        )
    with _reading(folder):
        leaves = [_read_array(saved[name], leaf) for name, leaf in wanted.items()]
    return jax.tree.unflatten(jax.tree.structure(abstract), leaves)


def _read_array(store: ts.TensorStore, leaf: jax.ShapeDtypeStruct) -> jax.Array:
    """One array, of which each device reads its part; random keys lie on the disk as their words."""
    sharding = leaf.sharding or SingleDeviceSharding(jax.local_devices()[0])
    words = jax.make_array_from_callback(store.shape, sharding, lambda index: store[index].read().result())
    is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(words) if is_key else words


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Makes any failure to read a checkpoint one sentence; Orbax's parsers raise all kinds."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"checkpoint {folder} cannot be read and may be damaged ({shown(error)}); delete it to continue without it"
        ) from error


@contextmanager
def _writing(directory: Path) -> Iterator[None]:
    """Makes a full disk one sentence."""
    try:
        yield
    except Exception as error:
        if not any(sign in str(error) for sign in ("No space left", "quota", "File too large")):
            raise
        raise ValueError(
            f"cannot write checkpoints to {directory}: disk full; free space or choose another --run-dir"
        ) from error
