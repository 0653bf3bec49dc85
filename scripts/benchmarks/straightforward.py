"""The straightforward program that ours is measured against: pgx, mctx and Flax put together as their examples do.

Networks of the same shape with XLA's own convolutions, mctx's search, self-play as one `scan` on one device, a replay
in host memory, one compiled gradient step with the unroll written out (in a loop XLA's convolution gradients are slower
still). It is meant to be a good program of its kind; rules and value targets are the library's, where nothing is to be
gained or lost.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
import optax

from muzero_jax.games.environment import make_environment
from muzero_jax.learning import targets
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment, Transition
from scripts.benchmarks import workloads
from scripts.benchmarks.measuring import Variant
from scripts.benchmarks.plain_network import Network, scalar


class Program:
    """A config's straightforward functions."""

    def __init__(self, config: Config):
        self.config = config
        self.environment: Environment = make_environment(config.env, board_size=config.board_size)
        locations = tuple(int(cell) for cell in self.environment.board.action_location)
        self.network = Network(config.network, self.environment.num_actions, self.environment.board.shape, locations)
        self.optimiser = optax.chain(optax.clip_by_global_norm(5.0), optax.adamw(1e-3, weight_decay=1e-4))
        self.play = jax.jit(self._play)
        self.update = jax.jit(self._update)

    def init(self) -> Any:
        """Parameters, with noise as ours have it."""
        return jax.jit(self._init)(jax.random.key(0))

    def _init(self, key):
        init_key, noise_key = jax.random.split(key)
        observation = jnp.zeros((1, *self.environment.observation_shape))
        params = self.network.init(init_key, observation, jnp.zeros(1, jnp.int32))
        return workloads.with_noise(params, noise_key)

    def games(self) -> Any:
        num_envs = self.config.self_play.num_envs
        actor, _ = workloads.random_play(self.environment, jax.random.key(1), num_envs=num_envs, length=3)
        return actor.env_state

    def root(self, params, observation) -> Any:
        """Policy logits, value logits and embedding."""
        return self.network.apply(params, observation, method="root")

    def step(self, params, embedding, action) -> Any:
        """Reward logits, policy logits, value logits and embedding."""
        return self.network.apply(params, embedding, action, method="step")

    def search(self, params, key, observation, legal_action_mask):
        """mctx's output for a batch of positions."""
        s = self.config.search

        def recurrent(params, _, action, embedding):
            reward, policy, value, embedding = self.step(params, embedding, action)
            output = mctx.RecurrentFnOutput(
                reward=scalar(reward),
                discount=jnp.full(action.shape, self.environment.discount),
                prior_logits=policy,
                value=scalar(value),
            )
            return output, embedding

        policy, value, embedding = self.root(params, observation)
        root = mctx.RootFnOutput(prior_logits=policy, value=scalar(value), embedding=embedding)
        arguments = (params, key, root, recurrent, s.num_simulations)
        if s.policy == "puct":
            return mctx.muzero_policy(*arguments, invalid_actions=~legal_action_mask)
        qtransform = partial(mctx.qtransform_completed_by_mix_value, value_scale=s.value_scale, rescale_values=False)
        return mctx.gumbel_muzero_policy(*arguments, invalid_actions=~legal_action_mask, qtransform=qtransform)

    def _play(self, params, state, key):
        """T moves of every game in a scan."""

        def move(state, key):
            search_key, reset_key = jax.random.split(key)
            observation = jax.vmap(self.environment.observe)(state)
            found = self.search(params, search_key, observation, state.legal_action_mask)
            reset_keys = jax.random.split(reset_key, found.action.shape[0])
            next_state, reward, discount = jax.vmap(self.environment.step)(state, found.action, reset_keys)
            value = found.search_tree.summary().value
            never = jnp.zeros_like(reward, bool)
            transition = (observation, state.legal_action_mask, found.action, reward, discount)
            return next_state, Transition(*transition, found.action_weights, value, never)

        return jax.lax.scan(move, state, jax.random.split(key, self.config.self_play.rollout_length))

    def _update(self, params, optimiser_state, window):
        gradients = jax.grad(self.loss)(params, window)
        updates, optimiser_state = self.optimiser.update(gradients, optimiser_state, params)
        return optax.apply_updates(params, updates), optimiser_state

    def loss(self, params, window):
        """MuZero's, of windows [N, L, ...], the unroll written out."""
        t = self.config.targets
        wanted = targets.make(
            window, unroll_steps=t.unroll_steps, td_steps=t.td_steps, td_lambda=1.0, stop_at_exploration=True
        )
        policy, value, embedding = self.root(params, window.observation[:, 0])
        total = self.distance(policy, value, wanted, 0)
        for k in range(t.unroll_steps):
            embedding = 0.5 * embedding + jax.lax.stop_gradient(0.5 * embedding)
            reward, policy, value, embedding = self.step(params, embedding, window.action[:, k])
            step = self.distance(policy, value, wanted, k + 1) + categorical_loss(reward, wanted.reward[:, k])
            total += step / t.unroll_steps
        return total.mean()

    def distance(self, policy, value, wanted, k):
        policy_loss = wanted.policy_mask[:, k] * optax.softmax_cross_entropy(policy, wanted.policy[:, k])
        return policy_loss + categorical_loss(value, wanted.value[:, k])


