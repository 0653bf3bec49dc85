"""Who plays a tournament, who met whom, and what the table says."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from muzero_jax import agent as agents
from muzero_jax.apps.engines.engine import EngineError
from muzero_jax.apps.evaluation import engine_matches, matches, pictures, players, tournament
from muzero_jax.apps.evaluation.engine_matches import Conditions
from muzero_jax.apps.evaluation.matches import MatchResult, wilson_interval
from muzero_jax.apps.evaluation.players import PlayerSpec
from tests.reference import tiny_run


@pytest.fixture(scope="module")
def runs(saved_run, tmp_path_factory):
    """Two run directories of one config, with one checkpoint each."""
    other = tmp_path_factory.mktemp("other") / "b"
    shutil.copytree(saved_run, other)
    return str(saved_run), str(other)


def test_a_player_of_the_table_is_named_with_its_run_and_budget(runs):
    a, b = runs
    names = (a, f"{a}@64", f"{b}:rules", f"{b}:greedy", "greedy", "rules:5", "mcts:7", "random")
    field = tournament.enter(names, partial(agents.load_agent, num_simulations=9))
    expected = [f"{a}@9", f"{a}@64", f"{b}:rules@9", f"{b}:greedy", f"{a}:greedy", f"{a}:rules@5", "mcts:7", "random"]
    assert [entrant.name for entrant in field.entrants] == expected and field.host.iteration == 6


def test_players_that_differ_in_their_weights_alone_share_a_program(runs):
    a, b = runs
    one, other, deeper, rules, random = tournament.enter((a, b, f"{b}@3", f"{b}:rules", "random")).entrants
    assert one.program == other.program
    assert len({entrant.program for entrant in (one, deeper, rules, random)}) == 4
    agent = agents.load_agent(Path(a), 2)
    planner = agent._replace(config=replace(agent.config, model="rules"))
    assert players.enter(PlayerSpec("agent"), planner).program != one.program


@pytest.mark.parametrize(
    "specs, sentence",
    [
        (["A"], "two players or more"),
        (["random", "mcts:5"], "at least one run"),
        (["A", "A@2"], "twice"),
        (["A", "A/"], "twice"),  # as a shell completes it
        (["A", "rnadom"], "no player 'rnadom'"),
        (["A", "B"], "different games"),
    ],
)
def test_tournaments_that_cannot_be_are_refused(runs, specs, sentence):
    hex_3x3 = tiny_run.agent()._replace(config=replace(tiny_run.CONFIG, env="hex", board_size=3))
    load = {runs[0]: agents.load_agent, runs[1]: lambda run: hex_3x3}
    with pytest.raises(ValueError, match=sentence):
        named = (spec.replace("A", runs[0]).replace("B", runs[1]) for spec in specs)
        tournament.enter(tuple(named), lambda run: load[str(run)](run))


@pytest.fixture
def made(monkeypatch):
    """What was compiled, of matches that `random` loses 1 : 3 and that all others draw."""
    made = []

    def fake_match(environment, a, b, mesh, *, num_games, opening_plies, conditions):
        made.append((a.player.name, b.player.name, num_games, opening_plies))
        outcome = np.array([[1, 1], [1, -1]]) if b.player.name == "random" else np.zeros((2, 2), int)
        zeros = np.zeros((2, 2, 2), np.uint32)
        result = MatchResult(outcome, zeros[..., 0] + 5, zeros[..., 0], zeros)
        return lambda params_a, params_b, key: matches.summarise(result, stochastic=True)

    monkeypatch.setattr(engine_matches, "make_match", fake_match)
    return made


def play(field, conditions=Conditions(), **options):  # noqa: B008
    settings = {"num_games": 4, "opening_plies": 1, "seed": 0}
    return tournament.play(field, tiny_run.mesh(), conditions=conditions, **settings, **options)


def test_every_pair_meets_once_and_equal_programs_are_compiled_once(runs, made):
    a, b = runs
    said = []
    result = play(tournament.enter((a, b, "random")), report=lambda *counts: said.append(counts))
    agent = "agent (2 simulations)"
    assert made == [(agent, agent, 4, 1), (agent, "random", 4, 1)] and said[0] == (0, 3)
    assert [(match["a"], match["b"]) for match in result["matches"]] == [
        (f"{a}@2", f"{b}@2"),
        (f"{a}@2", "random"),
        (f"{b}@2", "random"),
    ]
    assert result["cross_table"] == [[None, 0.5, 0.75], [0.5, None, 0.75], [0.25, 0.25, None]]
    assert result["anchor"] == "random" and result["players"][2]["elo"] == 0
    assert result["players"][0]["elo"] == pytest.approx(result["players"][1]["elo"]) and result["players"][0]["elo"] > 0


def test_the_anchor_is_asked_for_by_name(runs, made):
    field = tournament.enter((*runs, "random"))
    assert play(field, anchor=f"{runs[1]}@2")["players"][1]["elo_ci95"] == [0, 0]
    with pytest.raises(ValueError, match="--anchor mcts:5 does not play; the players are .*random"):
        play(field, anchor="mcts:5")


@pytest.mark.parametrize("error", [EngineError("the engine ended"), KeyboardInterrupt()])
def test_a_tournament_that_is_broken_off_says_how_it_stood(error, runs, made, monkeypatch):
    field, whole, said = tournament.enter((*runs, "random")), engine_matches.make_match, []

    def make_match(environment, a, b, *arguments, **options):
        if b.player.name == "random":
            raise error
        return whole(environment, a, b, *arguments, **options)

    monkeypatch.setattr(engine_matches, "make_match", make_match)
    with pytest.raises(type(error)):
        play(field, Conditions(say=said.append), anchor=f"{runs[1]}@2")
    assert said[0].startswith("1 of 3 matches had ended:") and "50.0%" in said[0]
    assert f"{runs[1]}@2 = 0" in said[0] and "  random" not in said[0]


# --- what is shown ----------------------------------------------------------------------------------------------------


def match(a, b, score, games=4, illegal_actions=0):
    """A match's figures as a tournament keeps them."""
    return {"a": a, "b": b, "score": score, "games": games, "illegal_actions": illegal_actions}


