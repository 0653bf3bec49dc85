"""The measured programs: games and networks of the cases, and our programs and the baseline's, compiled.

Networks are untrained, with noise on all parameters, because heads start at zero, with which every search grows the
same tree. Positions come from random play, so that games have different lengths.

The baseline is examples/nano_muzero.py with a case's network: pgx, mctx, Flax and Optax, combined as in their examples,
on one device, with XLA's own convolutions. Its functions are compiled one by one and called from Python, although
`nano_muzero.iterate` compiles them into one, because in its loop XLA's gradients of convolutions are 14 to 30 times
slower. The rules are muzero_jax's, which makes no difference.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec

from examples import nano_muzero
from examples.nano_muzero import Frame, Nano, Settings
from muzero_jax.algorithm import Algorithm, make_algorithm
from muzero_jax.config.config import Config
from muzero_jax.config.groups import (
    NetworkConfig,
    OptimiserConfig,
    ReplayConfig,
    SearchConfig,
    SelfPlayConfig,
    TargetConfig,
)
from muzero_jax.learning import replay
from muzero_jax.learning.self_play import begin_all, init, rollout, with_reset
from muzero_jax.ops import micro_batches
from muzero_jax.ops.devices import made_for
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.ops.mesh import AXIS, make_mesh, shard_map
from muzero_jax.run import cuda_graphs
from muzero_jax.run.program import make_chunk, make_init
from muzero_jax.types import ActorState, Environment, Model, Params, ReplayState, SearchOutput, SearchRoots, Transition
from scripts.benchmarks.python_tree import PythonTree
from scripts.benchmarks.timing import Variant, going_on

# --- cases; docs/benchmark.md describes W1, W2 and W3 under the same names --------------------------------------------

# float32 on every device, because the programs with which ours is compared use it.
MLP = NetworkConfig(kind="mlp", width=64, num_bins=3, compute_dtype="float32")
# Two residual blocks of dynamics and two of prediction: a simulation is a tower of 4 blocks with 64 channels.
TOWER = NetworkConfig(kind="tower", width=64, num_blocks=2, num_bins=3, compute_dtype="float32")


def playing(
    env: str, network: NetworkConfig, num_envs: int, num_simulations: int, *, rollout_length: int = 1, **fields: Any
) -> Config:
    """A config for self-play without exploration, by Gumbel search with 16 considered actions."""
    search = SearchConfig(num_simulations=num_simulations, max_num_considered_actions=16, value_scale=0.4)
    games = SelfPlayConfig(num_envs=num_envs, rollout_length=rollout_length, exploration=0.0)
    return Config(env=env, network=network, search=search, self_play=games, **fields)


def learning(config: Config, batch_size: int, updates: int, *, unroll_steps: int = 4, chunk: int = 1) -> Config:
    """`config` with gradient steps from the start, a buffer of 64 frames per game, and windows that bootstrap after 5.

    As in a run, a call of ours makes all updates and samples their windows at once, because its temporaries are fresh
    memory, whose 44,000 page faults cost a tenth of an update's time. The baseline makes one update a call.
    """
    return replace(
        config,
        iterations_per_chunk=chunk,
        targets=TargetConfig(unroll_steps=unroll_steps, td_steps=5),
        replay=ReplayConfig(replay_length=64, min_frames=1, symmetries=False),
        optimiser=OptimiserConfig(batch_size=batch_size, updates_per_iteration=updates, warmup_updates=1),
    )


W1 = playing("connect_four", TOWER, 128, 50, rollout_length=4)
W2 = playing("tic_tac_toe", MLP, 512, 25, rollout_length=8)  # 512 games are best for both, of 256 to 2,048
W3 = learning(playing("connect_four", TOWER, 64, 50, rollout_length=4), 256, 4, unroll_steps=5)
SMALL_W3 = learning(  # a quarter of the batch, half of the network and the unroll: compiles in a third of the time
    playing("connect_four", replace(TOWER, num_blocks=1), 64, 50, rollout_length=4), 64, 4, unroll_steps=2
)
WHOLE = learning(playing("tic_tac_toe", MLP, 256, 25, rollout_length=8), 256, 4, chunk=4)
WHOLE_HEX = learning(playing("hex", TOWER, 64, 16, rollout_length=2, board_size=9), 64, 2, chunk=4)


def searching(config: Config, engine: str = "own", policy: str = "gumbel") -> Config:
    """`config` with its tree search by `engine` and `policy`."""
    return replace(config, search=replace(config.search, engine=engine, policy=policy))


def noisy_params(model: Model) -> Params:
    """Initial parameters plus normal noise of deviation 0.1 on every leaf."""
    generator = np.random.default_rng(0)
    fresh = jax.jit(model.init)(jax.random.key(0))
    return jax.tree.map(lambda leaf: leaf + 0.1 * generator.standard_normal(leaf.shape, leaf.dtype), fresh)


def random_play(environment: Environment, num_envs: int, length: int) -> tuple[ActorState, Transition]:
    """Games after `length` random moves each, and the moves: leaves [length, num_envs, ...]."""

    def search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        weights = roots.legal_action_mask.astype(jnp.float32)
        policy = weights / jnp.sum(weights, axis=-1, keepdims=True)
        return SearchOutput(uniform_legal_action(key, roots.legal_action_mask), policy, jnp.zeros(weights.shape[0]))

    actor = init(environment, jax.random.key(1), num_envs=num_envs)
    play = partial(rollout, environment=environment, search=search, length=length)
    return jax.jit(play)(None, actor, jax.random.key(4))


# --- ours -------------------------------------------------------------------------------------------------------------

EVERYWHERE = PartitionSpec()
GAMES = PartitionSpec(AXIS)


def positions(config: Config, num_moves: int) -> SearchRoots:
    """Positions after `num_moves` random moves."""
    environment = make_algorithm(config).environment
    return environment.roots(random_play(environment, config.self_play.num_envs, num_moves)[0].env_state)


def search(config: Config, asked: SearchRoots) -> Variant:
    """One search of every position, as in runs, without returning trees, which takes time."""
    algorithm = make_algorithm(config)
    search_fn = algorithm.search(noise=True)

    def without_tree(params, key, asked):
        return search_fn(params, key, asked)._replace(tree=None)

    return Variant(partial(jax.jit(without_tree), noisy_params(algorithm.model), jax.random.key(2), asked))


def python_search(config: Config, asked: SearchRoots) -> Variant:
    """A search of the first of the positions by a tree of Python objects."""
    algorithm = make_algorithm(config)
    tree = PythonTree(config, algorithm, noisy_params(algorithm.model))
    return Variant(partial(tree, asked.observation[0], np.asarray(asked.legal_action_mask[0])))


def network_calls(config: Config) -> Callable[[Params, Array], tuple[Array, Array]]:
    """Only a search's network calls, as if trees took no time: a root, then a chain of moves from it.

    The moves are fixed beforehand, so that choosing them takes no time. An argmax over an embedding took as long as the
    network itself, and so made trees look free.
    """
    algorithm = make_algorithm(config)
    model = micro_batches.for_inference(algorithm.model)

    def evaluate(params, observation):
        def simulate(embedding, simulation):
            action = (simulation + jnp.arange(embedding.shape[0])) % algorithm.environment.num_actions
            output = model.recurrent_inference(params, embedding, action)
            scalars = model.to_scalar(output.reward_logits) + model.to_scalar(output.value_logits)
            return output.embedding, scalars + output.policy_logits[:, 0]

        root = model.initial_inference(params, observation)
        return jax.lax.scan(simulate, root.embedding, jnp.arange(config.search.num_simulations))

    return evaluate


def bare_network(config: Config, asked: SearchRoots) -> Variant:
    """`network_calls` of a batch of positions."""
    params = noisy_params(make_algorithm(config).model)
    return Variant(partial(jax.jit(network_calls(config)), params, asked.observation))


def self_play(config: Config, num_devices: int) -> Variant:
    """Self-play as one program: T moves of B games, shared among the devices; the unit is a move."""
    algorithm = make_algorithm(config)
    mesh = make_mesh(num_devices)

    def play(actor, params, key):
        return algorithm.play(params, actor, jax.random.fold_in(key, jax.lax.axis_index(AXIS)))

    moves = PartitionSpec(None, AXIS)
    program = jax.jit(shard_map(play, mesh, (GAMES, EVERYWHERE, EVERYWHERE), (GAMES, moves)), donate_argnums=0)
    actor, _ = random_play(algorithm.environment, config.self_play.num_envs, 3)
    others = noisy_params(algorithm.model), jax.random.key(3)
    placed = jax.device_put(others, NamedSharding(mesh, EVERYWHERE))
    return Variant(going_on(program, jax.device_put(actor, NamedSharding(mesh, GAMES)), *placed), frames(config))


def frames(config: Config) -> int:
    """Moves of an iteration."""
    return config.self_play.num_envs * config.self_play.rollout_length


def host_driven_self_play(config: Config) -> Variant:
    """The same moves driven from Python: a call searches and steps all games once and copies the moves to the host."""
    algorithm = make_algorithm(config)
    bound = {"environment": algorithm.environment, "search": algorithm.search(noise=True), "length": 1}
    play = jax.jit(partial(rollout, **bound))
    params = noisy_params(algorithm.model)
    key = jax.random.key(3)
    actor, _ = random_play(algorithm.environment, config.self_play.num_envs, 3)

    def move(actor):
        actor, moves = play(params, actor, key)
        return actor, jax.device_get(moves)

    return Variant(going_on(move, actor), config.self_play.num_envs)


def python_self_play(config: Config) -> Variant:
    """Moves of one game, searched by a tree of Python objects and stored in a list: the ablation's first step."""
    algorithm = make_algorithm(config)
    generator = np.random.default_rng(0)
    find = PythonTree(config, algorithm, noisy_params(algorithm.model))
    environment = algorithm.environment
    play = with_reset(environment, begin_all(environment))
    stored = []

    @jax.jit
    def step(*game):
        moved, _ = play(*jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], game))
        return jax.tree.map(lambda leaf: leaf[0], moved)

    def move(state):
        seen = np.asarray(state.observation, np.float32), np.asarray(state.legal_action_mask)
        root = find(*seen)
        policy = root.visit_counts() / (root.visits - 1)
        action = np.int32(generator.choice(len(policy), p=policy))
        moved = step(state, action, jax.random.key(len(stored)))
        stored.append((*seen, action, float(moved.reward), float(moved.discount), policy, root.value))
        return moved.state, action

    return Variant(going_on(move, jax.jit(algorithm.environment.init)(jax.random.key(0))))


