"""Players by name, runs loaded to play: mistakes are sentences that say what to do."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax import agent as agents
from muzero_jax import algorithm as algorithms
from muzero_jax.apps.evaluation import players, tournament
from muzero_jax.apps.evaluation.players import PlayerSpec
from muzero_jax.storage import agent_file
from muzero_jax.storage import config as configs
from muzero_jax.storage.fields import LARGEST_BUDGET
from tests.reference import tiny_run

HOST = tiny_run.agent()


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, spec",
    [
        ("random", PlayerSpec("random")),
        ("greedy", PlayerSpec("greedy")),
        ("mcts:7", PlayerSpec("mcts", None, 7)),
        ("rules:64", PlayerSpec("rules", None, 64)),
        ("RUN", PlayerSpec("agent", "RUN")),
        ("RUN/", PlayerSpec("agent", "RUN")),  # as a shell completes it
        ("RUN@64", PlayerSpec("agent", "RUN", 64)),
        ("RUN:rules", PlayerSpec("rules", "RUN")),
        ("RUN:rules@8", PlayerSpec("rules", "RUN", 8)),
        ("RUN:greedy", PlayerSpec("greedy", "RUN")),
        ("RUN/versions/2@8", PlayerSpec("agent", "RUN/versions/2", 8)),
        ("agent:hex_5x5", PlayerSpec("agent", "agent:hex_5x5")),
        ("agent:hex_5x5@256", PlayerSpec("agent", "agent:hex_5x5", 256)),
        ("agent:hex_5x5:rules@8", PlayerSpec("rules", "agent:hex_5x5", 8)),
        ("agent:hex_5x5:greedy", PlayerSpec("greedy", "agent:hex_5x5")),
    ],
)
def test_a_name_says_who_plays_with_which_budget(saved_run, text, spec):
    run = None if spec.run is None else spec.run.replace("RUN", str(saved_run))
    assert players.parse(text.replace("RUN", str(saved_run))) == spec._replace(run=run)


@pytest.mark.parametrize(
    "text",
    ["", "rnadom", "Random", "mcts", "mcts:", "mcts:0", "mcts:-5", "mcts:many", "rules"]
    + ["RUN@", "RUN@0", "RUN:ruels", "RUN:greedy@4", "RUN/elsewhere"],
)
def test_an_unknown_name_is_refused_with_the_names_there_are(saved_run, text):
    with pytest.raises(
        ValueError, match=r"no player .*: choose agent, random, greedy .*mcts:N .*RUN:rules@N .*directory"
    ):
        players.parse(text.replace("RUN", str(saved_run)), others="agent, ")


@pytest.mark.parametrize("text", ["agent:hex_4x4", "agent:hex_4x4@16", "agent:hex_4x4:rules@16"])
def test_an_unknown_agent_is_answered_with_those_that_there_are(text):
    with pytest.raises(ValueError, match="^there is no agent 'hex_4x4'; the agents are .*hex_5x5.*agent:PATH"):
        players.parse(text)


@pytest.mark.parametrize("text", ["mcts:1000000000000", "rules:100001", "RUN@" + "9" * 13, "RUN:rules@" + "9" * 200])
def test_a_name_that_asks_for_too_much_is_refused_with_the_limit(saved_run, text):
    text = text.replace("RUN", str(saved_run))
    with pytest.raises(ValueError, match="the budget of .* is [0-9.]+, but must be an integer from 1 to 100,000$") as e:
        players.parse(text)
    assert repr(text) in str(e.value)


def test_the_largest_budget_is_allowed():
    assert players.parse("mcts:100000").num_simulations == LARGEST_BUDGET == 100_000
    assert agents.check_budget(1, "x") == 1


# --- players ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, name, says",
    [
        ("random", "random", "random"),
        ("greedy", "agent:greedy", "greedy prior"),
        ("mcts:7", "mcts:7", "rollout MCTS (7 simulations)"),
        ("rules:3", "agent:rules@3", "ground-truth model (3 simulations)"),
    ],
)
def test_players_without_a_run_of_their_own_are_the_hosts(text, name, says):
    entrant = players.load(players.parse(text), HOST._replace(params="weights"))
    assert (entrant.name, entrant.player.name) == (name, says)
    assert entrant.params == ("weights" if name.startswith("agent") else None)


@pytest.mark.parametrize(
    "text, name, says",
    [
        ("RUN", "RUN@3", "agent (3 simulations)"),  # the budget asked for
        ("RUN@9", "RUN@9", "agent (9 simulations)"),
        ("RUN:rules@9", "RUN:rules@9", "ground-truth model (9 simulations)"),
        ("RUN:greedy", "RUN:greedy", "greedy prior"),
    ],
)
def test_a_run_can_be_an_opponent_with_its_own_weights(saved_run, text, name, says):
    load_agent = partial(agents.load_agent, num_simulations=3)
    entrant = players.load(players.parse(text.replace("RUN", str(saved_run))), HOST, load_agent)
    assert (entrant.name, entrant.player.name) == (name.replace("RUN", str(saved_run)), says)
    tiny_run.assert_same(entrant.params, tiny_run.make_init()().learner.params)


def test_a_run_of_another_game_is_no_opponent(saved_run):
    other = HOST._replace(config=replace(HOST.config, env="hex", board_size=3))
    with pytest.raises(ValueError, match="different games: env is hex here and tic_tac_toe in"):
        players.load(players.parse(str(saved_run)), other)


@pytest.mark.parametrize("true_rules", [False, True])
def test_an_agents_search_plays_legal_moves(true_rules):
    player = players.searching(HOST, 3, true_rules=true_rules)
    params = tiny_run.make_init()().learner.params
    states = jax.vmap(HOST.environment.init)(jax.random.split(jax.random.key(0), 2))
    states = states.replace(legal_action_mask=states.legal_action_mask.at[:, :8].set(False))
    np.testing.assert_array_equal(jax.jit(player.act)(params, jax.random.key(0), states), [8, 8])


def test_an_agent_plays_without_noise():
    """Row 17 of the pitfalls: on an empty board, where noise would choose, eight keys find one move."""
    states = jax.vmap(HOST.environment.init)(jax.random.split(jax.random.key(0), 2))
    act = jax.jit(players.searching(HOST, 4).act)
    params = tiny_run.make_init()().learner.params
    answers = {tuple(act(params, jax.random.key(seed), states).tolist()) for seed in range(8)}
    assert len(answers) == 1


# --- trained runs -----------------------------------------------------------------------------------------------------


def test_a_loaded_agent_has_the_saved_weights_and_the_budget_asked_for(saved_run):
    agent = agents.load_agent(saved_run)
    tiny_run.assert_same(agent.params, tiny_run.make_init()().learner.params)
    assert (agent.iteration, agent.config, agent.num_simulations) == (6, tiny_run.CONFIG, 2)
    assert agent.name == str(saved_run) and players.searching(agent).name == "agent (2 simulations)"
    assert players.searching(agents.load_agent(saved_run, 9)).name == "agent (9 simulations)"


def test_an_agent_in_a_file_is_the_run_that_it_was_made_of(saved_run, tmp_path):
    """Its weights, config and budget, as the host and as an opponent."""
    made_of = agents.load_agent(saved_run)
    name = f"agent:{tmp_path / 'mine.safetensors'}"
    agent_file.save(tmp_path / "mine.safetensors", made_of.config, made_of.params, iteration=made_of.iteration)
    agent = agents.load_agent(Path(name))
    tiny_run.assert_same(agent.params, made_of.params)
    assert (agent.iteration, agent.config, agent.num_simulations, agent.name) == (6, tiny_run.CONFIG, 2, name)
    entrant = players.load(players.parse(f"{name}@9"), HOST)
    assert (entrant.name, entrant.player.name) == (f"{name}@9", "agent (9 simulations)")


def test_ones_own_parts_take_the_place_of_the_configured_ones(saved_run):
    """The budgets of the agent, of a rival and of a tournament's players."""
    asked = []
    usual = tiny_run.algorithm()
    own = usual._replace(environment=usual.environment._replace(name="my game"))

    def build(config):
        asked.append(config)
        return own

    assert agents.load_agent(saved_run, build=build).environment is own.environment
    load_agent = partial(agents.load_agent, build=build)
    players.load(PlayerSpec("agent", str(saved_run)), HOST, load_agent)
    assert tournament.enter((str(saved_run), "random"), load_agent).host.environment is own.environment
    assert asked == [tiny_run.CONFIG] * 3


