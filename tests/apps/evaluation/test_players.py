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
from tests.reference import tiny_run

HOST = tiny_run.agent()


@pytest.mark.parametrize(
    "text, spec",
    [
        ("random", PlayerSpec("random")),
        ("greedy", PlayerSpec("greedy")),
        ("mcts:100000", PlayerSpec("mcts", None, 100_000)),
        ("rules:64", PlayerSpec("rules", None, 64)),
        ("RUN/", PlayerSpec("agent", "RUN")),  # as a shell completes it
        ("RUN@64", PlayerSpec("agent", "RUN", 64)),
        ("RUN:rules", PlayerSpec("rules", "RUN")),
        ("RUN:rules@8", PlayerSpec("rules", "RUN", 8)),
        ("RUN:greedy", PlayerSpec("greedy", "RUN")),
        ("RUN/versions/2@8", PlayerSpec("agent", "RUN/versions/2", 8)),
        ("agent:hex_5x5", PlayerSpec("agent", "agent:hex_5x5")),
        ("agent:hex_5x5:rules@8", PlayerSpec("rules", "agent:hex_5x5", 8)),
    ],
)
def test_a_name_says_who_plays_with_which_budget(saved_run, text, spec):
    run = None if spec.run is None else spec.run.replace("RUN", str(saved_run))
    assert players.parse(text.replace("RUN", str(saved_run))) == spec._replace(run=run)


@pytest.mark.parametrize(
    "text, says",
    [
        *((text, "no player .*: choose agent, random, greedy") for text in ("", "rnadom", "mcts", "mcts:0", "mcts:-5")),
        *((text, "no player .*RUN:rules@N") for text in ("RUN@", "RUN@0", "RUN:ruels", "RUN:greedy@4", "RUN/else")),
        ("agent:hex_4x4:rules@16", "no agent 'hex_4x4'.*hex_5x5"),
        ("mcts:1000000000000", "the budget of .mcts:1000000000000. is"),
        ("RUN:rules@" + "9" * 200, "the budget of .*:rules@9"),
    ],
)
def test_an_unknown_name_and_one_that_asks_for_too_much_are_refused(saved_run, text, says):
    with pytest.raises(ValueError, match=says):
        players.parse(text.replace("RUN", str(saved_run)), others="agent, ")


@pytest.mark.parametrize(
    "text, name, says",
    [
        ("random", "random", "random"),
        ("greedy", "agent:greedy", "greedy prior"),
        ("mcts:7", "mcts:7", "rollout MCTS (7 simulations)"),
        ("rules:3", "agent:rules@3", "ground-truth model (3 simulations)"),
        ("RUN", "RUN@3", "agent (3 simulations)"),  # the budget asked for
        ("RUN:rules@9", "RUN:rules@9", "ground-truth model (9 simulations)"),
        ("RUN:greedy", "RUN:greedy", "greedy prior"),
    ],
)
def test_a_player_is_the_hosts_or_a_run_with_its_own_weights(saved_run, text, name, says):
    load_agent = partial(agents.load_agent, num_simulations=3)
    spec = players.parse(text.replace("RUN", str(saved_run)))
    entrant = players.load(spec, HOST._replace(params="weights"), load_agent)
    assert (entrant.name, entrant.player.name) == (name.replace("RUN", str(saved_run)), says)
    if spec.run:
        tiny_run.assert_same(entrant.params, tiny_run.make_init()().learner.params)
    else:
        assert entrant.params == ("weights" if name.startswith("agent") else None)


@pytest.mark.parametrize("true_rules", [False, True])
def test_an_agents_search_plays_legal_moves_without_noise(true_rules):
    """On an empty board, where noise would choose, eight keys find one move."""
    act = jax.jit(players.searching(HOST, 3, true_rules=true_rules).act)
    params = tiny_run.make_init()().learner.params
    states = jax.vmap(HOST.environment.init)(jax.random.split(jax.random.key(0), 2))
    assert len({tuple(act(params, jax.random.key(seed), states).tolist()) for seed in range(8)}) == 1
    states = states.replace(legal_action_mask=states.legal_action_mask.at[:, :8].set(False))
    np.testing.assert_array_equal(act(params, jax.random.key(0), states), [8, 8])


# --- trained runs -----------------------------------------------------------------------------------------------------


def test_a_loaded_agent_has_the_saved_weights_and_the_budget_asked_for_as_a_run_and_as_a_file(saved_run, tmp_path):
    agent = agents.load_agent(saved_run)
    file = tmp_path / "mine.safetensors"
    agent_file.save(file, agent.config, agent.params, iteration=agent.iteration)
    for loaded in (agent, agents.load_agent(Path(f"agent:{file}"))):
        tiny_run.assert_same(loaded.params, tiny_run.make_init()().learner.params)
        assert (loaded.iteration, loaded.config, loaded.num_simulations) == (6, tiny_run.CONFIG, 2)
    assert players.searching(agents.load_agent(saved_run, 9)).name == "agent (9 simulations)"


def test_ones_own_parts_take_the_place_of_the_configured_ones(saved_run):
    """The budgets of the agent, of a rival and of a tournament's players."""
    asked, usual = [], tiny_run.algorithm()
    own = usual._replace(environment=usual.environment._replace(name="my game"))
    load_agent = partial(agents.load_agent, build=lambda config: asked.append(config) or own)
    assert load_agent(saved_run).environment is own.environment
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
    with pytest.raises(ValueError, match="board_size is 4 here and 3 in"):
        players.load(PlayerSpec("agent", str(path)), other)


MAKES_NONE = {
    "cannot load the run": replace(tiny_run.CONFIG, env="chequers"),
    "--evaluation.num-simulations": replace(
        tiny_run.CONFIG, evaluation=replace(tiny_run.CONFIG.evaluation, num_simulations=10**9)
    ),
}


@pytest.mark.parametrize(
    "path, options, says",
    [
        ("HEX", {"board_size": 4}, "does not fit the board 4"),
        ("HEX", {"board_size": 77}, "2 to 19"),
        ("RUN", {"board_size": 4}, "tic_tac_toe has no board of size"),
        ("RUN", {"num_simulations": -3}, "--num-simulations is -3"),
        ("EMPTY", {}, "holds no run"),
        ("UNSAVED", {}, "no checkpoint in"),
        *((says, {}, says) for says in MAKES_NONE),
    ],
)
def test_what_makes_no_agent_is_refused(saved_run, tmp_path, path, options, says):
    found = {"RUN": saved_run, "EMPTY": tmp_path}.get(path) or (tmp_path / "run")
    if path == "HEX":
        found = tiny_hex("observation", tmp_path)
    elif found == tmp_path / "run":
        found.mkdir()
        configs.save(MAKES_NONE.get(path, tiny_run.CONFIG), found)
    with pytest.raises(ValueError, match=says):
        agents.load_agent(found, **options)
