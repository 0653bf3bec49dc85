"""One table by the best judge of a game: which judge that is, and that its figures are the judge's own."""

import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.agent import make_agent
from muzero_jax.apps.engines.engines import GNUBG, EngineSpec
from muzero_jax.apps.evaluation import equity, exam, oracle_evaluation
from muzero_jax.apps.evaluation.exam import Finding
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.config.groups import NetworkConfig
from muzero_jax.presets import small_board
from muzero_jax.presets.chance import backgammon
from tests.apps.engines.test_gnubg import FAKE
from tests.games.test_backgammon import position
from tests.reference import tiny_run


def test_a_solved_games_figures_are_the_oracles(monkeypatch):
    examined, examine = [], oracle_evaluation.examine
    monkeypatch.setattr(oracle_evaluation, "examine", lambda *a, **b: examined.append(examine(*a, **b)) or examined[-1])
    agent = tiny_run.agent(params=tiny_run.make_init()().learner.params)
    found = exam.examine(agent, tiny_run.mesh(), positions=1, games=2, seed=0, say=lambda line: None)
    (expected,) = examined
    assert {finding.judge for finding in found} == {"exact play"}
    assert [f.value for f in found if "winning" in f.measure] == [s["keeps_win_rate"] for s in expected["scores"][1:]]
    assert {f.count for f in found if "winning" in f.measure} == {expected["can_win_and_err"]} == {2380}


def test_two_agents_of_a_game_are_examined_on_the_same_positions(monkeypatch):
    """Of Connect Four; one agent prefers the columns on the left, the other those on the right."""
    seen = []
    monkeypatch.setattr(oracle_evaluation, "solve", lambda _, observation, **__: seen.append(observation) or 1 / 0)
    config = small_board("connect_four", longest_game=42, num_bins=3, exploration=0.1)
    agent = make_agent(replace(config, network=NetworkConfig(width=16, num_blocks=0)))
    for prefers in (jnp.arange(7), -jnp.arange(7)):

        def act(params, key, states, prefers=prefers):
            return jnp.where(states.legal_action_mask, prefers, -99).argmax(axis=1)

        monkeypatch.setattr(oracle_evaluation.players, "policy_head", lambda agent, act=act: Player("prefers", act))
        with pytest.raises(ZeroDivisionError):
            exam.examine(agent, tiny_run.mesh(), positions=8, games=2, seed=0, say=print)
    np.testing.assert_array_equal(*seen)


@pytest.mark.parametrize(
    ("env", "judges"), [("2048", ["returns"]), ("connect_four", ["exact"]), ("othello", ["matches"])]
)
def test_each_game_is_examined_by_its_best_judge(env, judges, monkeypatch):
    for name in ("returns", "exact_play", "openings", "matches"):
        one = Finding(name, "", 0.0, 0.0, 0.0, 0)
        found = {"returns": one, "matches": [one], "exact_play": [one] * (env == "connect_four")}.get(name, [])
        monkeypatch.setattr(exam, f"_{name}", lambda *_, found=found: found)
    config = replace(small_board("hex", longest_game=9, num_bins=2, exploration=0.1), env=env, network=NetworkConfig())
    found = exam.examine(make_agent(config), tiny_run.mesh(), positions=1, games=2, seed=0, say=print)
    assert [finding.judge.split("_")[0] for finding in found] == judges


def test_the_table_has_shares_as_per_cent_and_returns_as_numbers():
    rows = [
        Finding("exact play", "optimal moves", 0.98765, 0.97, 1.0, 321),
        Finding("the rules", "mean return", 12.345, 11.0, 13.5, 64, False),
    ]
    lines = exam.format_table(rows).splitlines()
    assert lines[1].split("  ")[-1] == "321" and "98.8%" in lines[1] and "[97.0, 100.0]" in lines[1]
    assert "12.35" in lines[2] and "[11, 13.5]" in lines[2]


# --- backgammon, by the equity that a turn loses ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def agent():
    """It has no weights; each test says who plays for it."""
    return make_agent(backgammon())


def test_backgammon_is_judged_by_equity_where_gnu_backgammon_is_installed(agent, monkeypatch):
    monkeypatch.setattr(exam.equity, "judge_of", lambda agent: EngineSpec("gnubg", "gnubg", (), ()))
    monkeypatch.setattr(exam.equity, "losses", lambda *_, **__: np.array([0.0, 0.1, 0.3, 0.0]))
    lost, best = exam.examine(agent, tiny_run.mesh(), positions=4, games=2, seed=0, say=print)
    assert (lost.value, best.value, lost.count, best.count) == (pytest.approx(0.1), 0.5, 4, 4)
    half_width = 3.18245 * 0.141421 / 2  # Student's, 3 degrees of freedom
    assert (lost.low, lost.high) == pytest.approx((0.1 - half_width, 0.1 + half_width), abs=1e-5)


def test_equity_lost_is_the_best_turns_minus_the_agents_without_forced_or_unknown_turns(agent, monkeypatch):
    """The agent plays the checker nearest to home, by the larger die: 6/3/2, and of double ones 6/5/4/3/2."""
    nearest = Player("nearest", lambda _, key, states: (states.legal_action_mask * jnp.arange(156)).argmax(1))
    turns = [position(dice) for dice in ((3, 1), (3, 1), (3, 1), (1, 1))]
    monkeypatch.setattr(equity, "_draw", lambda *_: jax.tree.map(lambda *leaves: np.stack(leaves), *turns))
    monkeypatch.setattr(equity.players, "searching", lambda agent: nearest)
    hints = "8/5 6/5=+0.159, 6/2=-0.135", "6/2=-0.135", "8/5 6/5=+0.159, 24/20=-0.015", "6/2=+0.2, 8/7(4)=-0.1"
    judge = EngineSpec("gnubg", GNUBG, (sys.executable, str(FAKE), *hints), equity.SETTINGS)
    assert equity.losses(agent, judge, num_positions=4, seed=0) == pytest.approx([0.294, 0.0])


def test_equity_is_judged_at_the_start_of_one_turn_of_each_unfinished_game(agent, monkeypatch):
    plies = {"_played_dice_num": [0, 1, 0, 0, 1, 0], "terminated": [False] * 5 + [True], "_step_count": range(6)}
    states = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (6, 64, *leaf.shape)), position((3, 1)))
    states = states.replace(**{name: np.repeat(np.array(leaf)[:, None], 64, axis=1) for name, leaf in plies.items()})
    monkeypatch.setattr(equity.positions, "play", lambda *_: states)
    assert set(equity._draw(agent, 64, 0)._step_count) == {0, 2, 3}
