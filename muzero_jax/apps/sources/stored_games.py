"""Games from files as a replay buffer: played through by the rules, and packed into columns.

A window of L frames never runs past the newest frame, so no window starts in the last L - 1 frames of a column. Columns
are therefore L - 1 frames longer than their games, and the rest of each is filled by repeating its own games.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from muzero_jax.games import catalogue
from muzero_jax.games.game_files import StoredGame
from muzero_jax.games.notation import Notation, Read, numbers
from muzero_jax.learning import replay
from muzero_jax.own.faults import shown
from muzero_jax.types import Environment, EnvState, ReplayState, Transition

BATCH = 256
"""Games that are played at once."""
NUM_STARTS = 16
"""The fewest openings that are compared to see whether they depend on the key."""
SEATS = "current_player", "_player_order"
"""Fields that pgx draws at random in every game: which player id moves first. Positions do not depend on them."""
COLOURS = "the first player", "the second player"


def play(environment: Environment, games: list[StoredGame], *, keeps_state: bool) -> Transition:
    """The frames of all games, one game after the other, as the buffer stores them: NumPy leaves [F, ...].

    A frame's policy is one-hot at the move that was played, its value the return from there for the player to move. A
    game that the rules did not end counts as truncated: its values contain no more than the rewards of its moves.

    Raises ValueError for a game with chance, and for an illegal move, with its file, game and number.
    """
    notation = catalogue.make_notation(environment)
    size = min(BATCH, max(NUM_STARTS, len(games)))
    if other := next((game for game in games if game.size not in (None, len(notation.columns))), None):
        raise ValueError(f"{other.name}: its board has size {other.size}, not {len(notation.columns)}")
    init = jax.jit(lambda: jax.vmap(environment.init)(jax.random.split(jax.random.key(0), size)))
    step = jax.jit(partial(_step, environment=environment, keeps_state=keeps_state))
    states = jax.device_get(init())
    _check_without_chance(environment, states)
    opening = jax.tree.map(lambda x: x[0], states)
    read_text = _with_numbers(notation, opening, np.flatnonzero(environment.legal(opening)), environment.num_actions)
    read = partial(_read, notation=notation, read_text=read_text, num_actions=environment.num_actions)
    batches = [games[start : start + size] for start in range(0, len(games), size)]
    frames = [_play_batch(batch, states, step, read) for batch in batches]
    return jax.tree.map(lambda *parts: np.concatenate(parts), *frames)


def _check_without_chance(environment: Environment, states: EnvState) -> None:
    """Raises ValueError if moves depend on their key, or the `states` after `init` (of different keys) differ.

    A file does not hold the keys, so its games would be replayed with other dice.
    """
    if catalogue.needs_key(environment):
        raise _has_chance(environment, "a move draws from its key")
    for path, leaf in jax.tree_util.tree_leaves_with_path(states):
        if getattr(path[-1], "name", "") not in SEATS and not _all_alike(leaf):
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            raise _has_chance(environment, f"its opening's {name} depends on the key of init")


def _has_chance(environment: Environment, where: str) -> ValueError:
    return ValueError(
        f"{environment.name} has chance ({where}), and a file of moves does not contain its outcomes; learn from "
        "the folder of a run, whose replay buffer has them"
    )


def _all_alike(leaf: Any) -> bool:
    """Whether all rows [G, ...] of a leaf are equal; always False for random keys."""
    return not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) and bool((leaf == leaf[:1]).all())


def _with_numbers(notation: Notation, opening: EnvState, legal: Int[np.ndarray, " M"], num_actions: int) -> Read:
    """A reader of the game's notation and also of action numbers, unless the notation itself writes moves in digits."""
    read_number = numbers(num_actions)[1]
    if any(notation.write(opening, int(action)).isdecimal() for action in legal):
        return notation.read
    return lambda state, text: (read_number if text.isdecimal() else notation.read)(state, text)


def _step(
    states: EnvState, actions: Int[jax.Array, "G"], *, environment: Environment, keeps_state: bool
) -> tuple[EnvState, Transition, Bool[jax.Array, "G"]]:
    """One move of each game: the states after it, its frame with the value still open, and whether it was legal."""
    roots = environment.roots(states)
    num_games, num_actions = roots.legal_action_mask.shape
    moved = jax.vmap(environment.move)(states, actions, jax.random.split(jax.random.key(0), num_games))
    frame = Transition(
        observation=roots.observation,
        legal_action_mask=roots.legal_action_mask,
        action=actions,
        reward=moved.reward,
        discount=moved.discount,
        is_last=moved.is_last,
        search_policy=jax.nn.one_hot(actions, num_actions),
        search_value=jnp.zeros(num_games),
        explored=jnp.zeros(num_games, bool),
        state=states if keeps_state else None,
    )
    is_legal = jnp.take_along_axis(roots.legal_action_mask, actions[:, None], axis=1)[:, 0]
    return moved.state, replay.pack(frame), is_legal


