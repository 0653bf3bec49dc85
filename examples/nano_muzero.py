"""MuZero in one file, to read at once or to fork: python examples/nano_muzero.py --env tic_tac_toe --minutes 5

pgx plays, mctx searches, Flax and Optax learn, and nothing of muzero_jax is used. One jitted function is an iteration:
it plays T moves of B games, stores them, and makes U gradient steps. Games are for two players who take turns.

Sources: MuZero (Schrittwieser et al. 2020) with Gumbel search (Danihelka et al. 2022). Shapes use the letters below.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import mctx
import optax
import pgx
from pgx.hex import Hex


class Settings(NamedTuple):
    """All hyperparameters."""

    num_envs: int = 256  # B, games at once
    rollout_length: int = 8  # T, moves of each game in an iteration
    replay_length: int = 128  # C, frames kept of each game
    num_simulations: int = 16
    max_num_considered_actions: int = 8
    value_scale: float = 0.1
    unroll_steps: int = 4  # K
    td_steps: int = 16  # n; at least the longest game's length is Monte-Carlo
    batch_size: int = 256  # N
    updates_per_iteration: int = 16  # U
    learning_rate: float = 1e-3
    num_bins: int = 3  # S, of value and reward over [-1, 1]
    exploration: float = 0.1  # share of uniformly random moves in self-play

    @property
    def window_length(self) -> int:
        """L, the frames that K + 1 targets are made of."""
        return self.unroll_steps + self.td_steps + 1


class Network(NamedTuple):
    """Representation, dynamics and prediction, as functions of params; batch-first."""

    init: Callable[[jax.Array], Any]  # key -> params
    root: Callable[..., tuple]  # (params, observation [N, ...]) -> embedding, value logits [N, S], policy logits [N, A]
    step: Callable[
        ..., tuple
    ]  # (params, embedding, action [N]) -> embedding, reward logits, value logits, policy logits


class Frame(NamedTuple):
    """One move; leaves [T, B, ...] from self-play, [C, B, ...] in the replay buffer, [N, L, ...] as windows."""

    observation: jax.Array  # [...], what the player to move sees before the move
    legal_action_mask: jax.Array  # [A] bool
    action: jax.Array  # []
    reward: jax.Array  # [], for the player who moved
    discount: jax.Array  # [], 0 where the move ended the game, else -1: the next value is the opponent's
    policy: jax.Array  # [A], what search made of the prior
    value: jax.Array  # [], what search says of the position
    explored: jax.Array  # [] bool, whether the move was drawn at random


class Targets(NamedTuple):
    """What the K + 1 predictions of a window should be."""

    reward: jax.Array  # [N, K]
    value: jax.Array  # [N, K + 1]
    policy: jax.Array  # [N, K + 1, A]
    alive: jax.Array  # [N, K + 1], 0 past the end of the game


class State(NamedTuple):
    """A whole run."""

    params: Any
    optimiser: Any
    games: Any  # B states of pgx
    replay: Frame  # the newest C frames of each game
    key: jax.Array


def make_env(name: str, size: int | None = None) -> pgx.Env:
    """A game of pgx; Hex of any size."""
    return Hex(size=size or 11) if name == "hex" else pgx.make(name)  # type: ignore


class MLP(nn.Module):
    """Dense layers, with embeddings scaled to [0, 1] (MuZero, appendix G)."""

    num_actions: int
    num_bins: int
    width: int = 128

    def setup(self):
        self.representation, self.dynamics, self.prediction = (
            nn.Sequential([nn.Dense(self.width), nn.relu, nn.Dense(self.width), nn.relu]) for _ in range(3)
        )
        self.reward, self.value = (nn.Dense(self.num_bins, kernel_init=nn.initializers.zeros) for _ in range(2))
        self.policy = nn.Dense(self.num_actions, kernel_init=nn.initializers.zeros)

    def predict(self, embedding):
        x = self.prediction(embedding)
        return self.value(x), self.policy(x)

    def root(self, observation):
        embedding = scale(self.representation(observation.reshape(len(observation), -1).astype(jnp.float32)))
        return embedding, *self.predict(embedding)

    def step(self, embedding, action):
        action = jax.nn.one_hot(action, self.num_actions)
        x = self.dynamics(jnp.concatenate([embedding, action], axis=-1)) + embedding
        embedding = scale(x)
        return embedding, self.reward(x), *self.predict(embedding)

    def __call__(self, observation, action):
        return self.step(self.root(observation)[0], action)


def scale(x: jax.Array) -> jax.Array:
    """Each row's smallest number becomes 0 and its largest 1."""
    low, high = x.min(axis=-1, keepdims=True), x.max(axis=-1, keepdims=True)
    return (x - low) / (high - low + 1e-5)


