"""Checkpoints of a whole run: Orbax writes them during training, each whole or absent, and keeps the newest few.

Orbax's `training.Checkpointer` is its `CheckpointManager` with the handlers and options of the v1 API. A save goes to
`N.orbax-checkpoint-tmp`, which is renamed at the end, so a folder whose name is a number was complete whenever the run
was killed. Later damage is noticed only if the checkpoint cannot be read.

They are read with TensorStore, in whose format Orbax writes, because Orbax counts operations in each process: after one
process alone has read or saved something, the next save of all would wait for ever. So versions, which one process
keeps, are also written with TensorStore.
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
from muzero_jax.types import LearnerState, Params, ReplayState, TrainState

# Orbax logs failures, with tracebacks of its threads, that are also raised here.
logging.getLogger("absl").addFilter(lambda record: "orbax" not in record.pathname)


class Checkpointer:
    """Keeps the newest `keep` checkpoints of a run in `directory`, one folder for each step, named by its number.

    Use it in a `with` statement, whose end waits for the last save. The first save makes the folder. Several
    processes that train together all make a `Checkpointer` and save and restore the same steps, each its own part.
    """

    def __init__(self, directory: str | Path, *, keep: int = 3):
        self.directory = Path(directory).resolve()
        self.keep = keep
        self._saving: Any = None

    def __enter__(self) -> "Checkpointer":
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        # A failed save must not hide the block's exception, which is the first cause.
        with suppress(Exception) if error_type else nullcontext():
            self.wait()
        if "_manager" in vars(self):
            with suppress(Exception):  # a save's failure, which `wait` has already raised
                self._manager.close()

    @cached_property
    def _manager(self) -> ocp.training.Checkpointer:
        context = ocp.Context()
        newest = ocp.training.preservation_policies.LatestN(self.keep)
        # Else each device writes a part of replicated arrays, and Orbax compiles a program per shape and device for it.
        context.array.saving.use_replica_parallel = False
        # Else, on a full disk, its threads wait 20 minutes for a folder that cannot be made.
        context.asynchronous.create_directories_asynchronously = False
        return ocp.training.Checkpointer(
            self.directory, context=context, preservation_policy=newest, cleanup_tmp_directories=True
        )

    def save(self, step: int, state: TrainState) -> None:
        """Saves `state` as `step` in the background; returns as soon as the arrays may be donated.

        It waits for the save before it, so that none is skipped. Raises `ValueError` if the disk is full; a failure in
        the background is raised by the next `save`, by `wait` or at the end of the `with` block.
        """
        self.wait()
        with _writing(self.directory):
            self._saving = self._manager.save_checkpointables_async(step, _parts(state), force=True, overwrite=True)

    def wait(self) -> None:
        """Waits until the last save is on the disk; raises `ValueError` if the disk is full."""
        saving = self._saving
        self._saving = None
        if saving is not None:
            with _writing(self.directory):
                saving.result()

    def restore(self, step: int, abstract_state: TrainState) -> TrainState:
        """The state that was saved as `step`.

        Raises `ValueError` if the checkpoint cannot be read, or if its shapes are those of another configuration.

        Args:
          abstract_state: `jax.ShapeDtypeStruct`s with the shardings to restore to (default: the first device), which
            may be on more or fewer devices than those of the save.
        """
        folder = self.directory / str(step)
        parts = _parts(abstract_state)
        params = _read(folder, "params", parts["params"])
        state = _read(folder, "state", parts["state"])
        return state._replace(learner=state.learner._replace(**{_agents(abstract_state.learner): params}))


def checkpoint_steps(directory: str | Path) -> list[int]:
    """The steps of the checkpoints in `directory`, oldest first."""
    return sorted(int(path.name) for path in Path(directory).glob("*/") if path.name.isdecimal())


def save_params(directory: str | Path, step: int, params: Params) -> None:
    """Saves only the weights, for `restore_params`: a version to play against, but not to resume from.

    Returns when they are on the disk; raises `ValueError` if the disk is full.
    """
    folder = Path(directory).resolve() / str(step)
    saving = folder.with_name(f"{step}.saving")
    with _writing(folder.parent):
        shutil.rmtree(saving, ignore_errors=True)
        with ts.Transaction() as transaction:
            for name, array in shapes.named(params).items():
                spec = _array_spec(saving / "params", name)
                values = np.asarray(array)
                kind = {"dtype": values.dtype, "shape": values.shape}
                ts.open(spec, create=True, transaction=transaction, **kind).result().write(values).result()
        shutil.rmtree(folder, ignore_errors=True)
        saving.rename(folder)


def restore_params(directory: str | Path, abstract_params: Params, *, step: int | None = None) -> tuple[int, Params]:
    """Restores only the weights, from the newest checkpoint or from `step`: (step, params).

    The replay buffer is not read. Leaves of `abstract_params` without a sharding are put on the first device. Raises
    `ValueError` if there is no such checkpoint, if it cannot be read, or if its shapes are those of another network.
    """
    folder = _find(directory, step)
    return int(folder.name), _read(folder, "params", abstract_params)


def describe_replay(directory: str | Path) -> dict[str, str]:
    """The result of `shapes.describe` for the newest checkpoint's replay buffer; ValueError if there is none.

    Reads no array.
    """
    prefix = "replay."
    arrays = shapes.describe(_open(_find(directory), "state"))
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def restore_replay(directory: str | Path, abstract_replay: ReplayState) -> tuple[int, ReplayState]:
    """Restores only the replay buffer, from the newest checkpoint: (step, buffer).

    It reads nothing else, so the run may have trained another network. Arrays that `abstract_replay` lacks are not
    read. Raises `ValueError` if there is no checkpoint, if it cannot be read, or if the shapes differ.
    """
    folder = _find(directory)
    return int(folder.name), _read(folder, "state", {"replay": abstract_replay}, partial=True)["replay"]


def restore_learner(directory: str | Path, abstract_learner: LearnerState) -> tuple[int, LearnerState]:
    """Restores only the weights and the optimiser's state, from the newest checkpoint: (step, learner).

    Raises `ValueError` like `restore_params`.
    """
    folder = _find(directory)
    agents = _agents(abstract_learner)
    params = _read(folder, "params", getattr(abstract_learner, agents))
    rest = _read(folder, "state", {"learner": abstract_learner._replace(**{agents: None})}, partial=True)["learner"]
    return int(folder.name), rest._replace(**{agents: params})


def _parts(state: TrainState) -> dict[str, Any]:
    """`state` in two folders, so that the weights can be read without the rest."""
    kept = {_agents(state.learner): None}
    return {"params": state.learner.agent_params, "state": state._replace(learner=state.learner._replace(**kept))}


def _agents(learner: LearnerState) -> str:
    """The field of the agent's weights."""
    return "params" if learner.average_params is None else "average_params"