def chunk(config: Config, num_devices: int, *, plays: bool = True, one_graph: bool = True) -> Variant:
    """A run's own program on a buffer full of random play; the unit is a frame, or an update if it only learns.

    On a GPU it is one CUDA graph whenever a run's is, unless `one_graph` is False.
    """
    algorithm = make_algorithm(config)
    mesh = make_mesh(num_devices)
    shapes = make_init(algorithm, config.seed, mesh).eval_shape()
    length = config.replay.replay_length
    actor, moves = random_play(algorithm.environment, config.self_play.num_envs, length)
    learner = algorithm.init_learner(algorithm.model, algorithm.optimiser, jax.random.key(0))
    state = shapes._replace(
        actor=actor,
        learner=learner._replace(params=noisy_params(algorithm.model)),
        replay=ReplayState(replay.pack(moves), jnp.int32(0), jnp.int32(length)),
        iteration=jnp.int32(0),
        seed_key=jax.random.key(5),
    )
    placed = jax.device_put(state, jax.tree.map(lambda x: x.sharding, shapes))
    progress = np.zeros(config.iterations_per_chunk, np.float32)
    work = frames(config) if plays else config.optimiser.updates_per_iteration
    lowered = make_chunk(algorithm, mesh, plays=plays).lower(placed, progress)
    program = cuda_graphs.compile_with(lowered, mesh.devices.flat[0], lambda line: None, wanted=one_graph)
    return Variant(going_on(program, placed, progress), work * config.iterations_per_chunk)


