"""Backgammon, with pgx's rules: playing one die is one move, and the next roll is chance's.

The player to move goes from point 24 down to 1 and off. A turn has up to four moves, so the same player often moves
again. Chance acts at the end of a turn: its outcomes are the 21 rolls, in the order of `ROLLS`. The first roll, of two
different dice, belongs to the opening position. A win is worth 1, a gammon 2 and a backgammon 3.

pgx's rules differ from a tournament's: a player need not play both dice, or the larger one, when that is possible; a
checker on the bar does not make a gammon a backgammon; there is no doubling cube. A player who cannot move must pass,
for which there are six equal actions.
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
"""The cost of an illegal move, as in pgx: the largest possible loss."""
NUM_POINTS = 24
BAR = 24
OFF = 26
DEEPEST = 5
NUM_CHECKERS, MOST = 15, 6
"""Checkers of a player; in an observation, stacks of this many checkers or more look alike."""


class BackgammonRules:
    """The rules as `chance.ListedRules`. On the board, checkers of the player to move are positive numbers."""

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
        """Plays one die or passes; the last die and a pass end the turn, so that chance acts."""
        moved = pgx_rules._update_by_action(state.replace(_step_count=state._step_count + 1), action)
        has_won = pgx_rules._is_all_off(moved._board)
        moved = jax.tree.map(partial(jnp.where, has_won), pgx_rules._winning_step(moved), moved)
        moved, is_legal = chance.refuse(state, action, moved.replace(observation=observe(moved)), PENALTY)
        turn_ends = pgx_rules._is_turn_end(moved) | (action // 6 == 0)
        return moved, is_legal & ~has_won & turn_ends

    def probabilities(self, state: State) -> Float[Array, " 21"]:
        """The probabilities of the 21 rolls, the same after every turn."""
        del state
        return jnp.asarray(PROBABILITY)

    def resolve(self, state: State, outcome: Array) -> State:
        """Gives the turn, with the dice of `outcome`, to the other player, and flips the board for that player."""
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
    """The position as the player to move sees it: for each place and each k, a bool "at least k checkers".

    In order: the mover's and the opponent's checkers on the 24 points, both players' on the bar and off, and how often
    each die may still be played. Stacks of `MOST` or more look alike. Bools let a dense layer tell one checker from
    two, which pgx's signed counts make hard (Tesauro 1995 is similar).
    """
    board = state._board
    dice = state._playable_dice
    points = jnp.concatenate([board[:NUM_POINTS], -board[:NUM_POINTS]])
    homes = jnp.stack([board[BAR], board[OFF], -board[BAR + 1], -board[OFF + 1]])
    left = (dice == jnp.arange(6)[:, None]).sum(1)
    levels = ((points, MOST), (homes, NUM_CHECKERS), (left, 4))
    return jnp.concatenate([(counts[:, None] > jnp.arange(most)).ravel() for counts, most in levels])


def pips(board: Int[Array, " 28"]) -> Int[Array, ""]:
    """Pip count of the player whose checkers are positive: 24 for a checker on the first point, 25 on the bar."""
    distance = jnp.concatenate([jnp.arange(NUM_POINTS, 0, -1), jnp.array([NUM_POINTS + 1])])
    return (jnp.maximum(board[: BAR + 1], 0) * distance).sum()


def mover_points(state: State) -> list[int]:
    """The bar of the player to move, points 1 to 24 as that player counts them, and the opponent's bar.

    The player's own checkers are positive numbers, the opponent's negative.
    """
    board = np.asarray(state._board)
    return [int(board[BAR]), *board[:NUM_POINTS][::-1].tolist(), int(board[BAR + 1])]


def turn_begins(state: State) -> Any:
    """Whether no die of the turn was played yet, as a bool for each state of a batch of any shape."""
    return state._played_dice_num == 0


def roll(state: State) -> tuple[int, int] | None:
    """Both dice, 1 to 6, of a turn that has not begun; None within a turn."""
    one, other = (np.asarray(state._dice) + 1).tolist()
    return (one, other) if turn_begins(state) else None


def pip_lead(state: State) -> Float[Array, ""]:
    """The lead in pips of the player whose checkers are positive, divided by 1000."""
    board = state._board
    return (pips(pgx_rules._flip_board(board)) - pips(board)) / 1000


def squares(state: State) -> Squares:
    """The board from the first player's side, with the bar in the middle and the checkers off on the right.

    Points 13 to 24 are at the top, 12 to 1 at the bottom. A stack of more than five checkers shows its height.
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
    """The board with the first player's checkers as positive numbers, whoever is to move."""
    return np.asarray(pgx_rules._flip_board(state._board) if int(state._turn) else state._board)


def checkers(state: State) -> Checkers:
    """The board, numbered as the first player counts it, and the dice: two, or four for a double."""
    board = _first_players(state)
    points = board[:NUM_POINTS][::-1].tolist()
    rest = board[NUM_POINTS:].tolist()
    dice, left = ((np.asarray(field) + 1).tolist() for field in (state._dice, state._playable_dice))
    thrown = []
    for die in sorted(dice if dice[0] != dice[1] else 2 * dice, reverse=True):
        thrown.append((die, die in left))
        if die in left:
            left.remove(die)
    return Checkers(tuple(points), (rest[0], -rest[1]), (rest[2], -rest[3]), tuple(thrown))


def _stack(count: int) -> list[str]:
    """A stack, from the edge of the board inwards; if it is too high to be drawn, its last cell shows its height."""
    stone = FIRST if count > 0 else SECOND
    height = abs(count)
    shown = [stone] * min(height, DEEPEST) + [EMPTY] * (DEEPEST - height)
    return shown if height <= DEEPEST else [*shown[:-1], f"{stone}{height}"]


def move_names() -> list[str]:
    """The name of every action, by the mover's own points: `13/7`, `bar/22`, `4/off`, `pass`.

    `4/off(6)` bears off with a larger die than needed.
    """
    passes = [PASS, *(f"{PASS}({die})" for die in range(2, 7))]
    entries = [f"bar/{NUM_POINTS + 1 - die}" for die in range(1, 7)]
    played = [(point, die) for point in range(NUM_POINTS, 0, -1) for die in range(1, 7)]
    targets = [str(at - die) if at > die else "off" if at == die else f"off({die})" for at, die in played]
    return [*passes, *entries, *(f"{at}/{target}" for (at, _), target in zip(played, targets, strict=True))]


def hands(state: State) -> tuple[str, str]:
    """For each player, the dice that may still be played, such as `6 1`; empty for the player who waits."""
    left = sorted(np.asarray(state._playable_dice).tolist(), reverse=True)
    dice = " ".join(str(die + 1) for die in left if die >= 0)
    return (dice, "") if int(state._turn) == 0 else ("", dice)


BACKGAMMON = Game(
    "backgammon",
    "Backgammon",
    goal="Bring your checkers home, from point 24 down to 1, and off the board before the other player does.",
    rules=lambda board_size: BackgammonRules(),
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
    is_for_points=True,
    same_as=dict.fromkeys(range(1, 6), 0),
    protocol="gnubg",
    worth=pip_lead,
)
