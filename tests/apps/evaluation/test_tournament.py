"""Players by name, the runs and agents that they load, and tournaments: who met whom, and what the table says."""

import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.agent import load_agent
from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.evaluation import engine_matches, matches, pictures, players, tournament
from muzero_jax.apps.evaluation.engine_matches import Conditions
from muzero_jax.apps.evaluation.matches import MatchResult, wilson_interval
from muzero_jax.apps.evaluation.player import sampling_player
from muzero_jax.apps.evaluation.players import PlayerSpec
from muzero_jax.run import charts
from muzero_jax.storage import agent_file
from muzero_jax.types import SearchOutput
from tests.reference import tiny_run

HOST = tiny_run.agent()


@pytest.fixture(scope="module")
def weights():
    return tiny_run.make_init()().learner.params


@pytest.fixture(scope="module")
def runs(saved_run, tmp_path_factory):
    """Two run directories of one config, with one checkpoint each."""
    other = tmp_path_factory.mktemp("other") / "b"
    shutil.copytree(saved_run, other)
    return str(saved_run), str(other)


NAMES = {
    "A": ("A@9", "agent (9 simulations)"),  # the budget asked for
    "A@64": ("A@64", "agent (64 simulations)"),
    "B/": ("B@9", "agent (9 simulations)"),  # as a shell completes it
    "B:rules": ("B:rules@9", "ground-truth model (9 simulations)"),
    "B:rules@8": ("B:rules@8", "ground-truth model (8 simulations)"),
    "B:sampled@8": ("B:sampled@8", "sampled policy (8 simulations)"),
    "B:greedy": ("B:greedy", "greedy prior"),
    "greedy": ("A:greedy", "greedy prior"),
    "rules:5": ("A:rules@5", "ground-truth model (5 simulations)"),
    "sampled:1": ("A:sampled@1", "sampled policy (1 simulation)"),
    "mcts:7": ("mcts:7", "rollout MCTS (7 simulations)"),
    "random": ("random", "random"),
}


def test_a_name_says_who_plays_with_which_weights_and_budget(runs, weights):
    def placed(text):
        return text.replace("A", runs[0]).replace("B", runs[1])

    field = tournament.enter(tuple(map(placed, NAMES)), partial(load_agent, num_simulations=9))
    found = [(entrant.name, entrant.player.name) for entrant in field.entrants]
    assert found == [(placed(name), says) for name, says in NAMES.values()] and field.host.iteration == 6
    for entrant in field.entrants[:10]:
        tiny_run.assert_same(entrant.params, weights)
    assert players.parse("agent:hex_5x5:rules@8") == PlayerSpec("rules", "agent:hex_5x5", 8)


@pytest.mark.parametrize("text", ["", "rnadom", "mcts:0", "RUN@", "RUN:greedy@4", "agent:hex_4x4", f"mcts:{10**12}"])
def test_an_unknown_player_or_too_large_a_budget_is_refused(saved_run, text):
    with pytest.raises(ValueError, match="no player|no agent|the budget of"):
        players.parse(text.replace("RUN", str(saved_run)), others="agent, ")


@pytest.mark.parametrize("kind", ["agent", "rules"])
def test_an_agents_search_plays_legal_moves_without_noise(kind, weights):
    """Eight keys give one move on an empty board, where noise would give several."""
    act = jax.jit(players.searching(HOST, 3, kind=kind).act)
    states = jax.vmap(HOST.environment.init)(jax.random.split(jax.random.key(0), 2))
    assert len({tuple(act(weights, jax.random.key(seed), states).tolist()) for seed in range(8)}) == 1
    states = states.replace(legal_action_mask=states.legal_action_mask.at[:, :8].set(False))
    np.testing.assert_array_equal(act(weights, jax.random.key(0), states), [8, 8])


def test_a_sampled_move_follows_the_policy_of_the_search():
    """Of 4,000 draws from 0.75, 0.25 and nothing, the first has 3,000, with a standard deviation of 27."""
    policy = jnp.tile(jnp.array([0.75, 0.25] + [0.0] * 7), (4000, 1))

    def search(params, key, roots):
        return SearchOutput(jnp.ones(4000, jnp.int32), policy, jnp.zeros(4000), None)

    player = sampling_player(HOST.environment, search, "sampled")
    states = jax.vmap(HOST.environment.init)(jax.random.split(jax.random.key(0), 4000))
    counts = np.bincount(player.act(None, jax.random.key(0), states), minlength=9)
    assert 2900 < counts[0] < 3100 and counts[0] + counts[1] == 4000 and player.stochastic


def tiny_hex(kind, folder):
    """An agent in a file, untrained, for Hex 3x3."""
    network = replace(tiny_run.CONFIG.network, kind=kind, num_bins=2)
    config = replace(tiny_run.CONFIG, env="hex", board_size=3, network=network)
    params = jax.tree.map(jnp.ones_like, jax.eval_shape(make_algorithm(config).model.init, jax.random.key(0)))
    agent_file.save(folder / f"{kind}.safetensors", config, params, iteration=5)
    return Path(f"agent:{folder / kind}.safetensors")


