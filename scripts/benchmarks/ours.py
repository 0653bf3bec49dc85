"""Our programs, compiled and ready to run: a search, the bare network, self-play, learning, whole iterations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from muzero_jax import training
from muzero_jax.algorithm import Algorithm
from muzero_jax.learning import replay
from muzero_jax.learning import self_play as self_plays
from muzero_jax.ops import devices, micro_batches
from muzero_jax.ops.devices import AXIS, shard_map
from muzero_jax.run.program import make_chunk, make_init, state_specs
from muzero_jax.storage.config import Config
from muzero_jax.types import ActorState, ReplayState, SearchRoots, TrainState
from scripts.benchmarks import workloads
from scripts.benchmarks.workloads import algorithm_of
from scripts.measuring.timing import Variant, going_on

EVERYWHERE, GAMES, MOVES = PartitionSpec(), PartitionSpec(AXIS), PartitionSpec(None, AXIS)


def positions(config: Config, num_games: int, num_moves: int) -> SearchRoots:
    """Positions of games some random moves old."""
    environment = algorithm_of(config).environment
    actor, _ = workloads.random_play(environment, jax.random.key(1), num_envs=num_games, length=num_moves)
    return environment.roots(actor.env_state)


def search(config: Config, asked: SearchRoots) -> Variant:
    """One search of every position, as runs do it: without returning trees, which would cost time."""
    algorithm = algorithm_of(config)
    inputs = (workloads.noisy_params(algorithm.model), jax.random.key(2), asked)
    search_fn = workloads.search_of(config, algorithm)

    def without_tree(params, key, asked):
        return search_fn(params, key, asked)._replace(tree=None)

    return Variant(partial(jax.jit(without_tree), *inputs), 1)


def bare_network(config: Config, asked: SearchRoots) -> Variant:
    """A search's network calls and nothing else, as if trees were free: a root, then a chain of moves from it.

    The moves are fixed beforehand, so choosing them takes no time. Choosing by the argmax of an embedding took as long
    as the network's own arithmetic, and made trees look free that were not.
    """
    algorithm = algorithm_of(config)
    model = micro_batches.for_inference(algorithm.model)

    @jax.jit
    def evaluate(params, observation):
        def simulate(embedding, simulation):
            action = (simulation + jnp.arange(embedding.shape[0])) % algorithm.environment.num_actions
            output = model.recurrent_inference(params, embedding, action)
            scalars = model.to_scalar(output.reward_logits) + model.to_scalar(output.value_logits)
            return output.embedding, scalars + output.policy_logits[:, 0]

        root = model.initial_inference(params, observation)
        return jax.lax.scan(simulate, root.embedding, jnp.arange(config.search.num_simulations))

    return Variant(partial(evaluate, workloads.noisy_params(algorithm.model), asked.observation), 1)


def self_play(config: Config, num_devices: int) -> Variant:
    """Self-play as one program: T moves of B games, shared among the devices; the unit is a move."""
    algorithm = algorithm_of(config)
    mesh = devices.make_mesh(num_devices)
    bound = {"environment": algorithm.environment, "search": algorithm.search(noise=True), "choose": algorithm.choose}
    rollout = partial(algorithm.rollout, **bound)

    def play(actor, params, key):
        return rollout(params, actor, jax.random.fold_in(key, jax.lax.axis_index(AXIS)))

    program = jax.jit(shard_map(play, mesh, (GAMES, EVERYWHERE, EVERYWHERE), (GAMES, MOVES)), donate_argnums=0)
    actor = jax.device_put(_games(config, algorithm), NamedSharding(mesh, GAMES))
    others = workloads.noisy_params(algorithm.model), jax.random.key(3)
    run = going_on(program, actor, *jax.device_put(others, NamedSharding(mesh, EVERYWHERE)))
    return Variant(run, config.self_play.num_envs * config.self_play.rollout_length)


def host_driven_self_play(config: Config) -> Variant:
    """The same moves driven from Python: one compiled search and step a move, everything brought to the host."""
    algorithm = algorithm_of(config)
    search_fn = workloads.search_of(config, algorithm)
    play = jax.jit(partial(self_plays.rollout, environment=algorithm.environment, search=search_fn, length=1))
    params, actor, key = workloads.noisy_params(algorithm.model), _games(config, algorithm), jax.random.key(3)

    def run():
        nonlocal actor
        moves = []
        for move in range(config.self_play.rollout_length):
            actor, transition = play(params, actor, jax.random.fold_in(key, move))
            moves.append(jax.device_get(transition))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *moves)

    return Variant(run, config.self_play.num_envs * config.self_play.rollout_length)


def _games(config: Config, algorithm: Algorithm) -> ActorState:
    num_envs = config.self_play.num_envs
    return workloads.random_play(algorithm.environment, jax.random.key(1), num_envs=num_envs, length=3)[0]


def filled_state(config: Config, algorithm: Algorithm, mesh: jax.sharding.Mesh) -> TrainState:
    """A run's state, as the devices hold it, with a buffer full of random play and noisy parameters."""
    num_envs, length = config.self_play.num_envs, config.replay.replay_length
    actor, moves = workloads.random_play(algorithm.environment, jax.random.key(4), num_envs=num_envs, length=length)
    learner_state = algorithm.init_learner(algorithm.model, algorithm.optimiser, jax.random.key(0))
    learner_state = learner_state._replace(params=workloads.noisy_params(algorithm.model))
    buffer = ReplayState(replay.pack(moves), jnp.int32(0), jnp.int32(length))
    state = TrainState(actor, learner_state, buffer, jnp.int32(0), jax.random.key(5))
    shardings = jax.tree.map(lambda x: x.sharding, make_init(algorithm, config.seed, mesh).eval_shape())
    return jax.device_put(state, shardings)


def learning(config: Config, num_devices: int) -> Variant:
    """Gradient steps on windows of the buffer, the batch shared among the devices; the unit is an update."""
    algorithm = algorithm_of(config)
    mesh = devices.make_mesh(num_devices)

    def learn(learner_state, buffer, key):
        key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))
        learned = training.learn_steps(learner_state, buffer, jnp.float32(0.0), key, algorithm=algorithm)
        learner_state, _, metrics = learned
        return learner_state, metrics

    specs = state_specs()
    in_specs, out_specs = (specs.learner, specs.replay, EVERYWHERE), (specs.learner, EVERYWHERE)
    full = filled_state(config, algorithm, mesh)
    inputs = full.learner, full.replay, full.seed_key
    program = jax.jit(shard_map(learn, mesh, in_specs, out_specs), donate_argnums=0)
    return Variant(going_on(program, *inputs), config.optimiser.updates_per_iteration)


def iteration(config: Config, num_devices: int) -> Variant:
    """The run's own program, `program.make_chunk`, on a full buffer; the unit is a frame."""
    algorithm = algorithm_of(config)
    mesh = devices.make_mesh(num_devices)
    chunk, progress = make_chunk(algorithm, mesh), np.zeros(config.iterations_per_chunk, np.float32)
    run = going_on(chunk, filled_state(config, algorithm, mesh), progress)
    frames = config.self_play.num_envs * config.self_play.rollout_length
    return Variant(run, frames * config.iterations_per_chunk)
