"""Several runs, the members, as one compiled program (`train.py --seeds 8 --together`).

Members share the game, the network and all shapes. They differ in the seed, and perhaps in numbers of the config that
the program takes as inputs. The mesh has an axis of members and one of games. Devices are first given different
members, because members exchange nothing. An accelerator trains its members side by side by `vmap`, except with
convolutions, which `vmap` would turn into grouped ones that are several times slower. A CPU trains its members in turn:
it has no idle units, and under `vmap` a loop whose length differs between members copies its whole carry. On a CPU
tic-tac-toe was 3 to 4 times slower side by side.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from muzero_jax.algorithm import Algorithm, make_algorithm
from muzero_jax.config.config import Config, with_values
from muzero_jax.ops.devices import target_device
from muzero_jax.ops.mesh import AXIS, largest_divisor, shard_map
from muzero_jax.run import program
from muzero_jax.run.compiled import Program
from muzero_jax.types import Metrics, TrainState

MEMBER = "member"
"""The mesh axis of the members."""
VMAPPED = ("mlp", "observation")
"""Kinds of network without convolutions."""


def mesh_shape(num_members: int, num_devices: int, *shared_sizes: int) -> tuple[int, int]:
    """(groups of devices, devices in a group); each group trains its own members.

    The number of groups divides the members. The devices of a group share games and batches, so their number divides
    `shared_sizes`.
    """
    groups = largest_divisor(num_devices, num_members)
    return groups, largest_divisor(num_devices // groups, *shared_sizes)


def make_mesh(shape: tuple[int, int]) -> Mesh:
    """A mesh with the axes members and games."""
    used = jax.devices()[: shape[0] * shape[1]]
    return jax.make_mesh(shape, (MEMBER, AXIS), axis_types=(AxisType.Auto,) * 2, devices=used)


def stacked_specs() -> TrainState:
    """The partition specs of the members' states, which have a leading axis of members (a prefix tree)."""
    return jax.tree.map(lambda spec: PartitionSpec(MEMBER, *spec), program.state_specs(), is_leaf=program.is_spec)


def make_init(algorithm: Algorithm, seeds: Sequence[int], mesh: Mesh) -> Any:
    """`program.make_init` for all members: leaves [N, ...]."""
    init = jax.vmap(partial(program.init, algorithm))
    array = np.asarray(seeds, np.uint32)
    return jax.jit(lambda: init(array), out_shardings=program.placed(stacked_specs(), mesh))


def make_chunk(config: Config, algorithm: Algorithm, names: Sequence[str], mesh: Mesh) -> Any:
    """`program.make_chunk` for all members: (numbers [N, F], states, progress [I]) -> (states, metrics [N, I]).

    Args:
      names: the F fields of the config whose numbers differ between members.
    """

    def member(inputs: tuple[Array, TrainState], progress: Array) -> tuple[TrainState, Metrics]:
        numbers, state = inputs
        varied = with_values(config, dict(zip(names, numbers, strict=True)))
        return program.iterate(make_algorithm(varied, algorithm.environment, algorithm.model), state, progress)

    def chunk(numbers: Array, states: TrainState, progress: Array) -> tuple[TrainState, Metrics]:
        advance = partial(member, progress=progress)
        return jax.vmap(advance)((numbers, states)) if is_vmapped(config) else jax.lax.map(advance, (numbers, states))

    specs = stacked_specs()
    members = PartitionSpec(MEMBER)
    sharded = shard_map(chunk, mesh, (members, specs, PartitionSpec()), (specs, members))
    return jax.jit(sharded, donate_argnums=1)


def is_vmapped(config: Config) -> bool:
    """Whether a device trains its members side by side, by `vmap`."""
    is_cpu = target_device().platform == "cpu"
    return config.network.kind in VMAPPED and config.network.file is None and not is_cpu


def make_program(compiled: Any, numbers: np.ndarray, mesh: Mesh) -> Program:
    """The `Program` for `run.run`, from the compiled `make_chunk` and its numbers [N, F]."""
    placed = jax.device_put(np.asarray(numbers, np.float32), NamedSharding(mesh, PartitionSpec(MEMBER)))
    take_params = jax.jit(take, out_shardings=NamedSharding(mesh, PartitionSpec()))
    return Program(
        advance=lambda states, progress: compiled(placed, states, progress),
        text=compiled.as_text,
        agents=lambda found: [take(found, index) for index in range(len(numbers))],
        params=lambda states, index: take_params(states.learner.params, index),
    )


def take(tree: Any, index: Any) -> Any:
    """One member's share of a tree whose leaves are [N, ...]."""
    return jax.tree.map(lambda x: x[index], tree)
