"""What an agent is judged by: exact play, the faults of its model, the returns of single-player games."""

import json
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from muzero_jax.apps.commands import evaluate
from muzero_jax.apps.evaluation import fidelity, oracle_evaluation, positions, returns
from muzero_jax.apps.evaluation.exact_play.oracle import ILLEGAL, Solutions
from muzero_jax.apps.evaluation.oracle_evaluation import Solved
from muzero_jax.apps.evaluation.player import Player, random_player
from muzero_jax.games.environment import make_environment
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.types import Model, NetworkOutput
from tests.reference import tiny_run
from tests.reference.nim import make_nim, make_state

# --- against exact play -----------------------------------------------------------------------------------------------

# Won only by action 0; drawn by actions 0 and 1; lost by every action; won by every action.
SOLUTIONS = Solutions(
    np.array([1, 0, -1, 1], np.int8),
    np.array([[1, 0, -1], [0, 0, -1], [-1, -1, ILLEGAL], [1, 1, 1]], np.int8),
)
SOLVED = Solved(None, np.array([True, False, False, False]), SOLUTIONS)


def test_sampled_positions_are_distinct_undecided_late_enough_and_the_same_for_the_same_seed():
    environment = make_environment("tic_tac_toe")
    player = random_player(environment)
    first, again = (
        positions.sample(environment, player, None, num_positions=40, min_plies=3, seed=1).states for _ in range(2)
    )
    stones = first.observation.reshape(len(first.terminated), -1)
    assert len(np.unique(stones, axis=0)) == len(stones) == 40
    assert not first.terminated.any() and stones.sum(axis=1).min() >= 3
    np.testing.assert_array_equal(first.observation, again.observation)


def test_positions_of_its_own_play_are_the_players_and_the_others_random():
    """One who takes the last free cell soon has a corner that random play takes as often as any other cell."""
    game = make_environment("tic_tac_toe")
    last = Player("last", lambda params, key, states: 8 - jnp.argmax(states.legal_action_mask[:, ::-1], axis=-1))
    found = positions.sample(game, last, None, num_positions=400, min_plies=1, seed=0)
    has_corner = np.asarray(found.states.observation)[:, 2, 2].any(axis=-1)
    assert has_corner[found.is_own_play].mean() > 0.7 > has_corner[~found.is_own_play].mean() + 0.1


@pytest.mark.parametrize(
    "action, value, expected",
    [
        # The first move loses a won position, the second is right: rates are over positions where a move can err.
        ([2, 1, 0, 2], [0.5, 0.0, -1.0, 1.0], {"optimal_move_rate": 1 / 2, "keeps_win_rate": 0, "loses_win_rate": 1}),
        ([2, 1, 0, 2], [0.5, 0.0, -1.0, 1.0], {"keeps_win_rate_own_play": 0, "keeps_win_rate_random_play": None}),
        ([2, 1, 0, 2], [0.5, 0.0, -1.0, 1.0], {"value_error": 0.5 / 4, "illegal_actions": 0}),
        # A win turned into a draw is a mistake but no loss.
        ([1, 0, 0, 0], None, {"keeps_win_rate": 0, "loses_win_rate": 0, "value_error": None}),
        ([0, 0, 2, 0], None, {"illegal_actions": 1, "keeps_win_rate": 1, "keeps_win_rate_own_play": 1}),
    ],
)
def test_a_players_moves_and_values_are_scored_as_by_hand(action, value, expected):
    result = oracle_evaluation.score_player("x", np.array(action), value and np.array(value), SOLVED)
    assert expected.items() <= result.items()
    assert (result["keeps_win_rate_random_play_ci95"], len(result["keeps_win_rate_ci95"])) == (None, 2)


def test_a_random_move_is_right_as_often_as_the_share_of_right_moves():
    result = oracle_evaluation.score_random(SOLVED)
    assert result["optimal_move_rate"] == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert result["keeps_win_rate"] == result["loses_win_rate"] == pytest.approx(1 / 3)


# --- the command ------------------------------------------------------------------------------------------------------


