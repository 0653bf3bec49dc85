"""Where games of self-play begin: at the beginning, after random moves, or at positions that earlier games visited.

Starts elsewhere show the learner positions that its own play would rarely reach: random openings (as in diversified
Gumbel AlphaZero), an archive of visited positions (Go-Exploit: Trudeau and Bowling 2023, arXiv 2302.12359), or the
positions of that archive where the search promised something else than the game brought (RGSC: arXiv 2602.20809, where
a head learns that regret).

A rollout draws one start for each of its B games at once, and every game that begins in it takes one of these, or a
fresh game where that is a beginning. So no move computes starts that no game needs, but with few games and long
rollouts several games share one. What is kept between rollouts lies in `ActorState.extras`, each device's share
for itself.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from muzero_jax.ops.conditional import where_each
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.types import ActorState, Environment, EnvState, Model, Params

KEY = "starts"
"""Of `ActorState.extras`."""


class Starts(NamedTuple):
    """Where games begin, as pure functions."""

    draw: Callable[[Environment, Any, Array, int], tuple[EnvState, Array]]
    """(game, what is kept, key, B) -> B starts [B, ...], and the number of moves made before each [B]"""
    init: Callable[[ActorState], Any]  # the first games -> what is kept, leaves [B, ...]
    keep: Callable[[Environment, Model | None, Params, ActorState, Any], Any]
    """(game, network, weights, games after a rollout, what is kept) -> what is kept"""


def random_moves(*, share: float, most: int) -> Starts:
    """A `share` of the games begins after k random legal moves, k uniform from 0 to `most`.

    A game that would end on the way begins at its last position before that.
    """

    def draw(environment: Environment, kept: Any, key: Array, num_games: int) -> tuple[EnvState, Array]:
        fresh_key, chosen_key, length_key, move_key = jax.random.split(key, 4)
        states = _fresh(environment, fresh_key, num_games)
        length = jax.random.randint(length_key, (num_games,), 0, most + 1)
        length = jnp.where(jax.random.bernoulli(chosen_key, share, (num_games,)), length, 0)

        def one(i: Array, carry: tuple) -> tuple:
            states, num_moves = carry
            action_key, step_key = jax.random.split(jax.random.fold_in(move_key, i))
            action = uniform_legal_action(action_key, jax.vmap(environment.legal)(states))
            moved = jax.vmap(environment.move)(states, action, jax.random.split(step_key, num_games))
            goes_on = (num_moves == i) & (i < length) & ~moved.is_last
            return where_each(goes_on, moved.state, states), num_moves + goes_on

        return jax.lax.fori_loop(0, jnp.max(length), one, (states, jnp.zeros(num_games, jnp.int32)))

    return Starts(draw, init=lambda actor: None, keep=lambda environment, model, params, actor, kept: None)


class Archive(NamedTuple):
    """Positions that games visited, at most M of each of B games."""

    states: EnvState  # leaves [B, M, ...]
    num_moves: Array  # [B, M] int32, made before each
    weight: Array  # [B, M] float32, by which a position is drawn; 0 where none is stored yet
    count: Array  # [B] int32, how many were stored so far; the same for all games, and sharded like them


def archive(*, share: float, slots: int, weigh: Callable[..., Array] | None = None) -> Starts:
    """A `share` of the games begins at positions that earlier games visited; one of each game is stored a rollout.

    Args:
      slots: M, how many are stored of each game; the oldest is replaced.
      weigh: (game, network, weights, states [B, ...]) -> how likely each is to be drawn, above 0; by default all alike.
    """

    def init(actor: ActorState) -> Archive:
        states = jax.tree.map(lambda x: jnp.repeat(x[:, None], slots, axis=1), actor.env_state)
        shape = (actor.num_moves.shape[0], slots)
        return Archive(states, jnp.zeros(shape, jnp.int32), jnp.zeros(shape), jnp.zeros_like(actor.num_moves))

    def draw(environment: Environment, kept: Archive, key: Array, num_games: int) -> tuple[EnvState, Array]:
        fresh_key, chosen_key, place_key = jax.random.split(key, 3)
        fresh = _fresh(environment, fresh_key, num_games)
        is_old = jax.random.bernoulli(chosen_key, share, (num_games,)) & (kept.weight.sum() > 0)
        place = _weighted(place_key, kept.weight.ravel(), num_games)
        old = jax.tree.map(lambda x: x[place // slots, place % slots], (kept.states, kept.num_moves))
        return where_each(is_old, old, (fresh, jnp.zeros(num_games, jnp.int32)))

    def keep(
        environment: Environment, model: Model | None, params: Params, actor: ActorState, kept: Archive
    ) -> Archive:
        slot = kept.count[0] % slots  # the same for all games
        weight = weigh(environment, model, params, actor.env_state) if weigh else jnp.ones(kept.count.shape)

        def put(old: Array, new: Array) -> Array:
            return old.at[:, slot].set(new)

        return Archive(
            states=jax.tree.map(put, kept.states, actor.env_state),
            num_moves=put(kept.num_moves, actor.num_moves),
            weight=put(kept.weight, weight),
            count=kept.count + 1,
        )

    return Starts(draw, init, keep)


def predicted_regret(
    environment: Environment, model: Model, params: Params, states: EnvState, *, output: str, least: float
) -> Float[Array, "B"]:
    """`archive`'s weights: the regret that the network predicts, and at least a little for every position.

    Args:
      output: the head's name in `NetworkOutput.extras`.
    """
    found = model.initial_inference(params, environment.roots(states).observation)
    return jnp.maximum(found.extras[output][:, 0], least)


class Progress(NamedTuple):
    """What a run with such starts keeps of its games in `ActorState.extras`: what `Starts` needs, and sums.

    Lengths and returns are counted of whole games only, which began at the beginning. The sums are of one rollout.
    """

    kept: Any
    is_whole: Array  # [B] bool, of the games in progress
    games: Array  # [B] float32, whole games that have ended
    moves: Array  # [B] float32, of these
    returns: Array  # [B] float32, of these; 0 in two-player games


def first_games(starts: Starts, actor: ActorState) -> ActorState:
    """The first games, with what is kept of them."""
    zeros = jnp.zeros(actor.num_moves.shape)
    is_whole = jnp.ones(actor.num_moves.shape, bool)
    return actor._replace(extras={KEY: Progress(starts.init(actor), is_whole, zeros, zeros, zeros)})


def without_sums(actor: ActorState) -> ActorState:
    """The games with sums of 0, as a rollout begins them."""
    progress: Progress = actor.extras[KEY]
    zeros = jnp.zeros_like(progress.games)
    return actor._replace(extras=actor.extras | {KEY: progress._replace(games=zeros, moves=zeros, returns=zeros)})


def one_of(drawn: tuple[EnvState, Array], environment: Environment, key: Array) -> tuple[EnvState, Array]:
    """One of B starts, as `Starts.draw` returns them; instead of a beginning among them a fresh game of its own.

    Where a start is costly, several games of a rollout may share a beginning.
    """
    place_key, fresh_key = jax.random.split(key)
    place = jax.random.randint(place_key, (), 0, len(drawn[1]))
    state, num_moves = jax.tree.map(lambda x: x[place], drawn)
    if environment.costly_start:
        return state, num_moves
    return jax.tree.map(partial(jnp.where, num_moves == 0), environment.init(fresh_key), state), num_moves


def count(before: ActorState, after: ActorState, is_last: Bool[Array, " B"], reward: Float[Array, " B"]) -> ActorState:
    """`after` with the sums over whole games after a move; `is_last`: the games that it ended."""
    progress: Progress = before.extras[KEY]
    returns = 0.0 if before.return_so_far is None else before.return_so_far + reward
    ended = is_last & progress.is_whole
    found = progress._replace(
        is_whole=jnp.where(is_last, after.num_moves == 0, progress.is_whole),
        games=progress.games + ended,
        moves=progress.moves + jnp.where(ended, before.num_moves + 1, 0),
        returns=progress.returns + jnp.where(ended, returns, 0.0),
    )
    return after._replace(extras=after.extras | {KEY: found})


def of_whole_games(after: ActorState) -> dict[str, Array]:
    """Sums over the whole games that ended in a rollout; empty if all games are whole."""
    if KEY not in after.extras:
        return {}
    progress: Progress = after.extras[KEY]
    found = {
        "selfplay/whole_games": jnp.sum(progress.games),
        "selfplay/finished_frames": jnp.sum(progress.moves),
    }
    if after.return_so_far is not None:
        found["selfplay/finished_returns"] = jnp.sum(progress.returns)
    return found


def _fresh(environment: Environment, key: Array, num_games: int) -> EnvState:
    return jax.vmap(environment.init)(jax.random.split(key, num_games))


def _weighted(key: Array, weight: Float[Array, " n"], num: int) -> Int[Array, " m"]:
    """`num` indices, each drawn in proportion to its weight, with replacement."""
    total = jnp.cumsum(weight)
    point = jax.random.uniform(key, (num,)) * total[-1]
    return jnp.minimum(jnp.searchsorted(total, point, side="right"), len(weight) - 1)
