"""MuZero in one file, to read in one sitting or to fork: python examples/nano_muzero.py --env tic_tac_toe --minutes 5

pgx plays, mctx searches, Flax and Optax learn; nothing of muzero_jax is used. One jitted function is an iteration: it
plays T moves of B games, stores them, and makes U gradient steps. Games are for two players who alternate.
Sources: MuZero (Schrittwieser et al. 2020) with the search of Gumbel MuZero (Danihelka et al. 2022).
"""

import argparse
import time
from functools import partial
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import mctx
import optax
import pgx.hex


class Settings(NamedTuple):
    """All hyperparameters; the shapes below use their letters."""

    num_envs: int = 256  # B, games at once
    rollout_length: int = 8  # T, moves of each game in an iteration
    replay_length: int = 128  # C, frames kept of each game
    num_simulations: int = 16
    max_num_considered_actions: int = 8
    value_scale: float = 0.1
    exploration: float = 0.1  # share of uniformly random moves in self-play
    unroll_steps: int = 4  # K
    td_steps: int = 16  # n; at least the longest game's length is Monte-Carlo
    batch_size: int = 256  # N
    updates_per_iteration: int = 16  # U
    learning_rate: float = 1e-3
    num_bins: int = 3  # S, of value and reward over [-1, 1]


class Nano(NamedTuple):
    """A game, a network and the settings: everything that the functions below need in addition to their data."""

    env: Any  # a pgx.Env
    init: Any  # key -> params
    root: Any  # (params, observation [N, ...]) -> embedding, value logits [N, S], policy logits [N, A]
    step: Any  # (params, embedding, action [N]) -> embedding, reward logits, value logits, policy logits
    settings: Settings


class Frame(NamedTuple):
    """One move; leaves [T, B, ...] from self-play, [C, B, ...] in the replay buffer, [N, L, ...] as windows."""

    observation: jax.Array  # [...], what the player to move sees before the move
    legal_action_mask: jax.Array  # [A] bool
    action: jax.Array  # []
    reward: jax.Array  # [], for the player who moved
    discount: jax.Array  # [], 0 if the move ended the game, else -1, because the next value is the opponent's
    policy: jax.Array  # [A], the search's improved policy
    value: jax.Array  # [], the search's value of the position
    explored: jax.Array  # [] bool, whether the move was uniformly random


class State(NamedTuple):
    """A whole run."""

    learner: tuple[Any, Any]  # the parameters and the optimiser's state
    games: Any  # B states of pgx
    replay: Frame  # the newest C frames of each game
    key: jax.Array


class MLP(nn.Module):
    """Dense layers. Embeddings are scaled to [0, 1] (MuZero, appendix G), and heads start at zero."""

    num_actions: int
    num_bins: int
    width: int = 128

    def setup(self):
        self.representation, self.dynamics, self.prediction = (
            nn.Sequential([nn.Dense(self.width), nn.relu, nn.Dense(self.width), nn.relu]) for _ in range(3)
        )
        self.reward, self.value = (nn.Dense(self.num_bins, kernel_init=nn.initializers.zeros) for _ in range(2))
        self.policy = nn.Dense(self.num_actions, kernel_init=nn.initializers.zeros)

    def root(self, observation):
        embedding = scale(self.representation(observation.reshape(len(observation), -1).astype(jnp.float32)))
        return embedding, *self.predict(embedding)

    def step(self, embedding, action):
        action = jax.nn.one_hot(action, self.num_actions)
        x = embedding + self.dynamics(jnp.concatenate([embedding, action], axis=-1))
        return scale(x), self.reward(x), *self.predict(scale(x))

    def predict(self, embedding):
        x = self.prediction(embedding)
        return self.value(x), self.policy(x)

    def __call__(self, observation, action):
        return self.step(self.root(observation)[0], action)


def scale(x: jax.Array) -> jax.Array:
    """Scales each row so that its smallest number becomes 0 and its largest 1."""
    low, high = x.min(axis=-1, keepdims=True), x.max(axis=-1, keepdims=True)
    return (x - low) / (high - low + 1e-5)


def to_scalar(logits: jax.Array) -> jax.Array:
    """The expected value of S bins over [-1, 1]."""
    return jax.nn.softmax(logits) @ jnp.linspace(-1.0, 1.0, logits.shape[-1])


def scalar_loss(logits: jax.Array, target: jax.Array) -> jax.Array:
    """Cross-entropy with the two bins around the target (MuZero, appendix F)."""
    position = (jnp.clip(target, -1.0, 1.0)[..., None] + 1.0) / 2.0 * (logits.shape[-1] - 1)
    return optax.softmax_cross_entropy(logits, jax.nn.relu(1.0 - jnp.abs(position - jnp.arange(logits.shape[-1]))))