def test_evaluate_judges_the_policy_head_and_search_on_every_position(saved_run, capsys):
    assert evaluate.main(["oracle", "--run", str(saved_run), "--budgets", "2", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["positions"], result["can_err"], result["from_own_play"]) == (4520, 3191, 0)
    assert [player["player"] for player in result["scores"]] == ["a random move", "policy head", "2 simulations"]
    for player in result["scores"][1:]:
        assert player["illegal_actions"] == 0
        assert 0 < player["optimal_move_rate"] < 1 and player["value_error"] > 0


def test_agents_of_different_games_are_refused_before_anything_is_solved():
    one = tiny_run.agent()
    other = one._replace(config=replace(one.config, env="connect_four"))
    with pytest.raises(ValueError, match="of different games"):
        oracle_evaluation.winning_move_accuracies([one, other], num_positions=1, seed=0, report=lambda *_: None)


@pytest.mark.slow
def test_several_agents_are_judged_as_each_is_separately():
    """On all positions of tic-tac-toe, against `examine` of one agent."""
    params = tiny_run.agent().model.init(jax.random.key(0))
    other = jax.tree.map(lambda leaf: leaf + np.sin(np.arange(leaf.size)).reshape(leaf.shape), params)
    agents = [tiny_run.agent(params=weights) for weights in (params, other)]
    found = oracle_evaluation.winning_move_accuracies(agents, num_positions=1, seed=0, report=lambda *_: None)
    candidate = oracle_evaluation.agent_candidates(agents[1], (agents[1].num_simulations,))[1]
    alone = oracle_evaluation.examine(agents[1], [candidate], num_positions=1, seed=0)
    assert found[1] == (alone["scores"][1]["keeps_win_rate"], alone["can_win_and_err"])
    assert found[0] != found[1]


# --- faults of the model ----------------------------------------------------------------------------------------------

NIM = make_nim(9)


def output_of(stones, reward):
    """Value: the heap over 10. Policy: as good as all on one stone. Embedding: the heap itself."""
    logits = jnp.broadcast_to(jnp.array([50.0, 0.0, 0.0]), (*stones.shape, 3))
    return NetworkOutput(stones, reward, stones / 10, logits)


def step(params, stones, action):
    """The rules where `params` is 0; a model that takes `params` stones too few, and so sees wins too late."""
    left = stones - (action + 1 - params)
    return output_of(jnp.maximum(left, 0), (left <= 0).astype(jnp.float32))


MODEL = Model(
    init=lambda key: 0,
    initial_inference=lambda params, observation: output_of(observation[:, 0], jnp.zeros(observation.shape[0])),
    recurrent_inference=step,
    reconstruct=lambda params, stones: stones[:, None] - 0.5,  # true where stones are left
    to_scalar=lambda logits: logits,
    scalar_loss=lambda logits, target: logits,
)


@pytest.fixture(scope="module")
def columns():
    """`columns(params)`: the table of two lines from 9 and from 2 stones, one stone a move, three moves deep."""
    agent = tiny_run.agent()._replace(environment=NIM, model=MODEL)

    @jax.jit
    def unroll(params):
        states, moves = make_state(jnp.array([9, 2]), jnp.array([0, 1])), jnp.array([False, False])
        return fidelity.unroll(agent, params, jax.random.key(0), states, moves, unroll_steps=3, imagines=True)

    def ask(params):
        rows = fidelity.depth_rows(jax.device_get(unroll(jnp.int32(params))))
        return {name: [row[name] for row in rows] for name in rows[0]}

    return ask


def test_a_perfect_model_does_not_drift_and_finds_every_win(columns):
    """The lines are 9 8 7 6, and 2 1, which can be taken at once."""
    found = columns(0)
    assert max(found["value_drift"] + found["policy_drift"]) < 1e-6
    assert found["false_win_rate"] == found["reward_error_quiet"] == [0] * 4
    assert found["same_observation_rate"] == [1] * 4
    assert (found["lines"], found["wins"]) == ([2, 2, 1, 1], [1, 1, 0, 0])
    assert (found["win_found_rate"], found["reward_error_decisive"]) == ([1, 1, None, None], [0, 0, None, None])


def test_the_value_drifts_by_0_1_a_depth_if_the_dynamics_forgets_a_stone(columns):
    """The model takes one stone too few a move: its value is off by 0.1 a depth, and it misses the wins."""
    drift = columns(1)
    np.testing.assert_allclose(drift["value_drift"], [0, 0.1, 0.2, 0.3], atol=1e-6)
    assert (drift["win_found_rate"], drift["reward_error_decisive"]) == ([0, 0, None, None], [1, 1, None, None])


def test_a_reward_predicted_too_early_is_a_false_win(columns):
    """It takes two stones too many: of the three moves from 9 and one from 2 that win nothing, the last looks won."""
    found = columns(-2)
    assert found["win_found_rate"][0] == 1
    assert found["false_win_rate"][0] == found["reward_error_quiet"][0] == 1 / 4


def test_nodes_of_a_tree_are_judged_by_replaying_their_lines():
    """From 2 stones. Node 1: take one. Node 2, below it: take two of the one left, illegal. Node 3, below that: illegal
    too. Node 4: take both, which wins. Node 5: a move after that. Priors on illegal moves count in node 1 alone.
    """
    tree = SimpleNamespace(
        parent=jnp.array([0, 0, 1, 2, 0, 4])[:, None],
        action=jnp.array([0, 0, 1, 0, 1, 0])[:, None],
        prior=jnp.tile(jnp.array([0.5, 0.3, 0.2]), (6, 1, 1)),
    )
    look = jax.jit(lambda stones: fidelity.look_at_tree(NIM, make_state(stones, jnp.zeros(1, int)), tree))
    faults = jax.device_get(look(np.array([2])))
    assert {name: int(mean.count[0]) for name, mean in faults.items()} == dict(
        zip(fidelity.TREE, (5, 5, 1), strict=True)
    )
    row = fidelity.tree_row(faults)
    assert row == pytest.approx({"illegal_visits": 2 / 5, "visits_beyond_end": 1 / 5, "illegal_prior": 0.5})


# --- returns ----------------------------------------------------------------------------------------------------------

GAME_2048 = make_environment("2048")


def test_random_play_of_2048_earns_about_a_thousand_points_with_students_interval():
    player, mesh = random_player(GAME_2048), make_mesh(2)
    episodes = returns.play(GAME_2048, player, None, mesh, num_games=39, seed=0)
    result = returns.summarise(GAME_2048, episodes)
    assert (result["games"], result["illegal_actions"]) == (40, 0) and 80 < result["mean_length"] < 160
    assert episodes.states.terminated.all()
    low, high = result["ci95"]
    assert low < 1060 < high
    known = stats.ttest_1samp(np.asarray(episodes.total, float), 0).confidence_interval(0.95)
    np.testing.assert_allclose(result["ci95"], known, rtol=1e-6)
    text = returns.format_table({"agent": result, "other": result | {"reached": {"128": 0.5, "2048": 0.5}}})
    shown = {line.split("  ")[0]: line.split()[-2:] for line in text.splitlines()}
    assert shown["reached 128"][1] == "50.0%" and shown["reached 2048"] == ["0.0%", "50.0%"]


def test_a_milestone_is_the_share_of_games_that_reached_it():
    boards = np.zeros((4, 16), np.int32)
    boards[:, 5] = [6, 7, 7, 9]  # the highest tiles are 64, 128, 128 and 512
    states = jax.vmap(GAME_2048.init)(jax.random.split(jax.random.key(0), 4))
    states = states.replace(_board=jnp.asarray(boards))
    none = jnp.zeros(4, jnp.int32)
    episodes = returns.Episodes(states, none, none, none > 0, none, none[:1])
    reached = returns.summarise(GAME_2048, episodes)["reached"]
    assert reached == {"64": 1.0, "128": 0.75, "256": 0.25, "512": 0.25}


def test_an_illegal_action_is_counted_and_a_legal_one_played():
    stubborn = Player("left", lambda params, key, states: jnp.zeros(len(states.terminated), jnp.int32))
    episodes = returns.play(GAME_2048, stubborn, None, make_mesh(1), num_games=2, seed=0)
    assert (episodes.illegal_actions > 0).all() and (episodes.total > 0).all()


def test_an_episode_is_cut_off_after_the_most_moves_with_what_it_has():
    player = random_player(GAME_2048)
    short, long = (
        returns.play(GAME_2048, player, None, make_mesh(1), num_games=2, seed=0, max_moves=most) for most in (5, 40)
    )
    assert short.length.tolist() == [5, 5] and long.length.tolist() == [40, 40]
    assert (np.asarray(short.total) < np.asarray(long.total)).all()
