"""`muzero_jax.load`: a trained agent that judges any state of its game, by the search that plays."""

import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import muzero_jax
from muzero_jax.agent import load_agent, make_agent
from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.play import thinking
from muzero_jax.apps.play.position import new_game
from muzero_jax.games.own_game import environment_from
from tests.reference.gamble import GAMBLE
from tests.reference.tiny_run import CONFIG


@pytest.fixture(scope="module")
def agent(untrained_run):
    return muzero_jax.load(str(untrained_run))


def states_of_a_game(agent, *actions):
    """The states of a game, from an opening on in which the second of the state's two players moves first."""
    states = [agent.environment.init(jax.random.key(3))]
    for action in actions:
        states.append(agent.environment.move(states[-1], action).state)
    return states


def test_the_package_has_what_it_lists_and_does_not_import_jax():
    code = "import sys, muzero_jax; assert 'jax' not in sys.modules and not hasattr(muzero_jax, 'nothing'), sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert set(muzero_jax.__all__) | {"__version__"} == set(dir(muzero_jax))
    assert all(getattr(muzero_jax, name) is not None for name in dir(muzero_jax))


def test_a_run_is_loaded_by_text_or_path_or_version(untrained_run, agent):
    assert (agent.num_simulations, agent.iteration, agent.environment.name) == (4, 0, "tic_tac_toe")
    assert muzero_jax.load(untrained_run, num_simulations=7).num_simulations == 7
    assert muzero_jax.load(untrained_run / "checkpoints" / "0").name.endswith("checkpoints/0")
    assert repr(agent) == f"<Agent {untrained_run}: Tic-tac-toe, iteration 0, 4 simulations>"


def test_a_run_without_an_algorithm_of_its_own_is_loaded_without_targets_losses_and_optimiser(
    untrained_run, agent, monkeypatch
):
    monkeypatch.setattr("muzero_jax.agent.agent.make_algorithm", None)
    state = agent.environment.init(jax.random.key(3))
    assert muzero_jax.load(untrained_run).act(state) == agent.act(state)


def test_analyse_uses_the_search_that_plays(untrained_run, agent):
    run = load_agent(untrained_run)
    position = new_game(run.environment).play(4)
    elsewhere = thinking.make_thinker(run, num_simulations=4).analyse(position)
    here = agent.analyse(states_of_a_game(agent, 4)[-1])
    assert here.action == elsewhere.action == agent.act(position.state)
    np.testing.assert_array_equal(here.policy, elsewhere.policy)
    np.testing.assert_array_equal(here.prior, elsewhere.prior)
    assert (here.value, here.prior_value) == (elsewhere.value, elsewhere.prior_value)


def test_searching_a_batch_of_states_gives_what_each_search_gives_separately(agent):
    states = states_of_a_game(agent, 4, 0, 8)
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    found, judged = agent.search(batch), agent.network(batch.observation)
    assert found.tree.visits.shape[0] == 5  # a root and four nodes
    for row, state in enumerate(states):
        alone = agent.analyse(state)
        assert found.action[row] == alone.action
        np.testing.assert_allclose(found.policy[row], alone.policy, atol=1e-5)
        np.testing.assert_allclose(found.value[row], alone.value, atol=1e-5)
        np.testing.assert_allclose(judged.value[row], alone.prior_value, atol=1e-5)
        legal = np.where(state.legal_action_mask, judged.policy[row], 0.0)
        np.testing.assert_allclose(legal / legal.sum(), alone.prior, atol=1e-5)
    assert len(judged.embedding) == len(states)


def test_lines_begin_with_the_move_that_it_plays_and_can_be_played(agent):
    state = states_of_a_game(agent, 4)[-1]
    analysis = agent.analyse(state, num_simulations=16)
    assert analysis.lines[0].actions[0] == analysis.action
    assert max(len(line.moves) for line in analysis.lines) > 1
    assert sum(line.visits for line in analysis.lines) <= analysis.num_simulations == 16
    tree = agent.search(jax.tree.map(lambda x: x[None], state), 16).tree
    for line in analysis.lines:
        assert line.value == pytest.approx(float(np.clip(tree.q[0, 0, line.actions[0]], -1, 1)), abs=1e-5)
        after = state
        for move, action in zip(line.moves, line.actions, strict=True):
            assert agent.notation.write(after, action) == move and agent.notation.read(after, move) == action
            assert after.legal_action_mask[action] and not after.terminated
            after = agent.environment.move(after, action).state


@pytest.mark.parametrize(
    "ask, says",
    [
        (lambda agent, state: agent.act(jax.tree.map(lambda x: x[None], state)), "agent.search"),
        (lambda agent, state: agent.act(state, num_simulations=1_000_000), "num_simulations"),
        (lambda agent, state: agent.environment.move(state, 4), r"the legal ones are \[0, 1, 2, 3, 5"),
        (lambda agent, state: muzero_jax.load("experiments"), "holds no run"),
    ],
)
def test_an_invalid_state_budget_action_or_run_is_refused(agent, ask, says):
    with pytest.raises(ValueError, match=says):
        ask(agent, states_of_a_game(agent, 4)[-1])


# --- a single-player game ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gambler():
    """An untrained agent for a single-player game, whose rules need their key."""
    config = replace(CONFIG, env="gamble")
    algorithm = make_algorithm(config, environment_from(GAMBLE, "gamble"))
    params = jax.jit(algorithm.model.init)(jax.random.key(0))
    return make_agent(config, algorithm, num_simulations=4, params=params)


def test_a_single_player_agent_plays_an_environment_whose_moves_need_a_key(gambler):
    state, reward, moves = gambler.environment.init(jax.random.key(0)), 0.0, 0
    analysis = gambler.analyse(state)
    assert analysis.policy.sum() == pytest.approx(1) and -1 <= analysis.value <= 1
    assert [line.actions for line in analysis.lines][0] == (analysis.action,)
    assert all(line.moves == (str(line.actions[0]),) and line.visits > 0 for line in analysis.lines)
    while not state.terminated:
        step = gambler.environment.move(state, gambler.act(state), jax.random.key(moves))
        state, reward, moves = step.state, reward + float(step.reward), moves + 1
    assert moves <= 5 and reward in range(moves + 1)
    with pytest.raises(ValueError, match="the game is over"):
        gambler.act(state)
