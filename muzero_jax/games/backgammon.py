"""Backgammon: each die that is played is a move of its own, and the next roll is chance's. pgx has the rules.

The player to move goes from point 24 down to 1 and off. A turn has up to four moves, so the same player often moves
again. Chance acts where a turn ends: outcomes are the 21 rolls, in the order of `ROLLS`. The first roll, of two
different dice, comes with the opening. A win is worth 1, a gammon 2 and a backgammon 3.

pgx's rules differ from a tournament's: nobody has to play both dice, or the larger one, where that is possible; a
checker on the bar does not make a gammon a backgammon; there is no doubling cube. Who cannot move must pass, in one of
six actions that are alike.
"""

import itertools
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
from jax import Array
from jaxtyping import Bool, Float, Int
from pgx import backgammon as pgx_rules

from muzero_jax.games import chance
from muzero_jax.games.game import Game
from muzero_jax.games.notation import PASS, named
from muzero_jax.games.view import EMPTY, FIRST, POINTS, SECOND, Checkers, Squares, View

State = Any
"""pgx's own state of this game, with its private fields."""
ROLLS = tuple(itertools.combinations_with_replacement(range(6), 2))
"""The 21 rolls, each die as 0 to 5, the lower one first."""
DICE = np.array(ROLLS, np.int32)
PROBABILITY = np.array([(1 if low == high else 2) / 36 for low, high in ROLLS], np.float32)
PENALTY = 3.0
"""The cost of an illegal move, as in pgx: the most that there is to lose."""
NUM_POINTS, BAR, OFF, DEEPEST = 24, 24, 26, 5
NUM_CHECKERS, MOST = 15, 6
"""Checkers of a player; the most on one point that the view tells apart."""