@pytest.fixture(scope="module")
def result():
    """x beats y 3 : 1 and z 4 : 0; y and z never met."""
    return tournament.summarise(["z", "y", "x"], [match("x", "y", 0.75), match("z", "x", 0.0, illegal_actions=2)], "z")


def test_the_table_is_in_the_order_of_strength_with_scores_of_the_row_and_notes(result):
    header, *rows = tournament.format_table(result).splitlines()[:4]
    assert header.split()[-3:] == ["1", "2", "3"]
    assert [row.split()[1] for row in rows] == ["x", "y", "z"]
    assert rows[0].split()[-3:] == ["-", "75.0", "100.0"] and rows[2].split()[-3:] == ["0.0", "-", "-"]
    assert "anchor" in rows[2]
    drawn = tournament.format_table(tournament.summarise(["x", "y"], [match("x", "y", 0.5)], "x"))
    for note in ("lower bound", "ILLEGAL MOVES were chosen 2 times"):
        assert note in tournament.format_table(result) and note not in drawn


def test_all_that_a_player_met_count_alike_though_some_pairs_have_fewer_distinct_games():
    """x has 1 of 2 against y and all 8 against z: 75%, with the variance of 4 / (1/2 + 1/8) games."""
    result = tournament.summarise(["x", "y", "z"], [match("x", "y", 0.5, 2), match("x", "z", 1.0, 8)], "x")
    first = result["players"][0]
    assert (first["games"], first["score"], first["ci95"]) == (10, 0.75, list(wilson_interval(0.75, 6.4)))
    assert "\n2 to 8 games of a pair differ." in tournament.format_table(result)


def test_a_result_is_drawn(result, tmp_path):
    pictures.plot_tournament(result, tmp_path / "elo.svg")
    assert "<svg" in (tmp_path / "elo.svg").read_text()