# --- the baseline -----------------------------------------------------------------------------------------------------


def settings_of(config: Config) -> Settings:
    """The config's values for all fields of the baseline's `Settings`, which have the same names."""
    groups = config.self_play, config.replay, config.search, config.targets, config.optimiser, config.network
    return Settings(
        **{name: getattr(group, name) for group in groups for name in Settings._fields if hasattr(group, name)}
    )


def nano_of(config: Config, algorithm: Algorithm, model: Model) -> Nano:
    """A config's game and network in the form of nano_muzero.py."""
    environment = algorithm.environment
    of_root = attrgetter("embedding", "value_logits", "policy_logits")
    of_move = attrgetter("embedding", "reward_logits", "value_logits", "policy_logits")
    game = SimpleNamespace(
        init=environment.init,
        step=lambda state, action: environment.move(state, action).state,
        num_actions=environment.num_actions,
    )
    return Nano(
        game,
        model.init,
        lambda params, observation: of_root(model.initial_inference(params, observation)),
        lambda params, embedding, action: of_move(model.recurrent_inference(params, embedding, action)),
        settings_of(config),
    )


def frames_of(moves: Transition) -> Frame:
    """Our moves as the baseline's frames."""
    names = {"policy": "search_policy", "value": "search_value"}
    return Frame(*(getattr(moves, names.get(name, name)) for name in Frame._fields))