class Rules:
    """The rules as `chance.ListedRules`. The board is the player's to move: their checkers count above 0."""

    num_players = 2
    num_outcomes = len(ROLLS)

    def __init__(self):
        self._init = pgx.make("backgammon").init

    def init(self, key: Array) -> State:
        """The opening with its first roll. Whoever begins is the first player, so `_turn` is 0."""
        state = self._init(key)
        state = state.replace(_turn=jnp.int32(0))
        return state.replace(observation=observe(state))

    def move(self, state: State, action: Array) -> tuple[State, Array]:
        """Plays one die, or passes; the turn ends with the last die and with a pass."""
        moved = pgx_rules._update_by_action(state.replace(_step_count=state._step_count + 1), action)
        has_won = pgx_rules._is_all_off(moved._board)
        moved = jax.tree.map(partial(jnp.where, has_won), pgx_rules._winning_step(moved), moved)
        moved, is_legal = chance.refuse(state, action, moved.replace(observation=observe(moved)), PENALTY)
        turn_ends = pgx_rules._is_turn_end(moved) | (action // 6 == 0)
        return moved, is_legal & ~has_won & turn_ends

    def probabilities(self, state: State) -> Float[Array, " 21"]:
        """The same after every turn."""
        del state
        return jnp.asarray(PROBABILITY)

    def resolve(self, state: State, outcome: Array) -> State:
        """Turns the board round for the other player, who has rolled the dice."""
        dice = jnp.asarray(DICE)[jnp.clip(outcome, 0, self.num_outcomes - 1)]
        board = pgx_rules._flip_board(state._board)
        turned = state.replace(
            current_player=1 - state.current_player,
            rewards=jnp.zeros_like(state.rewards),
            legal_action_mask=pgx_rules._legal_action_mask(board, dice),
            _board=board,
            _turn=1 - state._turn,
            _dice=dice,
            _playable_dice=pgx_rules._set_playable_dice(dice),
            _played_dice_num=jnp.zeros_like(state._played_dice_num),
        )
        return turned.replace(observation=observe(turned))


def observe(state: State) -> Bool[Array, " 372"]:
    """The position as the player to move sees it, in bools: for each place one "at least k of them" for every k.

    First the mover's checkers and then the other player's, on each of the 24 points, on the bar and off, then how often
    each die may still be played. Beyond `MOST` a stack looks alike. A dense layer reads from bools that a checker is
    alone, where pgx's numbers, which are counts of either sign, hide it (Tesauro 1995 encodes points so, too).
    """
    board, dice = state._board, state._playable_dice
    points = jnp.concatenate([board[:NUM_POINTS], -board[:NUM_POINTS]])
    homes = jnp.stack([board[BAR], board[OFF], -board[BAR + 1], -board[OFF + 1]])
    left = (dice == jnp.arange(6)[:, None]).sum(1)
    levels = ((points, MOST), (homes, NUM_CHECKERS), (left, 4))
    return jnp.concatenate([(counts[:, None] > jnp.arange(most)).ravel() for counts, most in levels])


def pips(board: Int[Array, " 28"]) -> Int[Array, ""]:
    """Points that the checkers counted above 0 still have to go: 24 on the first point, 25 on the bar."""
    distance = jnp.concatenate([jnp.arange(NUM_POINTS, 0, -1), jnp.array([NUM_POINTS + 1])])
    return (jnp.maximum(board[: BAR + 1], 0) * distance).sum()


def mover_points(state: State) -> list[int]:
    """The bar of the player to move, points 1 to 24 as that player counts them, and the other's bar.

    The player's own checkers count above 0, the other's below.
    """
    board = np.asarray(state._board)
    return [int(board[BAR]), *board[:NUM_POINTS][::-1].tolist(), int(board[BAR + 1])]


def turn_begins(state: State) -> Any:
    """Whether none of the dice was played yet: a bool for each of any number of states."""
    return state._played_dice_num == 0


def roll(state: State) -> tuple[int, int] | None:
    """Both dice, 1 to 6, of a turn that has not begun; None within a turn."""
    one, other = (np.asarray(state._dice) + 1).tolist()
    return (one, other) if turn_begins(state) else None


def pip_lead(state: State) -> Float[Array, ""]:
    """By how many pips the player whose checkers count above 0 leads, a thousand of them as one point."""
    board = state._board
    return (pips(pgx_rules._flip_board(board)) - pips(board)) / 1000


def squares(state: State) -> Squares:
    """The board as people draw it, from the first player's side; the bar in the middle, checkers off on the right.

    Points 13 to 24 stand above, 12 to 1 below. At most five checkers of a stack are drawn, then their number.
    """
    board = _first_players(state)
    points = board[:NUM_POINTS][::-1]  # point 1 first
    upper = [*points[12:18], board[25], *points[18:24], board[27]]
    lower = [*points[11:5:-1], board[24], *points[5::-1], board[26]]
    top, bottom = ([_stack(int(count)) for count in counts] for counts in (upper, lower))
    names = [str(point) for point in range(1, NUM_POINTS + 1)]
    return [
        [*names[12:18], "bar", *names[18:], "off"],
        *([stack[depth] for stack in top] for depth in range(DEEPEST)),
        [EMPTY] * len(top),
        *([stack[depth] for stack in bottom] for depth in reversed(range(DEEPEST))),
        [*names[11:5:-1], "bar", *names[5::-1], "off"],
    ]


def _first_players(state: State) -> Int[np.ndarray, " 28"]:
    """The board on which the first player's checkers count above 0, whoever is to move."""
    return np.asarray(pgx_rules._flip_board(state._board) if int(state._turn) else state._board)


def checkers(state: State) -> Checkers:
    """The board by the first player's points, and the dice; of doubles four."""
    board = _first_players(state)
    points, rest = board[:NUM_POINTS][::-1].tolist(), board[NUM_POINTS:].tolist()
    dice, left = ((np.asarray(field) + 1).tolist() for field in (state._dice, state._playable_dice))
    thrown = []
    for die in sorted(dice if dice[0] != dice[1] else 2 * dice, reverse=True):
        thrown.append((die, die in left))
        if die in left:
            left.remove(die)
    return Checkers(tuple(points), (rest[0], -rest[1]), (rest[2], -rest[3]), tuple(thrown))


def _stack(count: int) -> list[str]:
    """A stack from the edge on; the number of checkers that are too many stands on its last."""
    stone, height = FIRST if count > 0 else SECOND, abs(count)
    shown = [stone] * min(height, DEEPEST) + [EMPTY] * (DEEPEST - height)
    return shown if height <= DEEPEST else [*shown[:-1], f"{stone}{height}"]


def move_names() -> list[str]:
    """One checker's move, by the mover's own points: `13/7`, `bar/22`, `4/off`.

    `4/off(6)` bears off by a larger die than is needed.
    """
    passes = [PASS, *(f"{PASS}({die})" for die in range(2, 7))]
    entries = [f"bar/{NUM_POINTS + 1 - die}" for die in range(1, 7)]
    played = [(point, die) for point in range(NUM_POINTS, 0, -1) for die in range(1, 7)]
    targets = [str(at - die) if at > die else "off" if at == die else f"off({die})" for at, die in played]
    return [*passes, *entries, *(f"{at}/{target}" for (at, _), target in zip(played, targets, strict=True))]


def hands(state: State) -> tuple[str, str]:
    """The dice that may still be played, such as `6 1`, beside the player to move."""
    left = sorted(np.asarray(state._playable_dice).tolist(), reverse=True)
    dice = " ".join(str(die + 1) for die in left if die >= 0)
    return (dice, "") if int(state._turn) == 0 else ("", dice)


BACKGAMMON = Game(
    "backgammon",
    "Backgammon",
    goal="Bring your checkers home, from point 24 down to 1, and off the board before the other player does.",
    rules=lambda board_size: Rules(),
    notation=named(move_names()),
    view=View(
        squares,
        hands=hands,
        hands_title="dice",
        colours=("X", "O"),
        inks=("red", "blue"),
        page=POINTS,
        checkers=checkers,
    ),
    turns_alternate=False,
    same_as=dict.fromkeys(range(1, 6), 0),
    protocol="gnubg",
    worth=pip_lead,
)
