"""Matches shared among devices: rounded up, the same for the same key, compiled once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation import arena, matches
from muzero_jax.apps.evaluation.player import Player, random_player
from muzero_jax.games.environment import make_environment
from tests.reference import tiny_run
from tests.reference.nim import best_actions, make_nim

NIM = make_nim(9)
BEST = jnp.array([0] + [(best_actions(stones) or [0])[0] for stones in range(1, 10)], jnp.int32)
PERFECT = Player("perfect", lambda params, key, states: params[states.stones])


@pytest.fixture(scope="module")
def nim_match():
    """Perfect play at nim against random play: 6 games asked for, on two devices. It is compiled from shapes."""
    match = arena.ShardedMatch(NIM, PERFECT, random_player(NIM), tiny_run.mesh(), num_games=6, opening_plies=0)
    match.compile(jax.ShapeDtypeStruct(BEST.shape, BEST.dtype), None)
    return match


def test_the_summary_is_player_as_over_every_opening_from_both_sides_on_every_device(nim_match):
    """From 9 stones perfect play wins whenever it starts, and mostly if not."""
    reports = []
    summary = nim_match(BEST, None, jax.random.key(0), lambda *counts: reports.append(counts))
    assert summary["games"] == 8 == summary["wins"] + summary["losses"] and summary["wins"] > summary["losses"]
    assert summary["score_as_first"] == 1 and summary["illegal_actions"] == 0
    assert reports[0] == (0, 8) and nim_match(BEST, None, jax.random.key(0)) == summary


def test_deterministic_players_play_every_opening_once_from_both_sides():
    """Hex 3x3 has 9 openings of one stone, shared by two devices; each game is played again here, move by move."""
    hex_3x3 = make_environment("hex", board_size=3)
    first = Player("first", lambda params, key, states: jnp.argmax(states.legal_action_mask, axis=-1))
    last = Player("last", lambda params, key, states: 9 - jnp.argmax(states.legal_action_mask[:, ::-1], axis=-1))
    match = arena.ShardedMatch(hex_3x3, first, last, tiny_run.mesh(), num_games=64, opening_plies=1)
    summary = match(None, None, jax.random.key(0))
    move, won = jax.jit(hex_3x3.move), []
    for seat in (0, 1):
        for stone in range(9):
            state, plies, reward = hex_3x3.init(jax.random.key(0)), 0, 0.0
            while not state.terminated:
                legal = np.flatnonzero(state.legal_action_mask)
                action = stone if plies == 0 else legal[0] if plies % 2 == seat else legal[-1]
                state, reward, *_ = move(state, jnp.int32(action))
                plies += 1
            won.append(float(reward) * (1 if (plies - 1) % 2 == seat else -1) > 0)
    assert summary["games"] == summary["distinct_games"] == 18 == len(won)
    assert (summary["score_as_first"], summary["score_as_second"]) == (sum(won[:9]) / 9, sum(won[9:]) / 9)
    assert summary["ci95"] == list(matches.wilson_interval(summary["score"], 18))


def test_an_arena_seats_a_rival_with_its_own_weights_and_pools_several_matches(monkeypatch):
    made, seated = [], []

    class FakeMatch(arena.ShardedMatch):
        """Each match is won, drawn, lost and won by turns."""

        def __init__(self, environment, a, b, mesh, *, num_games, opening_plies):
            made.append((b.name, num_games))
            self.stochastic = True

        def play(self, params_a, params_b, key, report=None):
            seated.append((params_a, params_b))
            outcome, zeros = np.full((2, 2), [1, 0, -1][len(seated) % 3]), np.zeros((2, 2, 2), np.uint32)
            return matches.MatchResult(outcome, zeros[..., 0] + 4, zeros[..., 0], zeros)

    monkeypatch.setattr(arena, "ShardedMatch", FakeMatch)
    ours, key = arena.Arena(tiny_run.agent(), tiny_run.mesh()), jax.random.key(0)
    ours.play("random", "new", key, num_games=4)
    ours.play("self", "new", key, num_games=4, rival="old")
    assert seated == [("new", "new"), ("new", "old")]
    together = ours.play("random", "newer", key, num_games=4, num_matches=3)
    assert [together[name] for name in ("games", "wins", "draws", "losses")] == [12, 4, 4, 4]
    assert made == [("random", 4), ("agent (2 simulations)", 4)], "each is compiled once"
