"""One table by the best judge of a game: which judge that is, and that its figures are the judge's own."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax.agent import make_agent
from muzero_jax.apps.engines.engines import EngineSpec
from muzero_jax.apps.evaluation import exam, oracle_evaluation
from muzero_jax.apps.evaluation.exam import Finding
from muzero_jax.presets import small_board
from muzero_jax.presets.chance import backgammon
from muzero_jax.storage.config_groups import NetworkConfig
from tests.reference import tiny_run


def test_where_a_solver_reaches_the_figures_are_the_oracles():
    agent = tiny_run.agent(params=jax.jit(tiny_run.algorithm().model.init)(jax.random.key(0)))
    found = exam.examine(agent, tiny_run.mesh(), positions=1, games=2, seed=0, say=lambda line: None)
    candidates = oracle_evaluation.agent_candidates(agent, (agent.num_simulations,))
    expected = oracle_evaluation.examine(agent, candidates, num_positions=1, seed=0)
    assert {finding.judge for finding in found} == {"exact play"}
    assert [f.value for f in found if "winning" in f.measure] == [s["keeps_win_rate"] for s in expected["scores"][1:]]
    assert {f.count for f in found if "winning" in f.measure} == {expected["can_win_and_err"]} == {2380}


@pytest.mark.parametrize(
    ("env", "judges"), [("2048", ["returns"]), ("connect_four", ["exact"]), ("othello", ["matches"])]
)
def test_each_game_has_its_judge(env, judges, monkeypatch):
    called = []
    for name in ("returns", "exact_play", "openings", "matches"):
        finding = Finding(name, "", 0.0, 0.0, 0.0, 0)
        answers = {"returns": finding, "matches": [finding], "exact_play": [finding] * (env == "connect_four")}

        def record(*_, name=name, answers=answers):
            called.append(name)
            return answers.get(name, [])

        monkeypatch.setattr(exam, f"_{name}", record)
    config = replace(small_board("hex", longest_game=9, num_bins=2, exploration=0.1), env=env, network=NetworkConfig())
    found = exam.examine(make_agent(config), tiny_run.mesh(), positions=1, games=2, seed=0, say=print)
    assert [finding.judge.split("_")[0] for finding in found] == judges


def test_backgammon_is_judged_by_equity_where_gnu_backgammon_is_installed(monkeypatch):
    monkeypatch.setattr(exam.equity, "judge_of", lambda agent: EngineSpec("gnubg", "gnubg", (), ()))
    monkeypatch.setattr(exam.equity, "losses", lambda *_, **__: np.array([0.0, 0.1, 0.3, 0.0]))
    agent = make_agent(backgammon())
    lost, best = exam.examine(agent, tiny_run.mesh(), positions=4, games=2, seed=0, say=print)
    assert (lost.value, best.value, lost.count, best.count) == (pytest.approx(0.1), 0.5, 4, 4)
    half_width = 3.18245 * 0.141421 / 2  # Student's, 3 degrees of freedom
    assert (lost.low, lost.high) == pytest.approx((0.1 - half_width, 0.1 + half_width), abs=1e-5)


def test_the_table_has_shares_as_per_cent_and_returns_as_numbers():
    rows = [
        Finding("exact play", "optimal moves", 0.98765, 0.97, 1.0, 321),
        Finding("the rules", "mean return", 12.345, 11.0, 13.5, 64, False),
    ]
    lines = exam.format_table(rows).splitlines()
    assert lines[1].split("  ")[-1] == "321" and "98.8%" in lines[1] and "[97.0, 100.0]" in lines[1]
    assert "12.35" in lines[2] and "[11, 13.5]" in lines[2]
