"""Promises of an environment that random games alone do not show, each kept or broken in a sentence.

Its functions depend on their arguments alone. Its symmetries commute with moves: a game played on a turned board by the
turned moves is the turned game. Its listed chance, on which a search branches, is the chance by which self-play moves.
Its positions can be drawn and its moves written, which training needs not, so a mistake there would show itself only in
play.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from muzero_jax.games.catalogue import game_of, make_notation
from muzero_jax.games.chance import joined
from muzero_jax.games.random_play import equal
from muzero_jax.games.states import missing_fields
from muzero_jax.games.view import INKS, PAGES
from muzero_jax.learning.symmetries import transform_observation, transform_policy
from muzero_jax.own.faults import describe
from muzero_jax.types import Environment, EnvState, Symmetries

NUM_GAMES, NUM_MOVES = 8, 48
ROUNDING = 1e-4
Rules = dict[str, Any]
"""Where moves break a rule, by the sentence for the first of them, in which fields of their record stand in braces."""


def broken(rules: Rules, record: dict[str, Any]) -> list[str]:
    """The sentences of the rules that are broken somewhere, of the first such place in the arrays of `record`."""
    firsts = {sentence: tuple(np.argwhere(where)[0]) for sentence, where in rules.items() if np.any(where)}
    return [
        sentence.format(move=at[0], **{name: leaf[at] for name, leaf in record.items()})
        for sentence, at in firsts.items()
    ]


# --- functions of their arguments alone -------------------------------------------------------------------------------


def purity(environment: Environment) -> list[str]:
    """A function that says something else when it is compiled again."""

    def game(key: Array) -> dict[str, Any]:
        def move(state, key):
            mask = environment.legal(state)
            step = environment.move(state, _random_action(key, mask), key)
            return step.state, {"legal": mask, "observe": environment.observe(state), "move": step}

        state = environment.init(key)
        return {"init": state} | jax.lax.scan(move, state, jax.random.split(key, NUM_GAMES))[1]

    one, other = (jax.jit(lambda key: game(key))(jax.random.key(0)) for _ in range(2))
    differing = [name for name in ("init", "legal", "observe", "move") if not equal(one[name], other[name])]
    return [
        f"{name} gives different results for the same arguments; let it depend on them alone, and draw chance from the "
        "key"
        for name in differing[:1]
    ]


# --- symmetries -------------------------------------------------------------------------------------------------------


def symmetries(environment: Environment) -> list[str]:
    """Symmetries of the board that are none of the rules; those that change the opening itself are not looked at."""
    if environment.board is None:
        return []
    tables = environment.board.symmetries
    for name in ("action_permutation", "observation_permutation"):
        table = np.asarray(getattr(tables, name))
        numbers = np.arange(table.shape[1])
        if not (table[0] == numbers).all() or np.any(tables.observation_flip[0]):
            return ["symmetry 0 is not the identity; put the identity first"]
        if wrong := [index for index, row in enumerate(table) if not (np.sort(row) == numbers).all()]:
            return [f"{name} of symmetry {wrong[0]} is no permutation; name each number from 0 on once"]
    if len(tables.action_permutation) == 1:
        return []
    if environment.chance is not None:
        return ["a symmetry would have to turn what chance does as well, which no table says; leave symmetries out"]
    same = jax.device_get(jax.jit(jax.vmap(partial(_play_turned, environment, tables)))(_keys(NUM_GAMES)))
    problems = []
    for index in range(1, len(tables.action_permutation)):
        held = {name: each[..., index].all(axis=0) for name, each in same.items()}  # [T]
        wrong = [(int(np.argmin(each)), name) for name, each in held.items() if not each.all()]
        if wrong and held["the observation"][0] and held["what is legal"][0]:
            move, name = min(wrong)
            problems.append(
                f"symmetry {index} does not commute with moves: {name} differs after {move} moves; correct its "
                "permutations, or leave it out"
            )
    return problems


def _play_turned(environment: Environment, tables: Symmetries, key: Array) -> dict[str, Array]:
    """A random game under all S symmetries at once: whether each position and move is the turned one, [T, S]."""
    indices = jnp.arange(len(tables.action_permutation))

    def move(carry, key):
        states, over = carry
        observation, legal = jax.vmap(environment.observe)(states), jax.vmap(environment.legal)(states)
        actions = jnp.asarray(tables.action_permutation)[:, _random_action(key, legal[0])]
        step = jax.vmap(environment.move, (0, 0, None))(states, actions, key)
        turned = jax.vmap(partial(transform_observation, tables), (0, None))(indices, observation[0])
        turned_legal = jax.vmap(partial(transform_policy, tables), (0, None))(indices, legal[0])
        same = {
            "the observation": jax.vmap(equal)(observation, turned),
            "what is legal": jax.vmap(equal)(legal, turned_legal),
            "the reward": step.reward == step.reward[0],
            "the discount": step.discount == step.discount[0],
        }
        return (step.state, over | step.is_last[0]), jax.tree.map(lambda x: x | over, same)

    start_key, play_key = jax.random.split(key)
    start = jax.tree.map(lambda x: jnp.stack([x] * len(indices)), environment.init(start_key))
    return jax.lax.scan(move, (start, jnp.bool_(False)), jax.random.split(play_key, NUM_MOVES))[1]


# --- chance -----------------------------------------------------------------------------------------------------------


def chance(environment: Environment) -> list[str]:
    """The faults of an environment's listed chance, a sentence each; none in a game without it."""
    if environment.chance is None:
        return []
    state = jax.eval_shape(environment.init, jax.random.key(0))
    if jax.eval_shape(environment.move, state, jnp.int32(0), jax.random.key(0)).outcome is None:
        return [
            "move does not say in Step.outcome what chance did; let muzero_jax.games.chance.make_move(chance) make it"
        ]
    said = jax.device_get(jax.jit(jax.vmap(partial(_play_chance, environment)))(_keys(NUM_GAMES)))
    played, acts = ~said["over"], said["awaits_chance"] & ~said["over"]
    rules = {
        "the outcomes' probabilities sum to {total:g} after a move, and the lowest is {lowest:g}; make them sum to 1, "
        "and none negative": acts & ~((np.abs(said["total"] - 1) <= ROUNDING) & (said["lowest"] >= 0)),
        "chance.move gives the discount {discount:g} before chance acts; it must be 1 there, for chance.resolve gives "
        "the sign and the end": acts & (said["discount"] != 1),
        "the state before chance acts belongs to another player than the one who moved; let chance.resolve hand the "
        "turn over": acts & said["changes_player"],
        "move drew an outcome that chance.probabilities calls impossible; make both agree": (
            acts & (said["likelihood"] == 0)
        ),
        "move differs from chance.move followed by chance.resolve with the same outcome; make both one game, or let "
        "muzero_jax.games.chance.make_move(chance) make move": played & ~said["is_joined"],
    }
    return broken(rules, said)


