"""An exhaustive walk: every reply by every opponent against one deterministic player.

For a game small enough this is proof, not a sample: if the walk finds no loss, no opponent can beat the player.
Positions are visited ply by ply in batches of one compiled size; one reached along several paths counts once.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from muzero_jax.evaluation.batches import in_batches
from muzero_jax.types import Environment, EnvState, Params, Player

MOST_POSITIONS = 500_000
"""Of one ply. Tic-tac-toe and Hex 3x3 stay far below; anything larger would take hours or all memory."""


class WalkResult(NamedTuple):
    """Distinct final moves by their result for the player, and the distinct positions in which it had to move."""

    wins: int
    draws: int
    losses: int
    positions: int


def walk(
    environment: Environment, player: Player, params: Params, *, moves_first: bool, batch_size: int = 256
) -> WalkResult:
    """Plays `player` (deterministic, asked with one fixed key) as one colour against every sequence of replies.

    Args:
      batch_size: positions per compiled call; changes speed only.

    Raises:
      ValueError: a game with too many positions, or a player that chooses an illegal move.
    """
    start = environment.init(jax.random.key(0))
    players_id = int(start.current_player) if moves_first else 1 - int(start.current_player)
    act = jax.jit(lambda states: player.act(params, jax.random.key(0), states))
    move = jax.jit(jax.vmap(environment.move))

    results = {1: 0, 0: 0, -1: 0}
    positions = 0
    states = jax.tree.map(lambda leaf: np.asarray(leaf)[None], start)
    while states.terminated.size:
        if states.terminated.size > MOST_POSITIONS:
            raise ValueError(f"{environment.name} has too many positions to try them all; play a match instead")
        is_players = states.current_player == players_id
        chosen = np.eye(environment.num_actions, dtype=bool)[in_batches(act, batch_size, states)]
        expanded = np.where(is_players[:, None], chosen, states.legal_action_mask)
        if not np.all(states.legal_action_mask[expanded & is_players[:, None]]):
            raise ValueError(f"{player.name} chose an illegal move")
        positions += int(is_players.sum())
        row, action = np.nonzero(expanded)
        after, reward, *_ = in_batches(move, batch_size, _take(states, row), action.astype(np.int32))
        for outcome in np.where(is_players[row], reward, -reward)[after.terminated]:
            results[int(np.sign(outcome))] += 1
        states = _distinct(_take(after, ~after.terminated))
    return WalkResult(results[1], results[0], results[-1], positions)


def examine(environment: Environment, player: Player, params: Params) -> dict[str, Any]:
    """Walks as either colour: a match's fields, where `games` are distinct final moves; losses by colour, positions."""
    first, second = (walk(environment, player, params, moves_first=moves_first) for moves_first in (True, False))
    wins, draws, losses, positions = (sum(counts) for counts in zip(first, second, strict=True))
    games = wins + draws + losses
    return {
        "wins": wins,
        "draws": draws,
        "losses": losses,
        "games": games,
        "score": (wins + draws / 2) / games,
        "losses_as_first": first.losses,
        "losses_as_second": second.losses,
        "positions": positions,
    }


def _take(states: EnvState, rows: np.ndarray) -> EnvState:
    return jax.tree.map(lambda leaf: leaf[rows], states)


def _distinct(states: EnvState) -> EnvState:
    """Drops rows that look the same to their mover (at equal ply, equal observations are equal positions)."""
    if not states.terminated.size:
        return states
    observation = states.observation.reshape(states.terminated.size, -1)
    return _take(states, np.unique(observation, axis=0, return_index=True)[1])
