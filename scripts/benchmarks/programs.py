"""What is measured: the cases' games and networks, our programs of them, and the baseline's, compiled and ready to run.

Networks are untrained but not as initialised: heads start at zero, under which every search grows the same dull tree,
so all parameters get noise. Positions come from random play, so that games stand at different depths.

The baseline is examples/nano_muzero.py with the networks of a case: pgx, mctx, Flax and Optax put together as their
examples do, on one device, the networks ours written plainly (`plain`). Its functions are compiled one by one and
called from Python, where `nano_muzero.iterate` compiles them into one: in its loop XLA's gradients of convolutions are
14 to 30 times slower. Rules are the library's, where nothing is to be gained or lost.
"""

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import NamedSharding, PartitionSpec

from examples import nano_muzero
from examples.nano_muzero import Frame, Nano, Settings
from muzero_jax import algorithm as algorithms
from muzero_jax.algorithm import Algorithm
from muzero_jax.learning import replay
from muzero_jax.learning import self_play as self_plays
from muzero_jax.ops import devices, micro_batches
from muzero_jax.ops.devices import AXIS, shard_map
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.run.program import make_chunk, make_init
from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import NetworkConfig, OptimiserConfig, ReplayConfig, SearchConfig, SelfPlayConfig
from muzero_jax.storage.config_groups import TargetConfig as Targets
from muzero_jax.types import ActorState, Environment, Model, Params, ReplayState, SearchOutput, SearchRoots, Transition
from scripts.benchmarks import plain
from scripts.benchmarks.timing import Variant, going_on

# --- cases; docs/benchmark.md describes W1, W2 and W3 under the same names --------------------------------------------

# float32 on every device, because that is what the programs compute in that ours is measured against.
MLP = NetworkConfig(kind="mlp", width=64, num_bins=3, compute_dtype="float32")
# Two residual blocks of dynamics and two of prediction: a simulation is a tower of 4 blocks with 64 channels.
TOWER = NetworkConfig(kind="tower", width=64, num_blocks=2, num_bins=3, compute_dtype="float32")


def playing(
    env: str, network: NetworkConfig, num_envs: int, num_simulations: int, *, rollout_length: int = 1, **fields: Any
) -> Config:
    """A config whose work is all in play: no exploration, Gumbel search with 16 considered actions."""
    search = SearchConfig(num_simulations=num_simulations, max_num_considered_actions=16, value_scale=0.4)
    games = SelfPlayConfig(num_envs=num_envs, rollout_length=rollout_length, exploration=0.0)
    return Config(env=env, network=network, search=search, self_play=games, **fields)


def learning(config: Config, batch_size: int, updates: int, *, unroll_steps: int = 4, chunk: int = 1) -> Config:
    """`config` with gradient steps from a buffer of 64 frames a game, which learns at once; windows bootstrap after 5.

    Ours makes a call's updates together, as in a run, and samples their windows at once: each call's temporaries are
    fresh memory, whose 44,000 page faults cost a tenth of an update's time. The baseline makes one a call.
    """
    return replace(
        config,
        iterations_per_chunk=chunk,
        targets=Targets(unroll_steps=unroll_steps, td_steps=5),
        replay=ReplayConfig(replay_length=64, min_frames=1, symmetries=False),
        optimiser=OptimiserConfig(batch_size=batch_size, updates_per_iteration=updates, warmup_updates=1),
    )


W1 = playing("connect_four", TOWER, 128, 50, rollout_length=4)
W2 = playing("tic_tac_toe", MLP, 512, 25, rollout_length=8)  # of 256 to 2,048 games the best number for either program
W3 = learning(playing("connect_four", TOWER, 64, 50, rollout_length=4), 256, 4, unroll_steps=5)
SMALL_W3 = learning(  # a quarter of the batch, half of the network and of the unroll: compiled in a third of the time
    playing("connect_four", replace(TOWER, num_blocks=1), 64, 50, rollout_length=4), 64, 4, unroll_steps=2
)
WHOLE = learning(playing("tic_tac_toe", MLP, 256, 25, rollout_length=8), 256, 4, chunk=4)
WHOLE_HEX = learning(playing("hex", TOWER, 64, 16, rollout_length=2, board_size=9), 64, 2, chunk=4)


def searching(config: Config, engine: str = "own", policy: str = "gumbel") -> Config:
    """`config` with its tree search by `engine` and `policy`."""
    return replace(config, search=replace(config.search, engine=engine, policy=policy))


def noisy_params(model: Model) -> Params:
    """Parameters as of no particular training: fresh ones plus normal noise of deviation 0.1 on every leaf."""
    generator, fresh = np.random.default_rng(0), jax.jit(model.init)(jax.random.key(0))
    return jax.tree.map(lambda leaf: leaf + 0.1 * generator.standard_normal(leaf.shape, leaf.dtype), fresh)