def make_network(env: pgx.Env, settings: Settings) -> Network:
    """The MLP as functions."""
    mlp = MLP(env.num_actions, settings.num_bins)
    example = jnp.zeros((1, *env.observation_shape)), jnp.zeros(1, jnp.int32)
    return Network(
        init=lambda key: mlp.init(key, *example),
        root=partial(mlp.apply, method="root"),
        step=partial(mlp.apply, method="step"),
    )


def to_scalar(logits: jax.Array) -> jax.Array:
    """The expected value of S bins over [-1, 1]."""
    return jax.nn.softmax(logits) @ jnp.linspace(-1.0, 1.0, logits.shape[-1])


def scalar_loss(logits: jax.Array, target: jax.Array) -> jax.Array:
    """Cross-entropy with the two bins around the target (MuZero, appendix F)."""
    num_bins = logits.shape[-1]
    position = (jnp.clip(target, -1.0, 1.0) + 1.0) / 2.0 * (num_bins - 1)
    two_hot = jax.nn.relu(1.0 - jnp.abs(position[..., None] - jnp.arange(num_bins)))
    return optax.softmax_cross_entropy(logits, two_hot)


def search(params, key, games, *, network: Network, settings: Settings, gumbel_scale: float):
    """The moves [B], the improved policies [B, A] and the values [B] that Gumbel MuZero's search finds."""

    def recurrent(params, key, action, embedding):
        embedding, reward, value, policy = network.step(params, embedding, action)
        said = {"reward": to_scalar(reward), "value": to_scalar(value), "prior_logits": policy}
        return mctx.RecurrentFnOutput(discount=jnp.full(action.shape, -1.0), **said), embedding

    embedding, value, policy = network.root(params, games.observation)
    found = mctx.gumbel_muzero_policy(
        params,
        key,
        mctx.RootFnOutput(prior_logits=policy, value=to_scalar(value), embedding=embedding),
        recurrent,
        settings.num_simulations,
        invalid_actions=~games.legal_action_mask,
        max_num_considered_actions=settings.max_num_considered_actions,
        gumbel_scale=gumbel_scale,
        qtransform=partial(
            mctx.qtransform_completed_by_mix_value, rescale_values=False, value_scale=settings.value_scale
        ),
    )
    return found.action, found.action_weights, found.search_tree.summary().value


