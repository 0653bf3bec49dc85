"""Our programs as things to measure: a search, the bare network, self-play, learning, whole iterations.

Each function compiles a program and returns a `Variant` that runs it and keeps what it needs for its next call.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from muzero_jax import building, training
from muzero_jax.arithmetic import devices, micro_batches
from muzero_jax.arithmetic.devices import AXIS, shard_map
from muzero_jax.learning import learner, replay
from muzero_jax.learning.self_play import rollout
from muzero_jax.run.program import make_chunk, make_init, state_specs
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import ActorState, Params, ReplayState, SearchFn, TrainState
from scripts.benchmarks import workloads
from scripts.benchmarks.measuring import Variant

EVERYWHERE, GAMES = PartitionSpec(), PartitionSpec(AXIS)


class Positions:
    """What a search is asked about: observations and legal actions of games some random moves old."""

    def __init__(self, parts: Parts, num_games: int, num_moves: int):
        actor, _ = workloads.random_play(parts.environment, jax.random.key(1), num_envs=num_games, length=num_moves)
        self.observation = jax.vmap(parts.environment.observe)(actor.env_state)
        self.legal_action_mask = actor.env_state.legal_action_mask


def search_call(config: Config, positions: Positions) -> Variant:
    """One search of every position."""
    parts = workloads.parts_of(config)
    search = jax.jit(without_trees(building.make_search(config, parts.environment, parts.model, noise=True)))
    arguments = (
        workloads.noisy_params(parts.model),
        jax.random.key(2),
        positions.observation,
        positions.legal_action_mask,
    )
    return Variant(lambda: search(*arguments), 1.0)


def without_trees(search: SearchFn) -> SearchFn:
    """`search` as runs and players ask for it: trees that nobody looks at are no results, which would cost time."""
    return lambda *asked: search(*asked)._replace(tree=None)


def bare_network(config: Config, positions: Positions) -> Variant:
    """The network calls of one search and nothing else."""
    parts = workloads.parts_of(config)
    params = workloads.noisy_params(parts.model)
    call = network_calls(parts, config.search.num_simulations)
    return Variant(lambda: call(params, positions.observation), 1.0)


def network_calls(parts: Parts, num_simulations: int) -> Callable[[Params, Any], Any]:
    """(params, observations) -> a search's inferences, were its trees free: a root, then a chain of moves from it.

    Which moves is known beforehand, so choosing them takes no time. The argmax of an embedding took as long as the
    network's own arithmetic, and made trees look free that were not.
    """
    model = micro_batches.for_inference(parts.model)

    @jax.jit
    def evaluate(params, observation):
        def simulate(embedding, simulation):
            action = (simulation + jnp.arange(embedding.shape[0])) % parts.environment.num_actions
            output = model.recurrent_inference(params, embedding, action)
            scalars = model.to_scalar(output.reward_logits) + model.to_scalar(output.value_logits)
            return output.embedding, scalars + output.policy_logits[:, 0]

        root = model.initial_inference(params, observation)
        return jax.lax.scan(simulate, root.embedding, jnp.arange(num_simulations))

    return evaluate


def self_play(config: Config, num_devices: int) -> Variant:
    """Self-play as one program: T moves of B games, shared among the devices; the unit is a move."""
    parts = workloads.parts_of(config)
    mesh = devices.make_mesh(num_devices)
    length = config.self_play.rollout_length

    def play(params, actor, key):
        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        return rollout(
            params, actor, key, environment=parts.environment, search=parts.search, length=length, exploration=0.0
        )

    specs = (EVERYWHERE, GAMES, EVERYWHERE), (GAMES, PartitionSpec(None, AXIS))
    program = jax.jit(shard_map(play, mesh, *specs), donate_argnums=1)
    params = jax.device_put(workloads.noisy_params(parts.model), NamedSharding(mesh, EVERYWHERE))
    actor = jax.device_put(_games(config, parts), NamedSharding(mesh, GAMES))
    state = {"actor": actor, "key": jax.device_put(jax.random.key(3), NamedSharding(mesh, EVERYWHERE))}

    def run():
        state["actor"], trajectory = program(params, state["actor"], state["key"])
        return trajectory

    return Variant(run, float(config.self_play.num_envs * length))


def host_driven_self_play(config: Config) -> Variant:
    """The same moves driven from Python: one compiled search and step a move, everything brought to the host."""
    parts = workloads.parts_of(config)
    play = jax.jit(partial(rollout, environment=parts.environment, search=parts.search, length=1, exploration=0.0))
    params = workloads.noisy_params(parts.model)
    state = {"actor": _games(config, parts)}
    key = jax.random.key(3)

    def run():
        moves = []
        for move in range(config.self_play.rollout_length):
            state["actor"], transition = play(params, state["actor"], jax.random.fold_in(key, move))
            moves.append(jax.device_get(transition))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *moves)

    return Variant(run, float(config.self_play.num_envs * config.self_play.rollout_length))


def _games(config: Config, parts: Parts) -> ActorState:
    num_envs = config.self_play.num_envs
    return workloads.random_play(parts.environment, jax.random.key(1), num_envs=num_envs, length=3)[0]


def filled_state(config: Config, parts: Parts) -> TrainState:
    """A run's state with a ring full of random play and noisy parameters, on one device."""
    num_envs, length = config.self_play.num_envs, config.replay.replay_length
    actor, moves = workloads.random_play(parts.environment, jax.random.key(4), num_envs=num_envs, length=length)
    params = workloads.noisy_params(parts.model)
    learner_state = learner.init(parts.model, parts.optimiser, jax.random.key(0))
    learner_state = learner_state._replace(params=params)
    ring = ReplayState(replay.pack(moves), jnp.int32(0), jnp.int32(length))
    return TrainState(actor, learner_state, ring, jnp.int32(0), jax.random.key(5))