def search(params, key, games, nano: Nano, *, gumbel_scale: float):
    """The moves [B], the improved policies [B, A] and the values [B] that Gumbel MuZero's search finds."""
    settings = nano.settings

    def recurrent(params, key, action, embedding):
        embedding, reward, value, policy = nano.step(params, embedding, action)
        said = {"reward": to_scalar(reward), "value": to_scalar(value), "prior_logits": policy}
        return mctx.RecurrentFnOutput(discount=jnp.full(action.shape, -1.0), **said), embedding

    embedding, value, policy = nano.root(params, games.observation)
    root = mctx.RootFnOutput(prior_logits=policy, value=to_scalar(value), embedding=embedding)
    qtransform = partial(mctx.qtransform_completed_by_mix_value, rescale_values=False, value_scale=settings.value_scale)
    options = {"gumbel_scale": gumbel_scale, "max_num_considered_actions": settings.max_num_considered_actions}
    options |= {"invalid_actions": ~games.legal_action_mask, "qtransform": qtransform}
    found = mctx.gumbel_muzero_policy(params, key, root, recurrent, settings.num_simulations, **options)
    return found.action, found.action_weights, found.search_tree.summary().value


def random_moves(key, games) -> jax.Array:
    """A uniformly random legal move of each game [B]."""
    return jax.random.categorical(key, jnp.where(games.legal_action_mask, 0.0, -jnp.inf))


def self_play(params, games, key, nano: Nano, search=search):
    """Plays T moves of every game; finished games start again. Returns the games and the frames [T, B, ...]."""
    env, settings, rows = nano.env, nano.settings, jnp.arange(nano.settings.num_envs)

    def move(games, key):
        search_key, explore_key, random_key, reset_key = jax.random.split(key, 4)
        action, policy, value = search(params, search_key, games, nano, gumbel_scale=1.0)
        explored = jax.random.bernoulli(explore_key, settings.exploration, rows.shape)
        action = jnp.where(explored, random_moves(random_key, games), action)
        moved, fresh = jax.vmap(env.step)(games, action), jax.vmap(env.init)(jax.random.split(reset_key, len(rows)))
        is_over = moved.terminated | moved.truncated
        reward, discount = moved.rewards[rows, games.current_player], jnp.where(is_over, 0.0, -1.0)
        frame = Frame(games.observation, games.legal_action_mask, action, reward, discount, policy, value, explored)
        return jax.tree.map(jax.vmap(jnp.where), jax.tree.map(lambda x: is_over, fresh), fresh, moved), frame

    return jax.lax.scan(move, games, jax.random.split(key, settings.rollout_length))


def make_targets(window: Frame, settings: Settings) -> tuple[jax.Array, ...]:
    """Reward [N, K], value [N, K + 1], policy [N, K + 1, A], and whether the game has not ended before [N, K + 1].

    Values are G_t = r_{t+1} + d_{t+1} G_{t+1}, up to n moves or the first random one. Past the end, r and G are 0.
    """
    k = settings.unroll_steps
    at = [Frame(*(x[:, i : i + k + 1] for x in window)) for i in range(settings.td_steps + 1)]
    value = at[-1].value
    for frame in reversed(at[:-1]):
        value = jnp.where(frame.explored, frame.value, frame.reward + frame.discount * value)
    goes_on = jnp.cumprod(window.discount[:, :k] != 0, axis=1)
    alive = jnp.pad(goes_on, ((0, 0), (1, 0)), constant_values=1).astype(jnp.float32)
    return window.reward[:, :k] * alive[:, :-1], value * alive, window.policy[:, : k + 1], alive


def loss(params, window: Frame, key, nano: Nano) -> jax.Array:
    """MuZero's loss: the root counts 1, each unrolled step 1 / K, and half the gradient enters the dynamics."""
    k, (rewards, values, policies, alive) = nano.settings.unroll_steps, make_targets(window, nano.settings)
    random = jax.random.randint(key, (len(window.action), k), 0, window.policy.shape[-1])
    actions = jnp.where(alive[:, :-1] > 0, window.action[:, :k], random)  # past the end, learn with any action

    def judgement(i, value, policy):
        return scalar_loss(value, values[:, i]) + alive[:, i] * optax.softmax_cross_entropy(policy, policies[:, i])

    embedding, value, policy = nano.root(params, window.observation[:, 0])
    total = judgement(0, value, jnp.where(window.legal_action_mask[:, 0], policy, -1e9))
    for i in range(k):
        embedding = 0.5 * embedding + jax.lax.stop_gradient(0.5 * embedding)
        embedding, reward, value, policy = nano.step(params, embedding, actions[:, i])
        total += (scalar_loss(reward, rewards[:, i]) + judgement(i + 1, value, policy)) / k
    return total.mean()


def make_optimiser(settings: Settings) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(5.0), optax.adamw(settings.learning_rate, weight_decay=1e-4))


def update(learner, window: Frame, key, nano: Nano):
    """One gradient step on N windows; returns the learner and the loss."""
    params, state = learner
    value, gradients = jax.value_and_grad(loss)(params, window, key, nano)
    updates, state = make_optimiser(nano.settings).update(gradients, state, params)
    return (optax.apply_updates(params, updates), state), value


def remember(replay: Frame, frames: Frame) -> Frame:
    """The replay buffer with new frames instead of its oldest."""
    return jax.tree.map(lambda old, new: jnp.concatenate([old[len(new) :], new]), replay, frames)