def _play_batch(games: list[StoredGame], states: EnvState, step: Callable, read: Callable) -> Transition:
    """The frames of at most as many games as there are states; the moves of surplus states are discarded."""
    frames = []
    is_over = np.zeros(len(games), bool)
    to_move = np.zeros(len(games), int)
    lengths = np.array([len(game.moves) for game in games])
    for ply in range(lengths.max()):
        actions = np.zeros(len(jax.tree.leaves(states)[0]), np.int32)
        playing = np.flatnonzero(lengths > ply)
        for index in playing:
            _check_turn(games[index], ply, to_move=int(to_move[index]), is_over=bool(is_over[index]))
            actions[index] = read(games[index], ply, jax.tree.map(lambda x, i=index: x[i], states))
        states, frame, is_legal = jax.device_get(step(states, actions))
        for index in playing[~is_legal[playing]]:
            raise _refusal(games[index], ply, "the rules do not allow it there")
        is_over |= frame.is_last[: len(games)]
        to_move = np.where(frame.discount[: len(games)] < 0, 1 - to_move, to_move)
        frames.append(jax.tree.map(lambda x: x[: len(games)], frame))
    return _joined(jax.tree.map(lambda *plies: np.stack(plies), *frames), lengths)


def _check_turn(game: StoredGame, ply: int, *, to_move: int, is_over: bool) -> None:
    if is_over:
        raise _refusal(game, ply, "the game is over before it")
    if game.colours is not None and game.colours[ply] != to_move:
        raise _refusal(game, ply, f"it is the turn of {COLOURS[to_move]}")


def _read(game: StoredGame, ply: int, state: EnvState, *, notation: Notation, read_text: Read, num_actions: int) -> int:
    """The action of a move: read by `read_sgf` for SGF files if the game has it, else by `read_text`."""
    text = game.moves[ply]
    try:
        action = notation.read_sgf(text) if game.is_sgf and notation.read_sgf else read_text(state, text)
    except ValueError as error:
        raise _refusal(game, ply, str(error)) from None
    if not 0 <= action < num_actions:  # a user's own notation may return such a number
        raise _refusal(game, ply, "the game has no such move")
    return action


def _refusal(game: StoredGame, ply: int, reason: str) -> ValueError:
    return ValueError(
        f"{game.name}, move {ply + 1} ({shown(game.moves[ply])}): {reason}; correct the file or remove the game"
    )


def _joined(frames: Transition, lengths: Int[np.ndarray, "G"]) -> Transition:
    """Frames [T, G, ...] as [F, ...], one game after the other, with `is_last` and values filled in."""
    playing = np.arange(len(frames.action))[:, None] < lengths
    is_end = np.arange(len(frames.action))[:, None] == lengths - 1
    values = returns(np.asarray(frames.reward), np.asarray(frames.discount), playing)
    frames = frames._replace(is_last=frames.is_last | is_end, search_value=values)
    game, ply = np.nonzero(playing.T)
    return jax.tree.map(lambda x: x[ply, game], frames)


def returns(
    reward: Float[np.ndarray, "T G"], discount: Float[np.ndarray, "T G"], playing: Bool[np.ndarray, "T G"]
) -> Float[np.ndarray, "T G"]:
    """G_t = r_{t+1} + d_{t+1} G_{t+1} of games [T, G]; 0 after a game's end, where `playing` is False."""
    values = np.zeros((len(reward) + 1, *reward.shape[1:]), np.float32)
    for ply in reversed(range(len(reward))):
        values[ply] = np.where(playing[ply], reward[ply] + discount[ply] * values[ply + 1], 0.0)
    return values[:-1]


def assign_columns(lengths: list[int], num_columns: int) -> list[list[int]]:
    """The games of each column: each goes to the shortest column so far. Games repeat if there are more columns."""
    columns: list[list[int]] = [[] for _ in range(num_columns)]
    filled = np.zeros(num_columns, int)
    for turn in range(max(len(lengths), num_columns)):
        column, game = int(filled.argmin()), turn % len(lengths)
        columns[column].append(game)
        filled[column] += lengths[game]
    return columns


def lay_out(frames: Transition, lengths: list[int], *, num_columns: int, replay_length: int) -> ReplayState:
    """A full buffer of the frames [F, ...]; each column is filled up by repeating its own games.

    The last repetition may be cut off in the middle, which is safe because no window runs past the newest frame.
    """
    first = np.cumsum(lengths) - lengths
    columns = [
        np.concatenate([np.arange(first[game], first[game] + lengths[game]) for game in column])
        for column in assign_columns(lengths, num_columns)
    ]
    index = np.stack([np.resize(column, replay_length) for column in columns], axis=1)
    transitions = jax.tree.map(lambda x: x[index], frames)
    return ReplayState(transitions, insert_index=np.int32(0), num_stored=np.int32(replay_length))  # type: ignore