def _play_chance(environment: Environment, key: Array) -> dict[str, Array]:
    """A random game: what chance says of each of its moves, [T] each."""
    chance = environment.chance
    assert chance is not None

    def move(carry: tuple[EnvState, Array], key: Array):
        (state, over), (choice_key, move_key) = carry, jax.random.split(key)
        action = _random_action(choice_key, environment.legal(state))
        after, step = chance.move(state, action), environment.move(state, action, move_key)
        outcome, weights = jnp.asarray(step.outcome), chance.probabilities(after.state)
        whole = joined(chance, after, outcome)
        player, next_player = (getattr(each, "current_player", jnp.int32(0)) for each in (state, after.state))
        is_joined = equal(whole.state, step.state) & (jnp.abs(whole.reward - step.reward) <= ROUNDING)
        return (step.state, over | step.is_last), {
            "over": over,  # before the move
            "awaits_chance": after.awaits_chance,
            "total": weights.sum(),
            "lowest": weights.min(),
            "discount": after.discount,
            "changes_player": player != next_player,
            "likelihood": weights[jnp.clip(outcome, 0, chance.num_outcomes - 1)],
            "is_joined": is_joined & (whole.discount == step.discount) & (whole.outcome == outcome),
        }

    start_key, play_key = jax.random.split(key)
    start = environment.init(start_key), jnp.bool_(False)
    return jax.lax.scan(move, start, jax.random.split(play_key, NUM_MOVES))[1]


# --- what a person sees -----------------------------------------------------------------------------------------------


def view(environment: Environment) -> list[str]:
    """Faults of the view and the notation in the opening, a sentence each."""
    state = jax.eval_shape(environment.init, jax.random.key(0))
    if missing_fields(state):
        return []  # loading the file gives such states their fields
    try:
        return list(_of_view(environment, jax.device_get(jax.jit(environment.init)(jax.random.key(0)))))
    except Exception as error:  # whatever somebody's functions raise
        return [describe(error, "view or notation")]


def _of_view(environment: Environment, state: EnvState) -> Iterator[str]:
    view, board = game_of(environment).view, environment.board
    if view.page is not None and view.page not in PAGES:
        yield f"view.page is {view.page!r}, but must be one of {', '.join(PAGES)}; or leave it out"
    if unknown := [ink for ink in view.inks if ink not in INKS]:
        yield f"view.inks has {unknown[0]!r}, but must have two of {', '.join(INKS)}"
    squares = view.squares(state)
    lengths = {len(row) for row in squares}
    if len(lengths) != 1 or 0 in lengths or not all(isinstance(cell, str) for row in squares for cell in row):
        yield "view.squares must return rows of texts, all of one length, such as [['.', 'X'], ['O', '.']]"
    elif view.page and board and (shape := (len(squares), *lengths)) != board.shape:
        yield f"view.squares draws a board of {shape}, but that of the observation is {board.shape}; leave page out"
    notation = make_notation(environment)
    for action in np.flatnonzero(np.asarray(environment.legal(state))).tolist():
        text = notation.write(state, action)
        if (back := notation.read(state, text)) != action:
            yield f"the notation writes action {action} as {text!r} and reads that as action {back}; make both agree"
            return


def _keys(count: int) -> Array:
    return jax.random.split(jax.random.key(0), count)


def _random_action(key: Array, mask: Array) -> Array:
    """A legal action, or 0 where there is none."""
    return jnp.argmax(jnp.where(mask, jax.random.uniform(key, mask.shape), -1.0)).astype(jnp.int32)
