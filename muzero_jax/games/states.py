"""States in pgx's form: the six fields that matches, rollout MCTS and play read from any game's state.

The fields are the player to move, legal actions, how the game ended (two fields), rewards, and the observation. Your
own game may have states of any kind: `wrapped` adds these fields, and `final` makes a finished game stay as it is,
which pgx's own rules already do.
"""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from muzero_jax.types import Afterstate, Environment, EnvState, Step

FIELDS = ("current_player", "legal_action_mask", "terminated", "truncated", "rewards", "observation")

Moved = TypeVar("Moved", Step, Afterstate)


def missing_fields(state: EnvState) -> list[str]:
    """Fields of pgx's form that a state lacks."""
    return [field for field in FIELDS if not hasattr(state, field)]


def with_fields(state: Any, **fields: Any) -> EnvState:
    """A copy of a state, which is a NamedTuple or a dataclass, with some fields replaced."""
    is_named_tuple = hasattr(type(state), "_replace")
    return state._replace(**fields) if is_named_tuple else dataclasses.replace(state, **fields)


class WrappedState(NamedTuple):
    """A state of any kind with pgx's fields around it; the inner state's fields can be read by name as well."""

    state: EnvState
    current_player: Array  # [] int32, 0 for the player who moved first
    rewards: Array  # [num_players] float32, of the last move
    terminated: Array  # [] bool, the rules ended the game
    truncated: Array  # [] bool, a time limit did
    legal_action_mask: Array  # [A] bool
    observation: Array  # [*obs], the view of the player to move

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # names that libraries look for
            raise AttributeError(name)
        return getattr(self.state, name)


def in_form(environment: Environment) -> Environment:
    """The environment itself if its states have pgx's form, else `wrapped` and `final`."""
    lacks = missing_fields(jax.eval_shape(environment.init, jax.random.key(0)))
    return final(wrapped(environment)) if lacks else environment


def wrapped(environment: Environment) -> Environment:
    """The environment with states in pgx's form. The player to move follows from the sign of the discount."""
    num_players = environment.num_players

    def seat(state: EnvState, player: Array, rewards: Array, terminated: Array, truncated: Array) -> WrappedState:
        legal = environment.legal(state)
        observation = environment.observe(state)
        return WrappedState(state, player, rewards, terminated, truncated, legal, observation)

    def follow(before: WrappedState, moved: Moved) -> Moved:
        current_player = before.current_player
        ended = moved.discount == 0
        player = jnp.where(moved.discount < 0, 1 - current_player, current_player)
        rewards = jnp.where(jnp.arange(num_players) == current_player, moved.reward, -moved.reward)
        return moved._replace(state=seat(moved.state, player, rewards, ended, moved.is_last & ~ended))

    def init(key: Array) -> WrappedState:
        goes_on = jnp.bool_(False)
        return seat(environment.init(key), jnp.int32(0), jnp.zeros(num_players), goes_on, goes_on)

    return _followed(environment, follow, own=lambda state: state.state)._replace(
        init=init, observe=lambda state: state.observation, legal=lambda state: state.legal_action_mask
    )


def final(environment: Environment) -> Environment:
    """The environment whose finished games stay as they are, with reward 0, every action legal and no chance.

    A game that a time limit ended is over for matches and play too, so its state counts as terminated, but the discount
    of its last move, from which the agent learns, stays as it was.
    """
    chance = environment.chance

    def probabilities(state: EnvState) -> Array:
        return jnp.where(state.terminated, 1 / chance.num_outcomes, chance.probabilities(state))  # type: ignore

    settled = _followed(environment, _settled)._replace(legal=lambda state: environment.legal(state) | state.terminated)
    return settled._replace(chance=settled.chance and settled.chance._replace(probabilities=probabilities))


def _followed(environment: Environment, follow: Callable, own: Callable = lambda state: state) -> Environment:
    """The environment with `follow(state before, result)` applied to the result of each move.

    `own` extracts the state that the environment's own functions read.
    """

    def after(function: Callable) -> Callable:
        return lambda before, *arguments: follow(before, function(own(before), *arguments))

    listed = environment.chance
    chance = listed and listed._replace(
        move=after(listed.move),
        probabilities=lambda state: listed.probabilities(own(state)),
        resolve=after(listed.resolve),
    )
    return environment._replace(move=after(environment.move), chance=chance)


def _settled(before: EnvState, moved: Moved) -> Moved:
    """The result of a move with a final end: if the game was over before, the move changes nothing and earns 0.

    If chance acts next, a time limit ends the game only after that.
    """
    over = before.terminated
    waits = jnp.bool_(False)
    if isinstance(moved, Afterstate):
        waits = moved.awaits_chance & ~over
        moved = moved._replace(awaits_chance=waits)
    elif moved.outcome is not None:
        moved = moved._replace(outcome=jnp.where(over, -1, moved.outcome))
    unchanged = with_fields(before, rewards=jnp.zeros_like(before.rewards))
    state = jax.tree.map(partial(jnp.where, over), unchanged, moved.state)
    ended = (state.terminated | state.truncated) & ~waits
    state = with_fields(state, terminated=ended, legal_action_mask=state.legal_action_mask | ended)
    reward, discount = (jnp.where(over, 0.0, number) for number in (moved.reward, moved.discount))
    return moved._replace(state=state, reward=reward, discount=discount, is_last=moved.is_last | over)