def self_play(params, games, key, *, env: pgx.Env, network: Network, settings: Settings):
    """Plays T moves of every game; finished games start afresh. Returns the games and the frames [T, B, ...]."""
    rows = jnp.arange(settings.num_envs)

    def move(games, key):
        search_key, explore_key, choice_key, reset_key = jax.random.split(key, 4)
        action, policy, value = search(params, search_key, games, network=network, settings=settings, gumbel_scale=1.0)
        explored = jax.random.bernoulli(explore_key, settings.exploration, rows.shape)
        legal = games.legal_action_mask
        action = jnp.where(explored, jax.random.categorical(choice_key, jnp.log(legal.astype(float))), action)
        moved = jax.vmap(env.step)(games, action)
        is_over = moved.terminated | moved.truncated
        reward, discount = moved.rewards[rows, games.current_player], jnp.where(is_over, 0.0, -1.0)
        frame = Frame(games.observation, legal, action, reward, discount, policy, value, explored)
        fresh = jax.vmap(env.init)(jax.random.split(reset_key, settings.num_envs))

        def pick(new, old):
            return jnp.where(is_over.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return jax.tree.map(pick, fresh, moved), frame

    return jax.lax.scan(move, games, jax.random.split(key, settings.rollout_length))


def make_targets(window: Frame, settings: Settings) -> Targets:
    """The targets of each window: n-step returns by G_t = r_{t+1} + d_{t+1} G_{t+1}, and 0 past the end of the game.

    A return stops at a random move, where it continues with the value that search gave the position.
    """
    k1 = settings.unroll_steps + 1

    def at(x, offset):
        return x[:, offset : offset + k1]

    returns = at(window.value, settings.td_steps)
    for i in reversed(range(settings.td_steps)):
        returns = at(window.reward, i) + at(window.discount, i) * returns
        returns = jnp.where(at(window.explored, i), at(window.value, i), returns)
    goes_on = jnp.cumprod(window.discount[:, : k1 - 1] != 0, axis=1)
    alive = jnp.concatenate([jnp.ones_like(goes_on[:, :1]), goes_on], axis=1).astype(jnp.float32)
    return Targets(window.reward[:, : k1 - 1] * alive[:, :-1], returns * alive, window.policy[:, :k1], alive)


def loss(params, window: Frame, key, *, network: Network, settings: Settings) -> jax.Array:
    """MuZero's loss: the root counts 1, each unrolled step 1 / K, and half the gradient enters the dynamics."""
    targets, steps = make_targets(window, settings), settings.unroll_steps
    random = jax.random.randint(key, (len(window.action), steps), 0, window.policy.shape[-1])
    actions = jnp.where(targets.alive[:, :-1] > 0, window.action[:, :steps], random)  # nothing matters past the end
    embedding, value, policy = network.root(params, window.observation[:, 0])
    policy = jnp.where(window.legal_action_mask[:, 0], policy, -1e9)
    total = scalar_loss(value, targets.value[:, 0]) + optax.softmax_cross_entropy(policy, targets.policy[:, 0])
    for k in range(steps):
        embedding = 0.5 * embedding + jax.lax.stop_gradient(0.5 * embedding)
        embedding, reward, value, policy = network.step(params, embedding, actions[:, k])
        step = scalar_loss(reward, targets.reward[:, k]) + scalar_loss(value, targets.value[:, k + 1])
        step += targets.alive[:, k + 1] * optax.softmax_cross_entropy(policy, targets.policy[:, k + 1])
        total += step / steps
    return total.mean()


def make_optimiser(settings: Settings) -> optax.GradientTransformation:
    """AdamW after clipping."""
    return optax.chain(optax.clip_by_global_norm(5.0), optax.adamw(settings.learning_rate, weight_decay=1e-4))


def update(params, optimiser_state, window: Frame, key, *, network: Network, settings: Settings):
    """One gradient step on N windows."""
    value, gradients = jax.value_and_grad(loss)(params, window, key, network=network, settings=settings)
    updates, optimiser_state = make_optimiser(settings).update(gradients, optimiser_state, params)
    return optax.apply_updates(params, updates), optimiser_state, value


def draw(replay: Frame, key, settings: Settings) -> Frame:
    """N windows of L frames, each as likely as any other."""
    time_key, game_key = jax.random.split(key)
    start = jax.random.randint(time_key, (settings.batch_size, 1), 0, settings.replay_length - settings.window_length)
    game = jax.random.randint(game_key, (settings.batch_size, 1), 0, settings.num_envs)
    return jax.tree.map(lambda x: x[start + jnp.arange(settings.window_length), game], replay)


def iterate(state: State, learns, *, env: pgx.Env, network: Network, settings: Settings) -> tuple[State, jax.Array]:
    """One iteration: play, remember, learn if the replay buffer is full. Returns the mean loss too."""
    key, play_key, learn_key = jax.random.split(state.key, 3)
    games, frames = self_play(state.params, state.games, play_key, env=env, network=network, settings=settings)
    replay = jax.tree.map(lambda old, new: jnp.concatenate([old[len(new) :], new]), state.replay, frames)

    def step(learner, key):
        draw_key, loss_key = jax.random.split(key)
        window = draw(replay, draw_key, settings)
        *learner, value = update(*learner, window, loss_key, network=network, settings=settings)
        return tuple(learner), value

    def learn(learner):
        return jax.lax.scan(step, learner, jax.random.split(learn_key, settings.updates_per_iteration))

    def wait(learner):
        return learner, jnp.zeros(settings.updates_per_iteration)

    (params, optimiser), losses = jax.lax.cond(learns, learn, wait, (state.params, state.optimiser))
    return State(params, optimiser, games, replay, key), losses.mean()


def init(key, *, env: pgx.Env, network: Network, settings: Settings) -> State:
    """A run before its first iteration, with an empty replay buffer."""
    params_key, games_key, key = jax.random.split(key, 3)
    params = network.init(params_key)
    games = jax.vmap(env.init)(jax.random.split(games_key, settings.num_envs))
    play = partial(self_play, env=env, network=network, settings=settings)
    _, frames = jax.eval_shape(play, params, games, key)
    replay = jax.tree.map(lambda x: jnp.zeros((settings.replay_length, *x.shape[1:]), x.dtype), frames)
    return State(params, make_optimiser(settings).init(params), games, replay, key)


def match(params, key, *, env: pgx.Env, network: Network, settings: Settings) -> jax.Array:
    """The mean score (1, 0.5 or 0) against uniformly random moves; the agent begins half of the games."""
    init_key, play_key = jax.random.split(key)
    games = jax.vmap(env.init)(jax.random.split(init_key, settings.num_envs))
    seat = (games.current_player + jnp.arange(settings.num_envs)) % 2  # whom the agent plays

    def move(games, key):
        search_key, random_key = jax.random.split(key)
        action, _, _ = search(params, search_key, games, network=network, settings=settings, gumbel_scale=0.0)
        random = jax.random.categorical(random_key, jnp.log(games.legal_action_mask.astype(float)))
        games = jax.vmap(env.step)(games, jnp.where(games.current_player == seat, action, random))
        return games, games.rewards[jnp.arange(settings.num_envs), seat]  # 0 after the end

    _, rewards = jax.lax.scan(move, games, jax.random.split(play_key, env.num_actions))
    return 0.5 + 0.5 * rewards.sum(axis=0).mean()


def main() -> None:
    """Trains, and shows the score against random play."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="tic_tac_toe", help="a two-player game of pgx; hex takes --size")
    parser.add_argument("--size", type=int, help="of the Hex board")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    settings, env = Settings(), make_env(a.env, a.size)
    parts = {"env": env, "network": make_network(env, settings), "settings": settings}
    state = init(jax.random.key(a.seed), **parts)
    run, score = jax.jit(partial(iterate, **parts), donate_argnums=0), jax.jit(partial(match, **parts))
    start, iteration, seconds = time.time(), 0, 60 * a.minutes
    while time.time() - start < seconds:
        iteration += 1
        state, value = run(state, iteration * settings.rollout_length >= settings.replay_length)
        if iteration % 50 == 0:
            result = score(state.params, jax.random.key(iteration))
            print(
                f"{time.time() - start:5.0f} s  iteration {iteration:5}  loss {value:.3f}  against random {result:.1%}"
            )


if __name__ == "__main__":
    main()