def _find(directory: str | Path, step: int | None = None) -> Path:
    """The folder of the newest checkpoint, or of `step`; ValueError if there is none."""
    directory = Path(directory).resolve()
    steps = [each for each in checkpoint_steps(directory) if step in (None, each)]
    if not steps:
        name = "checkpoint" if step is None else f"checkpoint {step}"
        raise ValueError(f"no {name} in {directory}; give the folder of a run that has saved one")
    return directory / str(steps[-1])


def _store_spec(folder: Path) -> dict[str, Any]:
    return {"driver": "ocdbt", "base": {"driver": "file", "path": f"{folder}/"}}


def _array_spec(folder: Path, name: str) -> dict[str, Any]:
    store = _store_spec(folder) | {"path": f"{name}/"}
    # Else zeros are not written, and missing data are read as zeros.
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
    """Reads a part of a checkpoint to the shardings of `abstract`; ValueError if the shapes differ.

    `partial` skips saved arrays that are not in `abstract`.
    """
    stores = _open(folder, part)
    wanted = shapes.named(abstract)
    saved = {name: store for name, store in stores.items() if name in wanted or not partial}
    if found := shapes.difference(shapes.describe(saved), shapes.describe(wanted)):
        maker = "by another network" if part == "params" else "with other settings"
        raise ValueError(
            f"checkpoint {folder} was made {maker}: {found}; use the settings and the version of this program that it "
            "was made with"
        )
    with _reading(folder):
        leaves = [_read_array(saved[name], leaf) for name, leaf in wanted.items()]
    return jax.tree.unflatten(jax.tree.structure(abstract), leaves)


def _read_array(store: ts.TensorStore, leaf: jax.ShapeDtypeStruct) -> jax.Array:
    """One array, of which each device reads its part; random keys are saved as their words."""
    sharding = leaf.sharding or SingleDeviceSharding(jax.local_devices()[0])
    words = jax.make_array_from_callback(store.shape, sharding, lambda index: store[index].read().result())
    is_key = jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.wrap_key_data(words) if is_key else words


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Turns any failure to read a checkpoint into a ValueError, because parsers raise all kinds."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"checkpoint {folder} cannot be read and may be damaged ({shown(error)}); delete it to continue without it"
        ) from error


@contextmanager
def _writing(directory: Path) -> Iterator[None]:
    """Turns the error of a full disk into a ValueError."""
    try:
        yield
    except Exception as error:
        if not any(sign in str(error) for sign in ("No space left", "quota", "File too large")):
            raise
        raise ValueError(
            f"cannot write checkpoints to {directory}: disk full; free space or choose another --run-dir"
        ) from error