def tiny_hex(kind, folder):
    """An agent in a file, untrained, for Hex 3x3."""
    network = replace(tiny_run.CONFIG.network, kind=kind, num_bins=2)
    config = replace(tiny_run.CONFIG, env="hex", board_size=3, network=network)
    params = jax.tree.map(jnp.ones_like, jax.eval_shape(algorithms.make(config).model.init, jax.random.key(0)))
    agent_file.save(folder / f"{kind}.safetensors", config, params, iteration=5)
    return Path(f"agent:{folder / kind}.safetensors")


def test_an_agent_whose_network_fits_every_board_plays_on_another(tmp_path):
    path = tiny_hex("fully_convolutional", tmp_path)
    own, other = agents.load_agent(path), agents.load_agent(path, board_size=4)
    assert [agent.environment.num_actions for agent in (own, other)] == [3 * 3 + 1, 4 * 4 + 1], "cells and swap"
    assert (own.config.board_size, other.config.board_size, other.iteration) == (3, 4, 5)
    tiny_run.assert_same(other.params, own.params)
    load_agent = partial(agents.load_agent, board_size=4)
    assert players.load(PlayerSpec("agent", str(path)), other, load_agent).name == f"{path}@2"
    with pytest.raises(ValueError, match="different games: board_size is 4 here and 3 in"):
        players.load(PlayerSpec("agent", str(path)), other)


