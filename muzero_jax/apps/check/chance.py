"""The faults of listed chance that random games show: its probabilities, its afterstates, and how moves are made of it.

A search branches on what `Environment.chance` says, and self-play moves by `Environment.move`. So the two must be one
game. Everything must be a number for any action and outcome, because a tree asks about ends and empty slots too.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from muzero_jax.games.chance import NOTHING, joined
from muzero_jax.games.random_play import equal
from muzero_jax.types import Chance, Environment, EnvState

NUM_GAMES, NUM_MOVES = 8, 64
ROUNDING = 1e-4


class Answers(NamedTuple):
    """T moves of G random games as chance tells them, arrays [T, G]."""

    over: Array  # bool, the game had ended before the move
    awaits_chance: Array  # bool, chance acted
    total: Array  # float32, sum of the probabilities
    lowest: Array  # float32, the lowest of them
    discount: Array  # float32, of the player's part
    is_last: Array  # bool, of the player's part
    ends: Array  # bool, the whole move ended the game
    changes_player: Array  # bool, the player's part made another player the current one
    outcome: Array  # int32, of the move
    likelihood: Array  # float32, of that outcome
    is_joined: Array  # bool, the move is the player's part and that outcome
    is_finite: Array  # bool, all numbers of all outcomes are finite
    is_total: Array  # bool, and so they are for actions and outcomes that there are not


def problems(environment: Environment) -> list[str]:
    """The faults of an environment's listed chance, a sentence each; none in a game without it."""
    chance = environment.chance
    if chance is None:
        return []
    state = jax.eval_shape(environment.init, jax.random.key(0))
    if jax.eval_shape(environment.move, state, jnp.int32(0), jax.random.key(0)).outcome is None:
        return [
            "move does not say in Step.outcome what chance did; let muzero_jax.games.chance.make_move(chance) make it"
        ]
    answers = jax.device_get(_play(environment, chance))
    return [*_of_probabilities(answers), *_of_afterstates(answers), *_of_moves(answers), *_of_numbers(answers)]


def _of_probabilities(answers: Answers) -> Iterator[str]:
    acts = answers.awaits_chance & ~answers.over
    off = acts & ~(np.abs(answers.total - 1) <= ROUNDING)
    if off.any():
        yield f"the outcomes' probabilities sum to {answers.total[off][0]:g} after a move; make them sum to 1"
    elif (answers.lowest[acts] < 0).any():
        yield f"an outcome has the probability {answers.lowest[acts].min():g}; none may be negative"


def _of_afterstates(answers: Answers) -> Iterator[str]:
    acts = answers.awaits_chance & ~answers.over
    if (answers.discount[acts] != 1).any():
        yield (
            f"chance.move gives the discount {answers.discount[acts][answers.discount[acts] != 1][0]:g} before chance "
            "acts; it must be 1 there, for chance.resolve gives the sign and the end"
        )
    if answers.is_last[acts].any():
        yield "chance.move says is_last before chance acts; a game that ends by the move awaits no chance"
    if answers.changes_player[acts].any():
        yield (
            "the state before chance acts belongs to another player than the one who moved; let chance.resolve hand "
            "the turn over"
        )


def _of_moves(answers: Answers) -> Iterator[str]:
    played, acts = ~answers.over, answers.awaits_chance & ~answers.over
    if (answers.outcome[played & ~acts] != NOTHING).any():
        yield f"move names an outcome where chance does not act; Step.outcome must be {NOTHING} there"
    elif not (answers.likelihood[acts] > 0).all():
        yield "move drew an outcome that chance.probabilities calls impossible; make both agree"
    elif not answers.is_joined[played].all():
        yield (
            "move differs from chance.move followed by chance.resolve with the same outcome; make both one game, or "
            "let muzero_jax.games.chance.make_move(chance) make move"
        )


def _of_numbers(answers: Answers) -> Iterator[str]:
    if not answers.is_finite.all():
        yield "chance gives a number that is not finite for some outcome; searches ask about all of them"
    elif not answers.is_total.all():
        yield (
            "chance gives a number that is not finite for an action or an outcome that there is not; let it give any "
            "finite one, for searches ask and throw it away"
        )


def _play(environment: Environment, chance: Chance) -> Answers:
    def one_move(carry, key):
        states, over = carry
        states, answers = jax.vmap(partial(_move, environment, chance))(states, over, jax.random.split(key, NUM_GAMES))
        return (states, over | answers.ends), answers

    @jax.jit
    def run(key: Array) -> Answers:
        start = jax.vmap(environment.init)(jax.random.split(key, NUM_GAMES))
        carry = start, jnp.zeros(NUM_GAMES, bool)
        return jax.lax.scan(one_move, carry, jax.random.split(key, NUM_MOVES))[1]

    return run(jax.random.key(0))


def _move(environment: Environment, chance: Chance, state: EnvState, over: Array, key: Array):
    """One random move, and what chance says of it."""
    choice_key, move_key = jax.random.split(key)
    mask = environment.legal(state)
    action = jnp.argmax(jnp.where(mask, jax.random.uniform(choice_key, mask.shape), -1.0)).astype(jnp.int32)
    after, step = chance.move(state, action), environment.move(state, action, move_key)
    weights = chance.probabilities(after.state)
    drawn = jnp.asarray(step.outcome)
    every = jax.vmap(partial(chance.resolve, after.state))(jnp.arange(chance.num_outcomes))
    strange = jax.vmap(partial(chance.move, state))(jnp.array([-1, mask.shape[0]]))
    beyond = jax.vmap(partial(chance.resolve, state))(jnp.array([-1, chance.num_outcomes]))
    whole = joined(chance, after, drawn)
    same = [equal(whole.state, step.state), jnp.abs(whole.reward - step.reward) <= ROUNDING]
    player, next_player = (getattr(each, "current_player", jnp.int32(0)) for each in (state, after.state))
    return step.state, Answers(
        over=over,
        awaits_chance=after.awaits_chance,
        total=weights.sum(),
        lowest=weights.min(),
        discount=after.discount,
        is_last=after.is_last,
        ends=step.is_last,
        changes_player=player != next_player,
        outcome=drawn,
        likelihood=weights[jnp.clip(drawn, 0, chance.num_outcomes - 1)],
        is_joined=jnp.stack([*same, whole.discount == step.discount]).all(),
        is_finite=_finite((after, every)),
        is_total=_finite((strange, beyond)),
    )


def _finite(tree) -> Array:
    """Whether all floats of a tree are finite."""
    leaves = [leaf for leaf in jax.tree.leaves(tree) if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves]).all()
