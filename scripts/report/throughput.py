"""Search and gradient steps as a run makes them, compiled ahead of time on one device and on all, and measured.

Both go through the library's own functions: `building.make_parts` for the search, `training.learn_from` (sampling,
symmetries, targets, `learner.update`) for the gradient steps, under the same mesh as a run's.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from muzero_jax import building, training
from muzero_jax.arithmetic import devices
from muzero_jax.arithmetic.devices import AXIS, shard_map
from muzero_jax.run.program import state_specs
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import TrainState
from scripts.benchmarks.ours import filled_state, network_calls, share_out, without_trees
from scripts.benchmarks.workloads import noisy_params
from scripts.report.arithmetic_section import Say
from scripts.report.timing import Candidate, Sample, measure_in_turn

EVERYWHERE, SPLIT = PartitionSpec(), PartitionSpec(AXIS)


class Measured(NamedTuple):
    """A program at work; `memory` is XLA's analysis of the one-device program."""

    config: Config
    size: int  # games at once, or windows a batch
    units: int  # simulations, or updates, of one call
    times: dict[str, Sample]
    memory: Any
    num_devices: int = 1  # that `ALL` is: as many as divide the sizes


def describe(config: Config) -> str:
    """The game and its network."""
    network = config.network
    size = f" {config.board_size}x{config.board_size}" if config.board_size else ""
    return f"{config.env}{size}, {network.kind} {network.width}x{network.num_blocks}"


ONE, ALL, NETWORK_ALONE = "one device", "all devices", "network alone"


def measure_search(config: Config, games: int, num_devices: int, say: Say) -> Measured:
    """The search of fresh games on one device and on all that divide them, and the network's part of it on one."""
    say(f"{describe(config)}, {games} games")
    parts = building.make_parts(config)
    params = noisy_params(parts.model)
    states = jax.vmap(parts.environment.init)(jax.random.split(jax.random.key(2), games))
    positions = jax.vmap(parts.environment.observe)(states), states.legal_action_mask
    simulations = config.search.num_simulations
    programs = {ONE: _compiled_search(parts, params, positions, 1)}
    count = devices.largest_divisor(num_devices, games)
    if count > 1:
        programs[ALL] = _compiled_search(parts, params, positions, count)
    candidates: dict[str, Candidate] = {name: partial(program, *inputs) for name, (program, inputs) in programs.items()}
    candidates[NETWORK_ALONE] = partial(network_calls(parts, simulations), params, positions[0])
    memory = programs[ONE][0].memory_analysis()
    return Measured(config, games, simulations * games, measure_in_turn(candidates), memory, count)


def _compiled_search(parts: Parts, params: Any, positions: tuple, num_devices: int):
    mesh = devices.make_mesh(num_devices)
    search = jax.jit(shard_map(without_trees(parts.search), mesh, (EVERYWHERE, EVERYWHERE, SPLIT, SPLIT), SPLIT))
    everywhere, split = (NamedSharding(mesh, spec) for spec in (EVERYWHERE, SPLIT))
    inputs = (*jax.device_put((params, jax.random.key(3)), everywhere), *jax.device_put(positions, split))
    return search.lower(*inputs).compile(), inputs


def measure_learner(config: Config, num_devices: int, say: Say) -> Measured:
    """One iteration's gradient steps from a filled ring, on one device and on all."""
    say(describe(config))
    parts = building.make_parts(config)
    state = filled_state(config, parts)
    programs = {ONE: _compiled_learner(config, parts, state, devices.make_mesh(1))}
    count = devices.largest_divisor(num_devices, *config.shared_sizes)
    if count > 1:
        programs[ALL] = _compiled_learner(config, parts, state, devices.make_mesh(count))
    candidates: dict[str, Candidate] = {name: partial(program, *inputs) for name, (program, inputs) in programs.items()}
    memory = programs[ONE][0].memory_analysis()
    windows, updates = config.optimiser.batch_size, config.optimiser.updates_per_iteration
    return Measured(config, windows, updates, measure_in_turn(candidates), memory, count)


def _compiled_learner(config: Config, parts: Parts, state: TrainState, mesh: Mesh):
    specs = state_specs()
    state = share_out(state, config, parts, mesh)
    learn = shard_map(
        partial(training.learn_from, config=config, parts=parts),
        mesh,
        (specs.learner, specs.replay, EVERYWHERE, EVERYWHERE),
        (specs.learner, EVERYWHERE),
    )
    keys = jax.device_put((jax.random.key(4), jax.random.key(5)), NamedSharding(mesh, EVERYWHERE))
    inputs = (state.learner, state.replay, *keys)
    return jax.jit(learn).lower(*inputs).compile(), inputs