def test_an_agent_whose_network_or_game_has_one_board_is_refused_on_another(saved_run, tmp_path):
    path = tiny_hex("observation", tmp_path)
    assert agents.load_agent(path, board_size=3).config.board_size == 3
    with pytest.raises(
        ValueError, match=r"trained on the board 3, and its network does not fit the board 4 \(its .* is f"
    ):
        agents.load_agent(path, board_size=4)
    with pytest.raises(ValueError, match="tic_tac_toe has no board of size"):
        agents.load_agent(saved_run, board_size=4)
    with pytest.raises(ValueError, match="2 to 19"):
        agents.load_agent(path, board_size=77)


@pytest.mark.parametrize("budget", [0, -3, 10**11])
def test_an_agent_that_cannot_have_so_many_simulations_is_refused(saved_run, budget):
    with pytest.raises(ValueError, match=f"--num-simulations is {budget}, but must be an integer from 1 to 100,000"):
        agents.load_agent(saved_run, budget)


@pytest.mark.parametrize(
    "config, problem",
    [
        (replace(tiny_run.CONFIG, env="hex", board_size=77), "config.json describes no run .*77"),
        (replace(tiny_run.CONFIG, env="chequers"), "config.json describes no run .*There is no game 'chequers'"),
        (
            replace(tiny_run.CONFIG, evaluation=replace(tiny_run.CONFIG.evaluation, num_simulations=10**9)),
            "config.json is not a config of ours: --evaluation.num-simulations is 1000000000, but must be",
        ),
    ],
)
def test_a_config_that_makes_no_agent_is_named(tmp_path, config, problem):
    (tmp_path / "config.json").write_text(configs.to_json(config))
    with pytest.raises(ValueError, match=problem):
        agents.load_agent(tmp_path)


def test_a_folder_without_a_run_or_without_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no run"):
        agents.load_agent(tmp_path)
    (tmp_path / "config.json").write_text(configs.to_json(tiny_run.CONFIG))
    with pytest.raises(ValueError, match="no checkpoint in"):
        agents.load_agent(tmp_path)