def with_xla_convolutions(model: Model) -> Model:
    """`model` as traced for accelerators: with XLA's own convolutions, and no parts of batches."""
    traced = made_for(SimpleNamespace(platform="gpu"))
    inferences = {name: traced(getattr(model, name)) for name in ("initial_inference", "recurrent_inference")}
    return model._replace(layer_bytes=None, **inferences)


def mctx_puct(config: Config, algorithm: Algorithm) -> Any:
    """mctx's PUCT search in the form that `nano_muzero.self_play` calls."""
    find = make_algorithm(searching(config, "mctx", "puct"), algorithm.environment, algorithm.model).search(noise=True)

    def search(params, key, games, nano, *, gumbel_scale):
        found = find(params, key, SearchRoots(games.observation, games.legal_action_mask, None))
        return found.action, found.policy, found.value

    return search


def baseline(suite: str, config: Config) -> Variant:
    """The baseline's program for a suite: self-play (unit: a move), a gradient step, or an iteration (unit: frames)."""
    algorithm = make_algorithm(config)
    algorithm = algorithm._replace(model=with_xla_convolutions(algorithm.model))
    nano = nano_of(config, algorithm, algorithm.model)
    settings = nano.settings
    key = jax.random.key(3)
    search = mctx_puct(config, algorithm) if config.search.policy == "puct" else nano_muzero.search
    play = jax.jit(partial(nano_muzero.self_play, nano=nano, search=search))
    update = jax.jit(partial(nano_muzero.update, nano=nano))
    draw = jax.jit(partial(nano_muzero.draw, settings=settings))
    remember = jax.jit(nano_muzero.remember, donate_argnums=0)
    params = noisy_params(algorithm.model)
    learner = params, nano_muzero.make_optimiser(settings).init(params)
    actor, moves = random_play(algorithm.environment, settings.num_envs, settings.replay_length)
    buffer = frames_of(moves)
    if suite == "self-play":
        return Variant(going_on(lambda games: play(params, games, key), actor.env_state), frames(config))
    if suite == "learner":  # on a sampled batch
        window = draw(buffer, key)
        return Variant(going_on(lambda learner: 2 * update(learner, window, key)[:1], learner))

    def iterate(state):
        games, learner, buffer, key = state
        key, play_key, *update_keys = jax.random.split(key, 2 + settings.updates_per_iteration)
        games, played = play(learner[0], games, play_key)
        buffer = remember(buffer, played)
        for update_key in update_keys:
            learner, _ = update(learner, draw(buffer, update_key), update_key)
        return (games, learner, buffer, key), learner

    return Variant(going_on(iterate, (actor.env_state, learner, buffer, key)), frames(config))
