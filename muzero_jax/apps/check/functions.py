"""Two promises of an environment that random games alone do not show, each kept or broken in a sentence.

Its functions depend on their arguments alone, so that the compiled program and plain Python say the same. Its
symmetries commute with moves: a game played on a turned board by the turned moves is the turned game.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from muzero_jax.own.faults import describe
from muzero_jax.types import Environment, Symmetries

MOVES_TO_REPEAT = 3
NUM_GAMES, MOST_MOVES = 4, 48
"""Games that are played under every symmetry, and for how long."""


class TurnedGames(NamedTuple):
    """T moves of N random games, each played under all G symmetries at once by the turned moves."""

    observation: Array  # [T, N, G, *obs], before the move
    legal: Array  # [T, N, G, A], before the move
    reward: Array  # [T, N, G]
    discount: Array  # [T, N, G]
    over: Array  # [T, N], the game had ended before the move


def purity(environment: Environment) -> list[str]:
    """Functions that give other results for the same arguments, or other results compiled than as they are."""
    found: list[str] = []

    def ask(name: str, function: Callable, *arguments: Any) -> Any:
        try:
            answers = [function(*arguments), function(*arguments), jax.jit(lambda *a: function(*a))(*arguments)]
        except Exception as error:  # whatever somebody's rules raise
            found.append(describe(error, name))
            return None
        if not all(_alike(answers[0], other) for other in answers[1:]):
            found.append(
                f"{name} gives different results for the same arguments; let it depend on them alone, and draw chance "
                "from the key"
            )
        return answers[-1]

    state, count = ask("init", environment.init, jax.random.key(0)), 0
    while not found and count < MOVES_TO_REPEAT:
        mask = ask("legal", environment.legal, state)
        ask("observe", environment.observe, state)
        if found or not np.any(mask):
            break
        action = jnp.int32(np.flatnonzero(mask)[-1])
        step = ask("move", environment.move, state, action, jax.random.fold_in(jax.random.key(0), count))
        state, count = (None, MOVES_TO_REPEAT) if found or step.is_last else (step.state, count + 1)
    return found


def _alike(one: Any, other: Any) -> bool:
    """Whether two results are equal, but for rounding."""
    if jax.tree.structure(one) != jax.tree.structure(other):
        return False
    pairs = zip(*(map(_numbers, jax.tree.leaves(tree)) for tree in (one, other)), strict=True)
    return all(x.shape == y.shape and np.allclose(x, y, rtol=1e-4, atol=1e-5, equal_nan=True) for x, y in pairs)


def _numbers(leaf: Any) -> np.ndarray:
    is_key = jnp.issubdtype(jnp.asarray(leaf).dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf).astype(float)


def symmetries(environment: Environment) -> list[str]:
    """Symmetries of the board that are none of the rules; those that change the opening itself are not looked at."""
    if environment.board is None:
        return []
    tables = jax.device_get(environment.board.symmetries)
    problems, num_symmetries = _malformed(tables), len(tables.action_permutation)
    if problems or num_symmetries == 1:
        return problems
    if environment.chance is not None:
        return ["a symmetry would have to turn what chance does as well, which no table says; leave symmetries out"]
    games = jax.device_get(_play_turned(environment, tables))
    sentences = (_difference(games, tables, index) for index in range(1, num_symmetries))
    return [sentence for sentence in sentences if sentence]


def _difference(games: TurnedGames, tables: Symmetries, index: int) -> str | None:
    """A symmetry's change besides turning the games; None if nothing, or if no game begins on a turned board."""
    permuted = np.zeros_like(games.legal[:, :, 0])
    permuted[..., tables.action_permutation[index]] = games.legal[:, :, 0]
    turned = _turn(tables, index, games.observation[:, :, 0])
    same = {
        "the observation": (games.observation[:, :, index] == turned).reshape(*games.over.shape, -1).all(-1),
        "what is legal": (games.legal[:, :, index] == permuted).all(-1),
        "the reward": games.reward[:, :, index] == games.reward[:, :, 0],
        "the discount": games.discount[:, :, index] == games.discount[:, :, 0],
    }
    if not (same["the observation"][0] & same["what is legal"][0]).all():
        return None
    for move in range(len(games.over)):
        for name, equal in same.items():
            if not (equal[move] | games.over[move]).all():
                return (
                    f"symmetry {index} does not commute with moves: {name} differs after {move} moves; correct its "
                    "permutations, or leave it out"
                )
    return None


def _malformed(tables: Symmetries) -> list[str]:
    for name in ("action_permutation", "observation_permutation"):
        table = getattr(tables, name)
        numbers = np.arange(table.shape[1])
        if not (table[0] == numbers).all() or tables.observation_flip[0].any():
            return ["symmetry 0 is not the identity; put the identity first"]
        for index, row in enumerate(table):
            if not (np.sort(row) == numbers).all():
                return [f"{name} of symmetry {index} is no permutation; name each number from 0 on once"]
    return []


def _turn(tables: Symmetries, index: int, observation: Array | np.ndarray) -> np.ndarray:
    """Observations [T, N, *obs] under a symmetry (`types.Symmetries`)."""
    flat = observation.reshape(*observation.shape[:2], -1)[..., tables.observation_permutation[index]]
    return np.where(tables.observation_flip[index], flat == 0, flat).astype(flat.dtype).reshape(observation.shape)


def _play_turned(environment: Environment, tables: Symmetries) -> TurnedGames:
    permutation = jnp.asarray(tables.action_permutation)

    def one_move(states: Any, over: Array, key: Array):
        observation, legal = jax.vmap(environment.observe)(states), jax.vmap(environment.legal)(states)
        choice_key, move_key = jax.random.split(key)
        noise = jax.random.uniform(choice_key, legal[0].shape)
        actions = permutation[:, jnp.argmax(jnp.where(legal[0], noise, -1.0))]
        step = jax.vmap(environment.move, (0, 0, None))(states, actions, move_key)
        seen = TurnedGames(observation, legal, step.reward, step.discount, over)
        return step.state, over | step.is_last[0], seen

    def all_moves(carry, key):
        states, over = carry
        states, over, seen = jax.vmap(one_move)(states, over, jax.random.split(key, NUM_GAMES))
        return (states, over), seen

    @jax.jit
    def run(key: Array) -> TurnedGames:
        start = jax.vmap(environment.init)(jax.random.split(key, NUM_GAMES))
        copies = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(permutation), axis=1), start)
        carry = copies, jnp.zeros(NUM_GAMES, bool)
        return jax.lax.scan(all_moves, carry, jax.random.split(key, MOST_MOVES))[1]

    return run(jax.random.key(0))