def random_play(environment: Environment, num_envs: int, length: int) -> tuple[ActorState, Transition]:
    """Games after `length` random moves each, and the moves: leaves [length, num_envs, ...]."""

    def search(params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        weights = roots.legal_action_mask.astype(jnp.float32)
        policy = weights / jnp.sum(weights, axis=-1, keepdims=True)
        return SearchOutput(uniform_legal_action(key, roots.legal_action_mask), policy, jnp.zeros(weights.shape[0]))

    actor = self_plays.init(environment, jax.random.key(1), num_envs=num_envs)
    play = partial(self_plays.rollout, environment=environment, search=search, length=length)
    return jax.jit(play)(None, actor, jax.random.key(4))


# --- ours -------------------------------------------------------------------------------------------------------------

EVERYWHERE, GAMES = PartitionSpec(), PartitionSpec(AXIS)


def positions(config: Config, num_moves: int) -> SearchRoots:
    """Positions of games some random moves old."""
    environment = algorithms.make(config).environment
    return environment.roots(random_play(environment, config.self_play.num_envs, num_moves)[0].env_state)


def search(config: Config, asked: SearchRoots) -> Variant:
    """One search of every position, as runs do it: without returning trees, which would cost time."""
    algorithm = algorithms.make(config)
    search_fn = algorithm.search(noise=True)

    def without_tree(params, key, asked):
        return search_fn(params, key, asked)._replace(tree=None)

    return Variant(partial(jax.jit(without_tree), noisy_params(algorithm.model), jax.random.key(2), asked))


def plain_search(config: Config, asked: SearchRoots) -> Variant:
    """A search of the first of the positions by a tree of Python objects."""
    algorithm = algorithms.make(config)
    found = plain.PlainSearch(config, algorithm, noisy_params(algorithm.model))
    return Variant(partial(found, asked.observation[0], np.asarray(asked.legal_action_mask[0])))


def bare_network(config: Config, asked: SearchRoots) -> Variant:
    """A search's network calls and nothing else, as if trees were free: a root, then a chain of moves from it.

    The moves are fixed beforehand, so choosing them takes no time. Choosing by the argmax of an embedding took as long
    as the network's own arithmetic, and made trees look free that were not.
    """
    algorithm = algorithms.make(config)
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

    return Variant(partial(evaluate, noisy_params(algorithm.model), asked.observation))


def self_play(config: Config, num_devices: int) -> Variant:
    """Self-play as one program: T moves of B games, shared among the devices; the unit is a move."""
    algorithm, mesh = algorithms.make(config), devices.make_mesh(num_devices)
    bound = {"environment": algorithm.environment, "search": algorithm.search(noise=True), "choose": algorithm.choose}

    def play(actor, params, key):
        return algorithm.rollout(params, actor, jax.random.fold_in(key, jax.lax.axis_index(AXIS)), **bound)

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
    """The same moves driven from Python: one compiled search and step a move, everything brought to the host."""
    algorithm = algorithms.make(config)
    bound = {"environment": algorithm.environment, "search": algorithm.search(noise=True), "length": 1}
    play = jax.jit(partial(self_plays.rollout, **bound))
    params, key = noisy_params(algorithm.model), jax.random.key(3)
    actor, _ = random_play(algorithm.environment, config.self_play.num_envs, 3)

    def run():
        nonlocal actor
        moves = []
        for move in range(config.self_play.rollout_length):
            actor, transition = play(params, actor, jax.random.fold_in(key, move))
            moves.append(jax.device_get(transition))
        return jax.tree.map(lambda *leaves: np.concatenate(leaves), *moves)

    return Variant(run, frames(config))


def plain_self_play(config: Config) -> Variant:
    """Moves of one game, searched by a tree of Python objects and kept in a list; what the ablation starts from."""
    algorithm, generator = algorithms.make(config), np.random.default_rng(0)
    find = plain.PlainSearch(config, algorithm, noisy_params(algorithm.model))
    step = jax.jit(self_plays.with_reset(algorithm.environment))
    state, stored = jax.jit(algorithm.environment.init)(jax.random.key(0)), []

    def move(state):
        seen = np.asarray(state.observation, np.float32), np.asarray(state.legal_action_mask)
        root = find(*seen)
        policy = root.visit_counts() / (root.visits - 1)
        action = int(generator.choice(len(policy), p=policy))
        state, reward, discount, *_ = step(state, np.int32(action), jax.random.key(len(stored)))
        stored.append((*seen, action, float(reward), float(discount), policy, root.value))
        return state, action

    return Variant(going_on(move, state), 1)


def chunk(config: Config, num_devices: int, *, plays: bool = True) -> Variant:
    """The run's own program on a buffer full of random play; the unit is a frame, or an update if it only learns."""
    algorithm, mesh = algorithms.make(config), devices.make_mesh(num_devices)
    shapes, length = make_init(algorithm, config.seed, mesh).eval_shape(), config.replay.replay_length
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
    run = going_on(make_chunk(algorithm, mesh, plays=plays), placed, progress)
    return Variant(run, work * config.iterations_per_chunk)


# --- the baseline -----------------------------------------------------------------------------------------------------


def settings_of(config: Config) -> Settings:
    """A config's settings, as far as the program has them; its names are the config's."""
    groups = config.self_play, config.replay, config.search, config.targets, config.optimiser, config.network
    return Settings(
        **{name: getattr(group, name) for group in groups for name in Settings._fields if hasattr(group, name)}
    )


def nano_of(config: Config, algorithm: Algorithm, model: Model) -> Nano:
    """A config's game and network, in the form that nano_muzero.py takes."""
    environment = algorithm.environment

    def root(params, observation):
        output = model.initial_inference(params, observation)
        return output.embedding, output.value_logits, output.policy_logits

    def step(params, embedding, action):
        output = model.recurrent_inference(params, embedding, action)
        return output.embedding, output.reward_logits, output.value_logits, output.policy_logits

    def move(state, action):
        return environment.move(state, action).state

    game = SimpleNamespace(init=environment.init, step=move, num_actions=environment.num_actions)
    return Nano(game, model.init, root, step, settings_of(config))


def puct(config: Config, algorithm: Algorithm) -> Any:
    """mctx's other search, in the form that `nano_muzero.self_play` calls."""
    config = searching(config, "mctx", "puct")
    find = algorithms.make(config, algorithm.environment, algorithm.model).search(noise=True)

    def search(params, key, games, nano, *, gumbel_scale):
        found = find(params, key, SearchRoots(games.observation, games.legal_action_mask, None))
        return found.action, found.policy, found.value

    return search


class Baseline:
    """A config's functions of nano_muzero.py, compiled when they are first called, and what they begin with."""

    def __init__(self, config: Config):
        algorithm = algorithms.make(config)
        algorithm = algorithm._replace(model=plain.model(config, algorithm))
        self.nano = nano = nano_of(config, algorithm, algorithm.model)
        own = (
            partial(puct, config=config, algorithm=algorithm) if config.search.policy == "puct" else nano_muzero.search
        )
        self.play = jax.jit(partial(nano_muzero.self_play, nano=nano, search=own))
        self.update = jax.jit(partial(nano_muzero.update, nano=nano))
        self.remember = jax.jit(nano_muzero.remember, donate_argnums=0)
        self.draw = jax.jit(partial(nano_muzero.draw, settings=nano.settings))
        actor, _ = random_play(algorithm.environment, nano.settings.num_envs, 3)
        params, self.games, self.key = noisy_params(algorithm.model), actor.env_state, jax.random.key(3)
        self.learner = params, nano_muzero.make_optimiser(nano.settings).init(params)
        self.environment, self.frames = algorithm.environment, frames(config)

    def replay(self) -> Frame:
        """A replay buffer full of random play."""
        _, moves = random_play(self.environment, self.nano.settings.num_envs, self.nano.settings.replay_length)
        names = [{"policy": "search_policy", "value": "search_value"}.get(name, name) for name in Frame._fields]
        return Frame(*(getattr(moves, name) for name in names))

    def self_play(self) -> Variant:
        """T moves of B games; the unit is a move."""
        run = going_on(lambda games: self.play(self.learner[0], games, self.key), self.games)
        return Variant(run, self.frames)

    def learning(self) -> Variant:
        """One gradient step on a batch that is there already; the unit is an update."""
        window = self.draw(self.replay(), self.key)

        def update(learner):
            learner, _ = self.update(learner, window, self.key)
            return learner, learner

        return Variant(going_on(update, self.learner), 1)

    def iteration(self) -> Variant:
        """Self-play into the replay buffer, then batches from there, a gradient step each; the unit is a frame."""

        def iterate(state):
            games, learner, buffer, key = state
            key, play_key, *update_keys = jax.random.split(key, 2 + self.nano.settings.updates_per_iteration)
            games, played = self.play(learner[0], games, play_key)
            buffer = self.remember(buffer, played)
            for update_key in update_keys:
                learner, _ = self.update(learner, self.draw(buffer, update_key), update_key)
            return (games, learner, buffer, key), learner

        return Variant(going_on(iterate, (self.games, self.learner, self.replay(), self.key)), self.frames)
