"""Checks what random games do not show of an environment: its symmetries, its listed chance, its view and notation.

- Symmetries must commute with moves: a game played on the turned board by the turned moves is the turned game.
- The listed chance, on which a search branches, must be the chance by which self-play moves.
- Training needs no view and no notation, so that a mistake there would show only when somebody plays.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from muzero_jax.games.catalogue import game_of, make_notation
from muzero_jax.games.chance import with_outcome
from muzero_jax.games.random_play import equal, random_action, watch
from muzero_jax.games.view import INKS, PAGES
from muzero_jax.learning.symmetries import transform_observation, transform_policy
from muzero_jax.own.faults import describe
from muzero_jax.types import Environment, EnvState

NUM_GAMES, NUM_MOVES = 8, 48
ROUNDING = 1e-4
Rules = dict[str, Any]
"""For each rule: the sentence for the first break, with fields of the record in braces -> True where moves break it."""


def broken(rules: Rules, record: dict[str, Any]) -> list[str]:
    """The sentences of all broken rules, each filled in from `record` at the first place where the rule is broken."""
    firsts = {sentence: tuple(np.argwhere(where)[0]) for sentence, where in rules.items() if np.any(where)}
    return [
        sentence.format(move=at[0], **{name: leaf[at] for name, leaf in record.items()})
        for sentence, at in firsts.items()
    ]


def symmetries(environment: Environment) -> list[str]:
    """Faults of the symmetries: those under which the rules change. One that changes the opening itself is skipped."""
    if environment.board is None:
        return []
    tables = environment.board.symmetries
    for name in ("action_permutation", "observation_permutation"):
        table = np.asarray(getattr(tables, name))
        if (table[0] != np.arange(table.shape[1])).any():
            return ["symmetry 0 is not the identity; put the identity first"]
        if wrong := [index for index, row in enumerate(table) if (np.sort(row) != np.arange(table.shape[1])).any()]:
            return [f"{name} of symmetry {wrong[0]} is no permutation; name each number from 0 on once"]
    if len(tables.action_permutation) == 1 or environment.chance is not None:  # chance would differ
        return []

    def init(key: Array) -> EnvState:
        return jax.tree.map(lambda x: jnp.stack([x] * len(table)), environment.init(key))

    same, earns = watch(init, partial(_turned, environment), num_games=NUM_GAMES, max_moves=NUM_MOVES)
    same[1:] &= earns[:-1]  # a move belongs to the position after it
    wrong = {index: np.argmin(each.all(axis=1)) for index, each in enumerate(np.moveaxis(same, -1, 0))}
    return [
        f"symmetry {index} does not commute with moves: after {move} moves the turned game is another one; correct its "
        "permutations, or leave it out"
        for index, move in wrong.items()
        if move  # 0: none is wrong, or already the opening is
    ]


def _turned(environment: Environment, states: EnvState, over: Array, key: Array) -> tuple[EnvState, Array, Any]:
    """One random move under all S symmetries at once; whether each position, and step, is the turned one: [S]."""
    assert environment.board is not None
    tables = environment.board.symmetries
    observation = jax.vmap(environment.observe)(states)
    legal = jax.vmap(environment.legal)(states)
    actions = jnp.asarray(tables.action_permutation)[:, random_action(key, legal[0])]
    step = jax.vmap(environment.move, (0, 0, None))(states, actions, key)
    indices = jnp.arange(len(actions))
    seen = jax.vmap(partial(transform_observation, tables), (0, None))(indices, observation[0])
    allowed = jax.vmap(partial(transform_policy, tables), (0, None))(indices, legal[0])
    same = jax.vmap(equal)((observation, legal), (seen, allowed))
    earns = (step.reward == step.reward[0]) & (step.discount == step.discount[0])
    return step.state, step.is_last[0], (same | over, earns | over)


def chance(environment: Environment) -> list[str]:
    """Faults of the listed chance, a sentence each; empty for a game without it."""
    if environment.chance is None:
        return []
    state = jax.eval_shape(environment.init, jax.random.key(0))
    if jax.eval_shape(environment.move, state, jnp.int32(0), jax.random.key(0)).outcome is None:
        return [
            "move does not say in Step.outcome what chance did; let muzero_jax.games.chance.make_chance_move(chance) "
            "make it"
        ]
    said = watch(environment.init, partial(_answered, environment), num_games=NUM_GAMES, max_moves=NUM_MOVES)
    acts = said["acts"]
    rules = {
        "the outcomes' probabilities sum to {total:g} after a move, and the lowest is {lowest:g}; make them sum to 1, "
        "and none negative": acts & ~((np.abs(said["total"] - 1) <= ROUNDING) & (said["lowest"] >= 0)),
        "chance.move gives the discount {discount:g} before chance acts; it must be 1 there, because the sign and the "
        "end come from chance.resolve": acts & (said["discount"] != 1),
        "the state before chance acts belongs to another player than the one who moved; let chance.resolve hand the "
        "turn over": acts & said["changes_player"],
        "move differs from chance.move followed by chance.resolve with an outcome that is possible; make both one "
        "game, or let muzero_jax.games.chance.make_chance_move(chance) make move": ~said["is_joined"],
    }
    return broken(rules, said)


def _answered(environment: Environment, state: EnvState, over: Array, key: Array) -> tuple[EnvState, Array, dict]:
    """One random move, and the quantities that `chance` checks."""
    chance = environment.chance
    choice_key, move_key = jax.random.split(key)
    assert chance is not None
    action = random_action(choice_key, environment.legal(state))
    after = chance.move(state, action)
    step = environment.move(state, action, move_key)
    weights = chance.probabilities(after.state)
    whole = with_outcome(chance, after, jnp.asarray(step.outcome))
    likelihood = jnp.where(after.awaits_chance, weights[jnp.clip(step.outcome, 0, chance.num_outcomes - 1)], 1.0)
    is_joined = equal(whole._replace(reward=step.reward), step) & (jnp.abs(whole.reward - step.reward) <= ROUNDING)
    said = {
        "acts": after.awaits_chance & ~over,
        "discount": after.discount,
        "total": weights.sum(),
        "lowest": weights.min(),
        "changes_player": state.current_player != after.state.current_player,
        "is_joined": over | is_joined & (likelihood != 0),
    }
    return step.state, step.is_last, said


def view(environment: Environment) -> list[str]:
    """Faults of the view and the notation at the opening, a sentence each."""
    try:
        return list(_of_view(environment, jax.device_get(jax.jit(environment.init)(jax.random.key(0)))))
    except Exception as error:  # the user's functions may raise anything
        return [describe(error, "view or notation")]


def _of_view(environment: Environment, state: EnvState) -> Iterator[str]:
    view = game_of(environment).view
    board = environment.board
    if view.page not in (None, *PAGES):
        yield f"view.page is {view.page!r}, but must be one of {', '.join(PAGES)}; or leave it out"
    if unknown := [ink for ink in view.inks if ink not in INKS]:
        yield f"view.inks has {unknown[0]!r}, but must have two of {', '.join(INKS)}"
    squares = view.squares(state)
    lengths = {len(row) for row in squares}
    if len(lengths) != 1 or 0 in lengths or not all(isinstance(cell, str) for row in squares for cell in row):
        yield "view.squares must return rows of texts, all of one length, such as [['.', 'X'], ['O', '.']]"
    elif view.page and board and (shape := (len(squares), *lengths)) != board.shape:
        yield f"view.squares draws a board of {shape}, but that of the observation is {board.shape}; leave page out"
    if not isinstance(view.caption(state), str):
        yield f"view.caption returns {view.caption(state)!r}, but must return a text"
    notation = make_notation(environment)
    for action in np.flatnonzero(np.asarray(environment.legal(state))).tolist():
        text = notation.write(state, action)
        if (back := notation.read(state, text)) != action:
            yield f"the notation writes action {action} as {text!r} and reads that as action {back}; make both agree"
            return
