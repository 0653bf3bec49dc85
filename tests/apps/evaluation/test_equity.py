"""Equity lost a turn in backgammon: which turns are drawn and judged, and what each lost."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.agent import make_agent
from muzero_jax.apps.engines.engines import GNUBG, EngineSpec
from muzero_jax.apps.evaluation import equity
from muzero_jax.apps.evaluation.player import Player, random_player
from muzero_jax.presets.chance import backgammon
from tests.apps.engines.test_gnubg import FAKE, REAL
from tests.games.test_backgammon import position

AGENT = make_agent(backgammon())
"""It has no weights; who plays for it is said by each test."""


def test_a_turn_loses_what_the_best_has_more_and_forced_or_unknown_turns_are_left_out(monkeypatch):
    """The agent plays the checker nearest to home, by the larger die: 6/3/2, and of double ones 6/5/4/3/2."""
    nearest = Player("nearest", lambda _, key, states: (states.legal_action_mask * jnp.arange(156)).argmax(1))
    turns = [position(dice) for dice in ((3, 1), (3, 1), (3, 1), (1, 1))]
    monkeypatch.setattr(equity, "_draw", lambda *_: jax.tree.map(lambda *leaves: np.stack(leaves), *turns))
    monkeypatch.setattr(equity.players, "searching", lambda agent: nearest)
    hints = "8/5 6/5=+0.159, 6/2=-0.135", "6/2=-0.135", "8/5 6/5=+0.159, 24/20=-0.015", "6/2=+0.2, 8/7(4)=-0.1"
    judge = EngineSpec("gnubg", GNUBG, (sys.executable, str(FAKE), *hints), equity.SETTINGS)
    assert equity.losses(AGENT, judge, num_positions=4, seed=0) == pytest.approx([0.294, 0.0])


def test_one_turn_of_each_game_is_drawn_that_has_just_begun_before_the_game_is_over(monkeypatch):
    plies = {"_played_dice_num": [0, 1, 0, 0, 1, 0], "terminated": [False] * 5 + [True], "_step_count": range(6)}
    states = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (6, 64, *leaf.shape)), position((3, 1)))
    states = states.replace(**{name: np.repeat(np.array(leaf)[:, None], 64, axis=1) for name, leaf in plies.items()})
    monkeypatch.setattr(equity.positions, "play", lambda *_: states)
    assert set(equity._draw(AGENT, 64, 0)._step_count) == {0, 2, 3}


@pytest.mark.slow
@pytest.mark.skipif(REAL is None, reason="gnubg is not installed (Debian: apt install gnubg)")
def test_random_play_loses_much_by_the_real_program(monkeypatch):
    for name in ("searching", "policy_head"):
        monkeypatch.setattr(equity.players, name, lambda agent: random_player(agent.environment))
    lost = equity.losses(AGENT, equity.judge_of(AGENT), num_positions=20, seed=0)
    assert lost.size > 12 and (lost >= 0).all() and lost.mean() > 0.1
