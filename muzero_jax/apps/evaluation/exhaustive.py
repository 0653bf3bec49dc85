"""Plays one deterministic player against every possible sequence of replies.

In a small game this is a proof: if no loss is found, no opponent can beat the player. Positions are visited ply by ply
in batches of one compiled size; a position that is reached along several paths counts once.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from muzero_jax.apps.evaluation.batches import first_of_each, in_batches
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.games.catalogue import check_for_two, check_open, check_without_chance
from muzero_jax.games.random_play import check_not_dealt
from muzero_jax.types import Environment, EnvState, Params, Step

MOST_POSITIONS = 500_000
"""The most positions in one ply. Tic-tac-toe and Hex 3x3 stay far below; more would take hours or all memory."""


class WalkResult(NamedTuple):
    """Counts of distinct final moves by result for the player, and of distinct positions in which it moved."""

    wins: int
    draws: int
    losses: int
    positions: int


def walk(
    environment: Environment,
    player: Player,
    params: Params,
    *,
    moves_first: bool,
    say: Callable[[str], None] = lambda line: None,
) -> WalkResult:
    """Plays `player` (deterministic, always given the same key) as one colour against every sequence of replies.

    Args:
      say: called before each ply with a line that has its number of positions.

    Raises:
      ValueError: a game with too many positions, or a player that chooses an illegal move.
    """
    first_player = int(environment.init(jax.random.key(0)).current_player)
    players_id = first_player if moves_first else 1 - first_player
    act = partial(jax.jit(player.act), params, jax.random.key(0))  # compiled once for both colours

    def choose(states: EnvState) -> np.ndarray:
        """The player's own move if it is to move, else all legal moves."""
        say(f"moving {'first' if moves_first else 'second'}: trying {len(states.current_player):,} positions of a ply")
        chosen = np.eye(environment.num_actions, dtype=bool)[in_batches(act, states)]
        moves = np.where((states.current_player == players_id)[:, None], chosen, states.legal_action_mask)
        if (moves & ~states.legal_action_mask).any():
            raise ValueError(f"{player.name} chose an illegal move")
        return moves

    results = Counter[int]()
    positions = 0
    for states, row, step in plies(environment, choose):
        is_players = states.current_player == players_id
        positions += int(is_players.sum())
        outcomes = np.where(is_players[row], step.reward, -step.reward)[step.state.terminated]
        results.update(np.sign(outcomes).astype(int).tolist())
    return WalkResult(results[1], results[0], results[-1], positions)


def plies(
    environment: Environment, choose: Callable[[EnvState], np.ndarray]
) -> Iterator[tuple[EnvState, np.ndarray, Step]]:
    """Ply by ply from the opening: (positions [N, ...], the index of each move's position [M], the moves' steps [M]).

    Args:
      choose: positions [N, ...] -> [N, A] bool, the moves to follow.

    Raises ValueError if a ply has too many positions.
    """
    move = jax.jit(jax.vmap(environment.move))
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], environment.init(jax.random.key(0)))
    while states.terminated.size:
        if states.terminated.size > MOST_POSITIONS:
            raise ValueError(f"{environment.name} has too many positions to try them all; play a match instead")
        row, action = np.nonzero(choose(states))
        step = in_batches(move, _take(states, row), action.astype(np.int32))
        yield states, row, step
        after = _take(step.state, ~step.state.terminated)
        states = _take(after, first_of_each(after.observation))  # within a ply, equal observations mean equal positions


def examine(
    environment: Environment, player: Player, params: Params, say: Callable[[str], None] = lambda line: None
) -> dict[str, Any]:
    """Walks with both colours: a match's fields (`games` are distinct final moves), positions, losses by colour.

    Raises ValueError as `walk` does, and for a single-player game or a game with chance, a deal or hidden information.
    """
    check_for_two(environment, "trying every reply needs")
    check_without_chance(environment, "trying every reply")
    check_open(environment, "trying every reply")
    check_not_dealt(environment, "trying every reply")
    first, second = (walk(environment, player, params, moves_first=first, say=say) for first in (True, False))
    both = WalkResult(*map(sum, zip(first, second, strict=True)))
    games = both.wins + both.draws + both.losses
    return both._asdict() | {
        "games": games,
        "score": (both.wins + both.draws / 2) / games,
        "losses_as_first": first.losses,
        "losses_as_second": second.losses,
    }


def _take(states: EnvState, rows: np.ndarray) -> EnvState:
    return jax.tree.map(lambda leaf: leaf[rows], states)
