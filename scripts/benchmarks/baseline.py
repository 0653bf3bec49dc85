"""The baseline that ours is measured against: examples/nano_muzero.py, with the networks of a config.

pgx, mctx, Flax and Optax put together as their examples do, on one device, with the replay buffer in its memory. The
networks are ours written plainly, with XLA's own convolutions. Its functions are compiled one by one and called from
Python, where `nano_muzero.iterate` compiles them into one: in its loop XLA's gradients of convolutions are 14 to 30
times slower. Rules are the library's, where nothing is to be gained or lost.
"""

from functools import partial
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from examples import nano_muzero
from examples.nano_muzero import Frame, Nano, Settings
from muzero_jax.algorithm import Algorithm
from muzero_jax.storage.config import Config
from muzero_jax.types import Model, NetworkOutput, Params, SearchRoots
from scripts.benchmarks import plain_network, workloads
from scripts.measuring.timing import Variant, going_on


def plain_model(config: Config, algorithm: Algorithm) -> Model:
    """Our model's network and parameters, computed by `plain_network`, the whole batch at once."""
    num_actions, is_mlp = algorithm.environment.num_actions, config.network.kind == "mlp"
    board = algorithm.environment.board

    def output(embedding, reward_logits, logits):
        policy_logits, value_logits = jnp.split(logits, [num_actions], axis=-1)
        return NetworkOutput(embedding, reward_logits, value_logits, policy_logits)

    def initial_inference(params, observation):
        x = observation.astype(jnp.float32)
        logits, embedding = plain_network.root(jnp, params, x.reshape(len(x), -1) if is_mlp else x)
        return output(embedding, jnp.zeros((len(x), config.network.num_bins)), logits)

    def recurrent_inference(params, embedding, action):
        if not is_mlp:
            assert board is not None
            height, width = board.shape
            planes = jax.nn.one_hot(board.action_location[action], height * width)
            action = action, planes.reshape(-1, height, width, 1)
        reward_logits, logits, embedding = plain_network.step(jnp, params, embedding, action)
        return output(embedding, reward_logits, logits)

    return algorithm.model._replace(
        initial_inference=initial_inference, recurrent_inference=recurrent_inference, layer_bytes=None
    )


def settings_of(config: Config) -> Settings:
    """A config's settings, as far as the program has them; its names are the config's."""
    groups = config.self_play, config.replay, config.search, config.targets, config.optimiser, config.network
    return Settings(
        **{name: getattr(group, name) for group in groups for name in Settings._fields if hasattr(group, name)}
    )


def nano_of(config: Config, algorithm: Algorithm, model: Model) -> Nano:
    """A config's game and network, as nano_muzero.py wants them."""
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


class Program:
    """A config's functions of nano_muzero.py, compiled when they are first called, and its games."""

    def __init__(self, config: Config):
        algorithm = workloads.algorithm_of(config)
        self.model = plain_model(config, algorithm)
        self.nano = nano_of(config, algorithm, self.model)
        search = nano_muzero.search if config.search.policy == "gumbel" else self._puct(config, algorithm)
        self.play = jax.jit(partial(nano_muzero.self_play, nano=self.nano, search=search))
        self.update = jax.jit(partial(nano_muzero.update, nano=self.nano))
        self.remember = jax.jit(nano_muzero.remember, donate_argnums=0)
        self.draw = jax.jit(partial(nano_muzero.draw, settings=self.nano.settings))
        actor, _ = workloads.random_play(
            algorithm.environment, jax.random.key(1), num_envs=config.self_play.num_envs, length=3
        )
        self.games, self._environment = actor.env_state, algorithm.environment

    def _puct(self, config: Config, algorithm: Algorithm):
        """mctx's other search, in the form that `nano_muzero.self_play` calls."""
        algorithm = algorithm._replace(model=self.model)
        puct = workloads.search_of(workloads.with_engine(config, "mctx", "puct"), algorithm)

        def search(params, key, games, nano, *, gumbel_scale):
            found = puct(params, key, SearchRoots(games.observation, games.legal_action_mask, None))
            return found.action, found.policy, found.value

        return search

    def init(self) -> tuple[Params, Any]:
        """Parameters with noise, as ours, but read-outs as Flax draws them, where ours start at zero; the optimiser's.

        Under PUCT the trees are shallower with these: an advantage that reports have always given this program.
        """
        params, draw = workloads.noisy_params(self.model), jax.nn.initializers.lecun_normal()
        for number, name in enumerate(("prediction_heads", "reward_head")):
            kernel = params[name]["Dense_0"]["kernel"]
            params[name]["Dense_0"]["kernel"] = kernel + draw(jax.random.key(number), kernel.shape)
        return params, nano_muzero.make_optimiser(self.nano.settings).init(params)

    def replay(self) -> Frame:
        """A replay buffer full of random play."""
        settings = self.nano.settings
        sizes = {"num_envs": settings.num_envs, "length": settings.replay_length}
        _, moves = workloads.random_play(self._environment, jax.random.key(4), **sizes)
        names = [{"policy": "search_policy", "value": "search_value"}.get(name, name) for name in Frame._fields]
        return Frame(*(getattr(moves, name) for name in names))


def self_play(config: Config) -> Variant:
    """T moves of B games; the unit is a move."""
    program = Program(config)
    (params, _), key = program.init(), jax.random.key(3)
    run = going_on(lambda games: program.play(params, games, key), program.games)
    return Variant(run, config.self_play.num_envs * config.self_play.rollout_length)


def learning(config: Config) -> Variant:
    """One gradient step on a batch that is there already; the unit is an update."""
    program, key = Program(config), jax.random.key(3)
    window = program.draw(program.replay(), key)

    def update(learner):
        learner, _ = program.update(learner, window, key)
        return learner, learner

    return Variant(going_on(update, program.init()), 1)


def iteration(config: Config) -> Variant:
    """Self-play into the replay buffer, then batches from there, a gradient step each; the unit is a frame."""
    program = Program(config)

    def iterate(state):
        games, learner, replay, key = state
        key, play_key, *update_keys = jax.random.split(key, 2 + config.optimiser.updates_per_iteration)
        games, frames = program.play(learner[0], games, play_key)
        replay = program.remember(replay, frames)
        for update_key in update_keys:
            learner, _ = program.update(learner, program.draw(replay, update_key), update_key)
        return (games, learner, replay, key), learner

    run = going_on(iterate, (program.games, program.init(), program.replay(), jax.random.key(3)))
    return Variant(run, config.self_play.num_envs * config.self_play.rollout_length)
