"""Our Hex against pgx's where pgx's works, against a flood fill elsewhere, and against the rules worked by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pgx.hex import Hex as PgxHex

from muzero_jax.games.hex_rules import Hex
from tests.reference import hex as reference

SIZES = [2, 5, 19]
NUM_GAMES = 64
COMPARED = ("current_player", "observation", "rewards", "terminated", "truncated", "legal_action_mask", "_step_count")


def test_our_hex_is_pgxs_move_for_move_on_11x11():
    """Half of the games swap, one in eight makes an illegal move at its seventh, and all go on past their end."""
    ours, theirs = Hex(size=11), PgxHex()
    game_index = jnp.arange(NUM_GAMES)

    def move(states, inputs):
        step_key, step = inputs
        legal = states[0].legal_action_mask
        noise = jax.random.uniform(step_key, legal.shape)
        noise = noise.at[:, -1].add(jnp.where((step == 1) & (game_index % 2 == 0), 1.0, 0.0))
        random_action = jnp.argmax(jnp.where(legal, noise, -1.0), axis=1)
        action = jnp.where((step == 6) & (game_index % 8 == 0), jnp.argmin(legal, axis=1), random_action)
        states = tuple(jax.vmap(game.step)(state, action) for game, state in zip((ours, theirs), states, strict=True))
        return states, (agreement(*states), action, states[0].rewards)

    def agreement(left, right):
        return {name: (getattr(left, name) == getattr(right, name)).all() for name in COMPARED}

    @jax.jit
    def run(key):
        keys = jax.random.split(key, NUM_GAMES)
        states = tuple(jax.vmap(game.init)(keys) for game in (ours, theirs))
        _, outputs = jax.lax.scan(move, states, (jax.random.split(key, 123), jnp.arange(123)))
        return agreement(*states), outputs

    at_the_start, (after_each_move, actions, rewards) = jax.device_get(run(jax.random.key(0)))
    for name in COMPARED:
        assert at_the_start[name], name
        assert after_each_move[name].all(), name
    assert NUM_GAMES // 2 <= (actions[1] == 121).sum() < NUM_GAMES
    assert (np.abs(rewards[6]).sum(axis=1) == 2).sum() == NUM_GAMES // 8
    assert set(rewards[..., 0].ravel()) == {-1.0, 0.0, 1.0}
    assert (rewards[-1] == 0).all()


def random_games(size, num_games=8):
    """Games of random legal moves on one size: (observations [T, B, n, n, 4] after each move, rewards, terminated)."""
    game = Hex(size=size)

    def move(state, step_key):
        noise = jax.random.uniform(step_key, state.legal_action_mask.shape)
        state = jax.vmap(game.step)(state, jnp.argmax(jnp.where(state.legal_action_mask, noise, -1.0), axis=1))
        return state, (state.observation, state.rewards, state.terminated)

    @jax.jit
    def run(key):
        state = jax.vmap(game.init)(jax.random.split(key, num_games))
        return jax.lax.scan(move, state, jax.random.split(key, size * size + 1))[1]

    return jax.device_get(run(jax.random.key(size)))


@pytest.mark.parametrize("size", SIZES)
def test_a_game_ends_on_the_move_that_wins_by_flood_fill(size):
    observations, rewards, terminated = random_games(size)
    for game in range(terminated.shape[1]):
        end = int(np.argmax(terminated[:, game]))
        assert terminated[end, game]
        (winner,) = reference.winners(reference.board_of(observations[end, game]))
        assert reference.winners(reference.board_of(observations[end - 1, game])) == []
        assert winner == 1 - observations[end, game, 0, 0, 2]  # the view is the loser's
        assert sorted(rewards[end, game]) == [-1.0, 1.0]


def test_a_swap_moves_the_first_stone_to_the_transposed_cell_and_changes_its_color():
    game = Hex(size=3)
    step, start = jax.jit(game.step), jax.jit(game.init)(jax.random.key(0))
    after_stone = step(start, 1)
    after_swap = step(after_stone, 9)
    assert reference.board_of(np.asarray(after_stone.observation)).tolist() == [[-1, 0, -1], [-1] * 3, [-1] * 3]
    assert reference.board_of(np.asarray(after_swap.observation)).tolist() == [[-1] * 3, [1, -1, -1], [-1] * 3]
    assert after_swap.legal_action_mask.tolist() == [True] * 3 + [False] + [True] * 5 + [False]
    assert not after_swap.terminated
    assert int(after_swap.current_player) == int(start.current_player) == 1 - int(after_stone.current_player)

    on_the_diagonal = step(step(start, 4), 9)
    assert reference.board_of(np.asarray(on_the_diagonal.observation)).tolist() == [[-1] * 3, [-1, 1, -1], [-1] * 3]
