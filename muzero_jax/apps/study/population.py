"""Several runs as one compiled program (`train.py --seeds 8 --together`): what is compiled, and the state it advances.

Members share the game, the network and all shapes. They differ in the seed, and perhaps in numbers of the config that
the program takes as inputs. A mesh has an axis of members beside that of the games. Devices first get members of their
own, as nothing is exchanged between those. An accelerator trains its members side by side by `vmap`. Convolutions it
trains in turn, because `vmap` makes grouped convolutions of them, which are several times slower. A CPU trains all in
turn: it has no idle units, and `vmap` makes loops whose lengths differ between members copy what they carry. There,
tic-tac-toe was 3 to 4 times slower side by side.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from muzero_jax import building
from muzero_jax.learning.algorithm import World
from muzero_jax.ops import devices
from muzero_jax.run import program
from muzero_jax.run.driver import Found
from muzero_jax.storage import config as configs
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import Metrics, Params, TrainState

MEMBER = "member"
"""The mesh axis of the members."""
NUMBERS = (
    "self_play.exploration",
    "optimiser.learning_rate",
    "optimiser.weight_decay",
    "optimiser.max_gradient_norm",
)
"""Fields of the config that may differ between members: they change no shape, no branch of Python, and no match."""
VMAPPED = ("mlp", "observation")
"""Kinds of network without convolutions."""


def mesh_shape(num_members: int, num_devices: int, *shared_sizes: int) -> tuple[int, int]:
    """How many groups of devices have members of their own, and how many devices are in a group.

    There are as many groups as divide the members. The devices of a group share its games and batches, as far as
    their number divides `shared_sizes`.
    """
    groups = devices.largest_divisor(num_devices, num_members)
    return groups, devices.largest_divisor(num_devices // groups, *shared_sizes)


def make_mesh(shape: tuple[int, int]) -> Mesh:
    """A mesh of two axes, members and data."""
    used = jax.devices()[: shape[0] * shape[1]]
    return jax.make_mesh(shape, (MEMBER, devices.AXIS), axis_types=(AxisType.Auto,) * 2, devices=used)


def stacked_specs() -> TrainState:
    """How the members' states lie over the mesh, with a leading axis of members (a prefix tree)."""
    return jax.tree.map(lambda spec: PartitionSpec(MEMBER, *spec), program.state_specs(), is_leaf=program.is_spec)


def make_init(parts: Parts, seeds: Sequence[int], mesh: Mesh) -> Any:
    """`program.make_init` for all members: leaves [N, ...]."""
    init, array = jax.vmap(partial(program.init, parts)), np.asarray(seeds, np.uint32)
    return jax.jit(lambda: init(array), out_shardings=program.placed(stacked_specs(), mesh))


def make_chunk(config: Config, world: World, names: Sequence[str], mesh: Mesh) -> Any:
    """`program.make_chunk` for all members: (numbers [N, F], states) -> (states, metrics [N, iterations]).

    Args:
      names: the F fields of the config whose numbers differ between members.
    """

    def member(inputs: tuple[Array, TrainState]) -> tuple[TrainState, Metrics]:
        numbers, state = inputs
        varied = configs.with_values(config, dict(zip(names, numbers, strict=True)))
        return program.iterate(building.make_parts(varied, world), config.iterations_per_chunk, state)

    def chunk(numbers: Array, states: TrainState) -> tuple[TrainState, Metrics]:
        inputs = numbers, states
        return jax.vmap(member)(inputs) if is_vmapped(config) else jax.lax.map(member, inputs)

    specs, members = stacked_specs(), PartitionSpec(MEMBER)
    return jax.jit(devices.shard_map(chunk, mesh, (members, specs), (specs, members)), donate_argnums=1)


def is_vmapped(config: Config) -> bool:
    """Whether a device trains its members side by side."""
    is_cpu = devices.target_device().platform == "cpu"
    return config.network.kind in VMAPPED and config.network.file is None and not is_cpu


class Population:
    """The states of all members, and the program that advances them.

    Args:
      numbers: [N, F] what differs, in the order of `make_chunk`'s names.
      abstract: one member's state, for its checkpoints.
    """

    def __init__(self, states: TrainState, numbers: np.ndarray, compiled: Any, abstract: TrainState, mesh: Mesh):
        self.states = states
        members = NamedSharding(mesh, PartitionSpec(MEMBER))
        self._numbers, self._compiled = jax.device_put(np.asarray(numbers, np.float32), members), compiled
        everywhere = NamedSharding(mesh, PartitionSpec())
        self._take = jax.jit(_take, out_shardings=jax.tree.map(lambda x: x.sharding, abstract))
        self._take_params = jax.jit(_take, out_shardings=everywhere)

    def advance(self) -> list[Found]:
        """Runs a chunk; the metrics of each member."""
        self.states, metrics = self._compiled(self._numbers, self.states)
        found = jax.device_get(metrics)
        return [_take(found, index) for index in range(len(self._numbers))]

    def state(self, index: int) -> TrainState:
        """One member's state, as a run's own program would hold it."""
        return self._take(self.states, index)

    def params(self, index: int) -> Params:
        """One member's weights."""
        return self._take_params(self.states.learner.params, index)

    def set_span(self, index: int, span: int) -> None:
        """Has one member's learning rate fall over so many updates."""
        learner = self.states.learner
        spans = np.array(learner.schedule_span)
        spans[index] = span
        placed = jax.device_put(spans, learner.schedule_span.sharding)
        self.states = self.states._replace(learner=learner._replace(schedule_span=placed))


class MemberState:
    """A member's share of the states, as its loop sees it (`driver.Held`)."""

    def __init__(self, population: Population, index: int):
        self._population, self._index = population, index

    @property
    def params(self) -> Params:
        """The weights."""
        return self._population.params(self._index)

    @property
    def span(self) -> int:
        """The span of the schedule."""
        return int(self._population.states.learner.schedule_span[self._index])

    def set_span(self, span: int) -> None:
        """Sets the span."""
        self._population.set_span(self._index, span)

    def whole(self) -> TrainState:
        """The state."""
        return self._population.state(self._index)


def stack(states: Sequence[TrainState], mesh: Mesh) -> TrainState:
    """The members' states as one, for `Population`."""
    together = jax.jit(
        lambda *each: jax.tree.map(lambda *x: jnp.stack(x), *each), out_shardings=program.placed(stacked_specs(), mesh)
    )
    return together(*states)


def _take(tree: Any, index: Any) -> Any:
    return jax.tree.map(lambda x: x[index], tree)