def share_out(state: TrainState, config: Config, parts: Parts, mesh: jax.sharding.Mesh) -> TrainState:
    """A copy of the state as the devices of `mesh` hold it."""
    shardings = jax.tree.map(lambda x: x.sharding, make_init(parts, config.seed, mesh).eval_shape())
    return jax.device_put(state, shardings)


def learning(config: Config, num_devices: int) -> Variant:
    """Gradient steps on windows of the ring, the batch shared among the devices; the unit is an update."""
    parts = workloads.parts_of(config)
    mesh = devices.make_mesh(num_devices)

    def learn(learner_state, memory, key):
        start_key, update_key = jax.random.split(jax.random.fold_in(key, jax.lax.axis_index(AXIS)))
        return training.learn_from(learner_state, memory, start_key, update_key, config=config, parts=parts)

    specs = state_specs()
    program = jax.jit(
        shard_map(learn, mesh, (specs.learner, specs.replay, EVERYWHERE), (specs.learner, EVERYWHERE)),
        donate_argnums=0,
    )
    full = share_out(filled_state(config, parts), config, parts, mesh)
    state = {"learner": full.learner}

    def run():
        state["learner"], metrics = program(state["learner"], full.replay, full.seed_key)
        return metrics

    return Variant(run, float(config.optimiser.updates_per_iteration))


def iteration(config: Config, num_devices: int) -> Variant:
    """The run's own program, `program.make_chunk`, on a full ring; the unit is a frame."""
    parts = workloads.parts_of(config)
    mesh = devices.make_mesh(num_devices)
    program = make_chunk(parts, mesh, num_iterations=config.iterations_per_chunk)
    state: dict[str, Any] = {"run": share_out(filled_state(config, parts), config, parts, mesh)}

    def run():
        state["run"], metrics = program(state["run"])
        return metrics

    frames = config.self_play.num_envs * config.self_play.rollout_length * config.iterations_per_chunk
    return Variant(run, float(frames))