def draw(replay: Frame, key, settings: Settings) -> Frame:
    """N windows of L = K + n + 1 frames, sampled uniformly."""
    time_key, game_key = jax.random.split(key)
    length, shape = settings.unroll_steps + settings.td_steps + 1, (settings.batch_size, 1)
    start = jax.random.randint(time_key, shape, 0, settings.replay_length - length + 1)
    game = jax.random.randint(game_key, shape, 0, settings.num_envs)
    return jax.tree.map(lambda x: x[start + jnp.arange(length), game], replay)


def iterate(state: State, learns, nano: Nano) -> tuple[State, jax.Array]:
    """One iteration: play, store the frames, and learn if the buffer is full. Also returns the mean loss."""
    key, play_key, learn_key = jax.random.split(state.key, 3)
    games, frames = self_play(state.learner[0], state.games, play_key, nano)
    replay, keys = remember(state.replay, frames), jax.random.split(learn_key, nano.settings.updates_per_iteration)

    def step(learner, key):
        draw_key, loss_key = jax.random.split(key)
        return update(learner, draw(replay, draw_key, nano.settings), loss_key, nano)

    learn, wait = (lambda learner: jax.lax.scan(step, learner, keys)), (lambda learner: (learner, jnp.zeros(len(keys))))
    learner, losses = jax.lax.cond(learns, learn, wait, state.learner)
    return State(learner, games, replay, key), losses.mean()


def init(key, nano: Nano) -> State:
    """A run before its first iteration, with an empty replay buffer."""
    params_key, games_key, key = jax.random.split(key, 3)
    params, length = nano.init(params_key), nano.settings.replay_length
    games = jax.vmap(nano.env.init)(jax.random.split(games_key, nano.settings.num_envs))
    _, frames = jax.eval_shape(partial(self_play, nano=nano), params, games, key)
    replay = jax.tree.map(lambda x: jnp.zeros((length, *x.shape[1:]), x.dtype), frames)
    return State((params, make_optimiser(nano.settings).init(params)), games, replay, key)


def match(params, key, nano: Nano) -> jax.Array:
    """The mean score (1, 0.5 or 0) against uniformly random moves; the agent begins half of the games."""
    rows = jnp.arange(nano.settings.num_envs)
    games = jax.vmap(nano.env.init)(jax.random.split(key, len(rows)))
    seat = (games.current_player + rows) % 2  # the agent's player

    def move(carry):
        games, key, score = carry
        key, search_key, random_key = jax.random.split(key, 3)
        action, _, _ = search(params, search_key, games, nano, gumbel_scale=0.0)
        action = jnp.where(games.current_player == seat, action, random_moves(random_key, games))
        games = jax.vmap(nano.env.step)(games, action)
        return games, key, score + games.rewards[rows, seat]  # 0 after the end

    score = jax.lax.while_loop(lambda carry: ~carry[0].terminated.all(), move, (games, key, jnp.zeros(len(rows))))[2]
    return 0.5 + 0.5 * score.mean()


class Hex(pgx.hex.Hex):
    """Hex of any size; in pgx 2.6, games of every size begin on an 11x11 board."""

    def _init(self, key):
        state = super()._init(key)
        game = state._x._replace(board=jnp.zeros(self.size**2, jnp.int32))
        return state.replace(_x=game, legal_action_mask=self._game.legal_action_mask(game))  # type: ignore


def make_nano(name: str, size: int | None, settings: Settings) -> Nano:
    """A game of pgx with the MLP."""
    env: Any = Hex(size=size or 11) if name == "hex" else pgx.make(name)  # type: ignore
    mlp, example = MLP(env.num_actions, settings.num_bins), jnp.zeros((1, *env.observation_shape))
    root, step = (partial(mlp.apply, method=method) for method in ("root", "step"))
    return Nano(env, lambda key: mlp.init(key, example, jnp.zeros(1, jnp.int32)), root, step, settings)


def train(nano: Nano, *, minutes: float, seed: int = 0) -> Any:
    """Trains for so many minutes, printing the score against random play, and returns the parameters."""
    state, start, iteration = init(jax.random.key(seed), nano), time.time(), 0
    run, score = jax.jit(partial(iterate, nano=nano), donate_argnums=0), jax.jit(partial(match, nano=nano))
    while (seconds := time.time() - start) < 60 * minutes:
        iteration += 1
        learns = iteration * nano.settings.rollout_length >= nano.settings.replay_length
        state, value = jax.block_until_ready(run(state, learns))
        if iteration % 50 == 0:
            won = float(score(state.learner[0], jax.random.key(iteration)))
            print(f"{seconds:5.0f} s  iteration {iteration:5}  loss {value:.3f}  against random {won:.1%}", flush=True)
    return state.learner[0]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="tic_tac_toe", help="a game of pgx for two who take turns")
    parser.add_argument("--size", type=int, help="of the Hex board")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    train(make_nano(chosen.env, chosen.size, Settings()), minutes=chosen.minutes, seed=chosen.seed)
