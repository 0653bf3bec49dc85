"""An exhaustive walk: every reply by every opponent against one deterministic player.

For a game small enough this is proof, not a sample: if the walk finds no loss, no opponent can beat the player.
Positions are visited ply by ply in batches of one compiled size; one reached along several paths counts once.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from muzero_jax.evaluation.batches import in_batches
from muzero_jax.types import Environment, EnvState, Params, Player

Rows = list[np.ndarray]
"""The leaves of a batch of environment states, on the host."""


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
    leaves, structure = jax.tree.flatten(start)
    call = _batched_calls(environment, player, params, structure, batch_size)

    results = {1: 0, 0: 0, -1: 0}
    positions = 0
    level: Rows = [np.asarray(leaf)[None] for leaf in leaves]
    while level[0].shape[0]:
        if level[0].shape[0] > MOST_POSITIONS:
            raise ValueError(f"{environment.name} has too many positions to try them all; play a match instead")
        states = jax.tree.unflatten(structure, level)
        is_players = np.asarray(states.current_player) == players_id
        actions = call.act(level)
        chosen = np.eye(environment.num_actions, dtype=bool)[actions]
        expanded = np.where(is_players[:, None], chosen, states.legal_action_mask)
        if not np.all(states.legal_action_mask[expanded & is_players[:, None]]):
            raise ValueError(f"{player.name} chose an illegal move")
        positions += int(is_players.sum())
        row, action = np.nonzero(expanded)
        level, reward, terminated = call.move([leaf[row] for leaf in level], action.astype(np.int32))
        for outcome in np.where(is_players[row], reward, -reward)[terminated]:
            results[int(np.sign(outcome))] += 1
        level = _distinct([leaf[~terminated] for leaf in level], structure)
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


class _Calls(NamedTuple):
    act: Callable[[Rows], np.ndarray]
    move: Callable[[Rows, np.ndarray], tuple[Rows, np.ndarray, np.ndarray]]


def _batched_calls(environment: Environment, player: Player, params: Params, structure: Any, batch_size: int) -> _Calls:
    """`act` and `move` over any number of rows, through one compiled batch size."""

    def move(states: EnvState, action):
        moved = jax.vmap(environment.move)(states, action)
        return jax.tree.leaves(moved.state), moved.reward, moved.state.terminated

    compiled_move = jax.jit(lambda rows, action: move(jax.tree.unflatten(structure, rows), action))
    compiled_act = jax.jit(lambda rows: player.act(params, jax.random.key(0), jax.tree.unflatten(structure, rows)))
    return _Calls(
        act=lambda rows: in_batches(compiled_act, batch_size, rows),
        move=lambda rows, action: in_batches(compiled_move, batch_size, rows, action),
    )


def _distinct(rows: Rows, structure: Any) -> Rows:
    """Drops rows that look the same to their mover (at equal ply, equal observations are equal positions)."""
    observation = np.asarray(jax.tree.unflatten(structure, rows).observation)
    if not observation.shape[0]:
        return rows
    _, first = np.unique(observation.reshape(observation.shape[0], -1), axis=0, return_index=True)
    return [leaf[first] for leaf in rows]
