"""Games as pure functions: pgx's rules behind one small record, with the signed discount in one place.

Only this file computes `discount`: from `current_player` before and after a move, so that passes and repeated turns get
the right sign without counting plies, and later modules need not know who is to move. At a terminal state pgx marks
every action legal, so do not sample from its mask there.
"""

import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer
from jaxtyping import Int

from muzero_jax.games import states
from muzero_jax.games.catalogue import find
from muzero_jax.games.chance import ListedRules, make_chance_move
from muzero_jax.games.game import Game, make_rules
from muzero_jax.games.layout import Layout, carried
from muzero_jax.types import Afterstate, Board, Chance, Environment, EnvState, Step, Symmetries


def make_environment(name: str, *, board_size: int | None = None, gamma: float = 1.0) -> Environment:
    """The game `name` as pure functions of one state; `board_size` is for Hex (by default 11), dark Hex and go_9x9.

    Raises:
        ValueError: an unknown or unsupported game, or a size that it does not have.
    """
    environment = environment_of(find(name), board_size=board_size, gamma=gamma)
    is_final = environment.chance is None and environment.num_players == 2  # pgx's rules keep a finished game as it is
    return environment if is_final else states.final(environment)


def by_hand(environment: Environment) -> Environment:
    """The environment, compiled, whose `move` raises ValueError for an action that is not legal.

    In functions that JAX traces it is the same as before.
    """
    compiled = jax.jit(environment.move, inline=True)

    def move(state: EnvState, action: Any, key: Array | None = None) -> Step:
        if not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves((state, action))):
            legal = np.asarray(state.legal_action_mask)
            number = operator.index(action)
            if not (0 <= number < len(legal) and legal[number]):
                legal_ones = np.flatnonzero(legal).tolist()
                raise ValueError(f"the action {number} is not legal here; the legal ones are {legal_ones}")
        return compiled(state, jnp.int32(action), key)

    return environment._replace(init=jax.jit(environment.init, inline=True), move=move)


def environment_of(game: Game, *, board_size: int | None = None, gamma: float = 1.0) -> Environment:
    """`make_environment` for any game, in the catalogue or not."""
    rules = make_rules(game, board_size)
    state = jax.eval_shape(rules.init, jax.random.key(0))
    shape = state.observation.shape
    num_actions = state.legal_action_mask.shape[0]
    num_players = getattr(rules, "num_players", None) or state.rewards.shape[0]
    if isinstance(rules, ListedRules):
        chance = make_chance(rules, gamma=gamma)
        move = make_chance_move(chance)
    else:
        chance = None
        move = make_move(rules.step, gamma=gamma)
    return Environment(
        name=game.name,
        init=rules.init,
        move=move,
        observe=lambda state: state.observation,
        legal=lambda state: state.legal_action_mask,
        num_actions=num_actions,
        observation_shape=shape,
        num_players=num_players,
        discount=gamma if num_players == 1 else -gamma if game.turns_alternate else None,
        board=_make_board(game.layout, shape, num_actions, chance) if len(shape) == 3 else None,
        chance=chance,
        costly_start=game.costly_start,
        game=game,
        gamma=gamma,
    )


def make_move(play: Callable[..., EnvState], *, gamma: float) -> Callable[..., Step]:
    """`Environment.move` for rules in pgx's form, `play(state, action, key)`. A game without chance needs no key."""

    def move(state: EnvState, action: Int[Array, ""], key: Array | None = None) -> Step:
        return _step(state, play(state, action, key), gamma)

    return move


def make_chance(rules: ListedRules, *, gamma: float) -> Chance:
    """`Environment.chance` for rules that list their chance."""

    def move(state: EnvState, action: Int[Array, ""]) -> Afterstate:
        after, awaits_chance = rules.move(state, action)
        step = _step(state, after, gamma)
        discount = jnp.where(awaits_chance, 1.0, step.discount)
        return Afterstate(after, step.reward, discount, step.is_last & ~awaits_chance, awaits_chance)

    def resolve(state: EnvState, outcome: Int[Array, ""]) -> Step:
        return _step(state, rules.resolve(state, outcome), gamma)

    return Chance(rules.num_outcomes, move, rules.probabilities, resolve)


def _step(before: EnvState, after: EnvState, gamma: float) -> Step:
    """The step between two states, with the mover's reward and the signed discount, which is 0 at a terminal state."""
    signed_gamma = jnp.where(after.current_player == before.current_player, gamma, -gamma)
    discount = jnp.where(after.terminated, 0.0, signed_gamma).astype(jnp.float32)
    is_last = jnp.logical_or(after.terminated, after.truncated)
    return Step(after, after.rewards[before.current_player], discount, is_last)


def _make_board(layout: Layout, observation_shape: tuple[int, ...], num_actions: int, chance: Chance | None) -> Board:
    """A board whose symmetry g fills cell c from cell `sources[g][c]`; actions and outcomes follow their cell."""
    height, width, num_planes = observation_shape
    cells = np.arange(height * width).reshape(height, width)
    sources = np.stack([grid.ravel() for grid in layout.symmetries(cells)])
    observation_permutation = sources[..., None] * num_planes + np.arange(num_planes)
    observation_flip = np.zeros(observation_permutation.shape, bool)
    for symmetry, plane in layout.negated:
        observation_flip[symmetry, :, plane] = True

    def on_device(indices: np.ndarray) -> Int[Array, "..."]:  # jnp.asarray would compile a program for each shape
        return jax.device_put(indices.astype(np.int32))

    def turned(location: Int[np.ndarray, " N"]) -> Int[Array, "G N"]:
        return on_device(np.stack([carried(location, np.argsort(source)) for source in sources]))

    location = layout.action_location((height, width), num_actions)
    outcomes = chance and layout.outcome_location and layout.outcome_location((height, width), chance.num_outcomes)
    symmetries = Symmetries(
        observation_permutation=on_device(observation_permutation.reshape(len(sources), -1)),
        observation_flip=jax.device_put(observation_flip.reshape(len(sources), -1)),
        action_permutation=turned(location),
        outcome_permutation=None if outcomes is None else turned(outcomes),
    )
    return Board((height, width), on_device(location), symmetries)