def test_an_agent_whose_network_fits_every_board_plays_on_another(tmp_path):
    path = tiny_hex("fully_convolutional", tmp_path)
    own, other = load_agent(path), load_agent(path, board_size=4)
    assert [agent.environment.num_actions for agent in (own, other)] == [3 * 3 + 1, 4 * 4 + 1], "cells and swap"
    assert (own.config.board_size, other.config.board_size, other.iteration) == (3, 4, 5)
    tiny_run.assert_same(other.params, own.params)
    load_small = partial(load_agent, board_size=4)
    assert players.load(PlayerSpec("agent", str(path)), other, load_small).name == f"{path}@2"
    with pytest.raises(ValueError, match="board_size is 4 here and 3 in"):
        players.load(PlayerSpec("agent", str(path)), other)
    with pytest.raises(ValueError, match="does not fit the board 4"):
        load_agent(tiny_hex("observation", tmp_path), board_size=4)


# --- tournaments ------------------------------------------------------------------------------------------------------


@pytest.fixture
def made(monkeypatch):
    """The matches that were compiled; `random` loses 1 : 3, and the others are drawn."""
    made = []

    def fake_match(environment, a, b, mesh, *, num_games, opening_plies, conditions):
        made.append((a.player.name, b.player.name, num_games, opening_plies))
        outcome = np.array([[1, 1], [1, -1]]) if b.player.name == "random" else np.zeros((2, 2), int)
        zeros = np.zeros((2, 2, 2), np.uint32)
        result = MatchResult(outcome, zeros[..., 0] + 5, zeros[..., 0], zeros)
        return lambda params_a, params_b, key: matches.summarise(result, stochastic=True)

    monkeypatch.setattr(engine_matches, "make_match", fake_match)
    return made


def test_every_pair_meets_once_and_equal_programs_are_compiled_once(runs, made):
    a, b = runs
    said = []
    settings = {"num_games": 4, "opening_plies": 1, "seed": 0, "conditions": Conditions()}
    field, report = tournament.enter((a, b, "random")), lambda *counts: said.append(counts)
    result = tournament.play(field, tiny_run.mesh(), **settings, report=report)
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


def match(a, b, score, games=4):
    """A match's figures as a tournament keeps them."""
    return {"a": a, "b": b, "score": score, "games": games, "illegal_actions": 0}


def test_the_table_is_sorted_by_strength_shows_the_rows_scores_and_is_plotted(tmp_path):
    """x beats y 3 : 1 and z 4 : 0; y and z never met."""
    result = tournament.summarise(["z", "y", "x"], [match("x", "y", 0.75), match("z", "x", 0.0)], "z")
    _, *rows = tournament.format_table(result).splitlines()[:4]
    assert [row.split()[1] for row in rows] == ["x", "y", "z"]
    assert rows[0].split()[-3:] == ["-", "75.0", "100.0"] and rows[2].split()[-3:] == ["0.0", "-", "-"]
    pictures.plot_tournament(result, tmp_path / "elo.svg")
    assert "<svg" in (tmp_path / "elo.svg").read_text()


def test_a_tournament_for_points_is_ranked_by_mean_points_and_has_no_elo(tmp_path, monkeypatch):
    """x takes 2 points a game from y, who beats it more often, and y takes 1 from z: y has (1 - 2) / 2."""
    played = [
        match("x", "y", 0.25) | {"ci95": [0.0, 0.7], "mean_points": 2.0, "mean_points_ci95": [1.4, 2.6]},
        match("y", "z", 1.0) | {"ci95": [0.6, 1.0], "mean_points": 1.0, "mean_points_ci95": [0.2, 1.8]},
    ]
    result = tournament.summarise(["z", "y", "x"], played, "z")
    assert result["cross_table"] == [[None, -1.0, None], [1.0, None, -2.0], [None, 2.0, None]]
    second = result["players"][1]
    assert (second["name"], second["games"], second["mean_points"]) == ("y", 8, -0.5) and "elo" not in second
    np.testing.assert_allclose(second["mean_points_ci95"], [-1.0, 0.0])  # the root of 0.6^2 + 0.8^2, over 2
    lines = tournament.format_table(result).splitlines()
    assert [line.split()[1] for line in lines[1:4]] == ["x", "y", "z"] and "+2.000" in lines[1]
    drawn = []
    monkeypatch.setattr(charts, "save", lambda figure, path: drawn.append(figure))
    pictures.plot_tournament(result, tmp_path / "points.svg")
    rating, table = drawn[0].axes
    assert "mean points" in rating.get_xlabel() and "+2.00" in [text.get_text() for text in table.texts]


def test_every_opponent_counts_equally_even_with_fewer_distinct_games():
    """x has 1 of 2 against y and all 8 against z: 75%, with the variance of 4 / (1/2 + 1/8) games."""
    result = tournament.summarise(["x", "y", "z"], [match("x", "y", 0.5, 2), match("x", "z", 1.0, 8)], "x")
    first = result["players"][0]
    assert (first["games"], first["score"], first["ci95"]) == (10, 0.75, list(wilson_interval(0.75, 6.4)))
