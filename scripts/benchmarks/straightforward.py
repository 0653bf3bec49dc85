"""The straightforward program that ours is measured against: pgx, mctx and JAX put together as their examples do.

The same networks, written plainly with XLA's own convolutions; mctx's search; self-play as one `scan` on one device; a
replay in host memory; one compiled gradient step with the unroll written out (in a loop XLA's convolution gradients are
slower still). It is meant to be a good program of its kind; rules, rollout and value targets are the library's, where
nothing is to be gained or lost.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from muzero_jax import building
from muzero_jax.algorithm import World
from muzero_jax.learning import self_play as own_self_play
from muzero_jax.learning import targets
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import Model, NetworkOutput, Params
from scripts.benchmarks import plain_network, workloads
from scripts.measuring.timing import Variant, going_on


def plain_model(config: Config, parts: Parts) -> Model:
    """Our model's network and parameters, computed by `plain_network`, the whole batch at once."""
    num_actions, is_mlp = parts.environment.num_actions, config.network.kind == "mlp"
    board = parts.environment.board

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

    return parts.model._replace(
        initial_inference=initial_inference, recurrent_inference=recurrent_inference, layer_bytes=None
    )


class Program:
    """A config's straightforward functions, compiled when they are first called, and its games."""

    def __init__(self, config: Config):
        self.config = config
        parts = workloads.parts_of(config)
        self.environment, self.model = parts.environment, plain_model(config, parts)
        with_mctx = workloads.with_engine(config, "mctx", config.search.policy)
        search = building.make_search(with_mctx, World(self.environment, self.model), noise=True)
        length = config.self_play.rollout_length
        self.play = jax.jit(partial(own_self_play.rollout, environment=self.environment, search=search, length=length))
        self.optimiser = optax.chain(optax.clip_by_global_norm(5.0), optax.adamw(1e-3, weight_decay=1e-4))
        self.update = jax.jit(self._update)
        games = {"num_envs": config.self_play.num_envs}
        self.games, _ = workloads.random_play(self.environment, jax.random.key(1), length=3, **games)

    def init(self) -> tuple[Params, Any]:
        """Parameters with noise, as ours, but read-outs as Flax draws them, where ours start at zero; the optimiser's.

        Under PUCT the trees are shallower with these: an advantage that reports have always given this program.
        """
        params, draw = workloads.noisy_params(self.model), jax.nn.initializers.lecun_normal()
        for number, name in enumerate(("prediction_heads", "reward_head")):
            kernel = params[name]["Dense_0"]["kernel"]
            params[name]["Dense_0"]["kernel"] = kernel + draw(jax.random.key(number), kernel.shape)
        return params, self.optimiser.init(params)

    def _update(self, params, optimiser_state, window):
        gradients = jax.grad(self.loss)(params, window)
        updates, optimiser_state = self.optimiser.update(gradients, optimiser_state, params)
        return optax.apply_updates(params, updates), optimiser_state

    def loss(self, params, window):
        """MuZero's loss of windows [N, L, ...], the unroll written out."""
        t = self.config.targets
        wanted = targets.make(
            window, unroll_steps=t.unroll_steps, td_steps=t.td_steps, td_lambda=1.0, stop_at_exploration=True
        )
        output = self.model.initial_inference(params, window.observation[:, 0])
        total = self._distance(output, wanted, 0)
        for k in range(t.unroll_steps):
            embedding = 0.5 * output.embedding + jax.lax.stop_gradient(0.5 * output.embedding)
            output = self.model.recurrent_inference(params, embedding, window.action[:, k])
            reward_loss = self.model.scalar_loss(output.reward_logits, wanted.reward[:, k])
            total += (self._distance(output, wanted, k + 1) + reward_loss) / t.unroll_steps
        return total.mean()

    def _distance(self, output, wanted, k):
        policy_loss = optax.softmax_cross_entropy(output.policy_logits, wanted.policy[:, k])
        return wanted.policy_mask[:, k] * policy_loss + self.model.scalar_loss(output.value_logits, wanted.value[:, k])


class HostReplay:
    """The newest C moves of every game as NumPy arrays, filled with random play."""

    def __init__(self, program: Program):
        config = program.config
        self.length, self.window = config.replay.replay_length, config.window_length
        self.batch, games = config.optimiser.batch_size, {"num_envs": config.self_play.num_envs}
        _, moves = workloads.random_play(program.environment, jax.random.key(4), length=self.length, **games)
        self.moves = jax.device_get(moves)

    def add(self, moves):
        self.moves = jax.tree.map(lambda old, new: np.concatenate([old, new])[-self.length :], self.moves, moves)

    def sample(self, generator):
        slot = generator.integers(self.length - self.window, size=self.batch)
        game = generator.integers(self.moves.action.shape[1], size=self.batch)
        return jax.tree.map(lambda x: x[slot[:, None] + np.arange(self.window), game[:, None]], self.moves)


def self_play(config: Config) -> Variant:
    """T moves of B games; the unit is a move."""
    program = Program(config)
    (params, _), key = program.init(), jax.random.key(3)
    run = going_on(lambda actor: program.play(params, actor, key), program.games)
    return Variant(run, config.self_play.num_envs * config.self_play.rollout_length)


def learning(config: Config) -> Variant:
    """One gradient step on a batch that is on the device already; the unit is an update."""
    program = Program(config)
    window = jax.device_put(HostReplay(program).sample(np.random.default_rng(0)))

    def update(learner):
        learner = program.update(*learner, window)
        return learner, learner

    return Variant(going_on(update, program.init()), 1)


def iteration(config: Config) -> Variant:
    """Self-play, the moves to host memory, then batches back from there, a gradient step each; the unit is a frame."""
    program = Program(config)
    replay, generator, key = HostReplay(program), np.random.default_rng(0), jax.random.key(3)

    def iterate(state):
        actor, learner = state
        actor, moves = program.play(learner[0], actor, key)
        replay.add(jax.device_get(moves))
        for _ in range(config.optimiser.updates_per_iteration):
            learner = program.update(*learner, replay.sample(generator))
        return (actor, learner), learner

    run = going_on(iterate, (program.games, program.init()))
    return Variant(run, config.self_play.num_envs * config.self_play.rollout_length)