def categorical_loss(logits, target):
    """Cross-entropy with a scalar spread over its two neighbouring bins."""
    bins = jnp.linspace(-1.0, 1.0, logits.shape[-1])
    weights = jnp.maximum(0.0, 1.0 - jnp.abs(target[:, None] - bins) / (bins[1] - bins[0]))
    return optax.softmax_cross_entropy(logits, weights)


def self_play(config: Config) -> Variant:
    """T moves of B games; the unit is a move."""
    program = Program(config)
    params, state = program.init(), {"games": program.games()}

    def run():
        state["games"], moves = program.play(params, state["games"], jax.random.key(3))
        return moves

    return Variant(run, float(config.self_play.num_envs * config.self_play.rollout_length))


def learning(config: Config) -> Variant:
    """One gradient step on a batch that is on the device already; the unit is an update."""
    program = Program(config)
    params = program.init()
    state = {"learner": (params, program.optimiser.init(params))}
    replay = HostReplay(program)
    window = jax.device_put(replay.sample(np.random.default_rng(0)))

    def run():
        state["learner"] = program.update(*state["learner"], window)
        return state["learner"]

    return Variant(run, 1.0)


class HostReplay:
    """The newest C moves of every game as NumPy arrays, filled with random play."""

    def __init__(self, program: Program):
        config = program.config
        self.length, self.window, self.batch = (
            config.replay.replay_length,
            config.window_length,
            config.optimiser.batch_size,
        )
        _, moves = workloads.random_play(
            program.environment, jax.random.key(4), num_envs=config.self_play.num_envs, length=self.length
        )
        self.moves = jax.device_get(moves)

    def add(self, moves):
        together = jax.tree.map(lambda old, new: np.concatenate([old, new])[-self.length :], self.moves, moves)
        self.moves = together

    def sample(self, generator):
        slot = generator.integers(self.length - self.window, size=self.batch)
        game = generator.integers(self.moves.action.shape[1], size=self.batch)
        return jax.tree.map(lambda x: x[slot[:, None] + np.arange(self.window), game[:, None]], self.moves)


def iteration(config: Config) -> Variant:
    """Self-play, the moves to host memory, then batches back from there, a gradient step each; the unit is a frame."""
    program = Program(config)
    params = program.init()
    state: dict[str, Any] = {"learner": (params, program.optimiser.init(params)), "games": program.games()}
    replay, generator = HostReplay(program), np.random.default_rng(0)

    def run():
        state["games"], moves = program.play(state["learner"][0], state["games"], jax.random.key(3))
        replay.add(jax.device_get(moves))
        for _ in range(config.optimiser.updates_per_iteration):
            state["learner"] = program.update(*state["learner"], replay.sample(generator))
        return state["learner"]

    return Variant(run, float(config.self_play.num_envs * config.self_play.rollout_length))
