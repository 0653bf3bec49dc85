"""Players by name, matches shared among devices, runs loaded to play: mistakes are sentences that say what to do."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.evaluation import arena, opponents
from muzero_jax.storage import config as configs
from muzero_jax.storage.checkpoint import Checkpointer
from muzero_jax.types import Player
from tests.reference import tiny_run
from tests.reference.nim import best_actions, make_nim

NIM = tiny_run.parts()._replace(environment=make_nim(9))
BEST = jnp.array([0] + [(best_actions(stones) or [0])[0] for stones in range(1, 10)], jnp.int32)
PERFECT = Player("perfect", lambda params, key, states: params[states.stones])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run directory with one checkpoint, and the weights in it."""
    run_dir = tmp_path_factory.mktemp("run")
    (run_dir / "config.json").write_text(configs.to_json(tiny_run.CONFIG))
    state = tiny_run.make_init()()
    with Checkpointer(run_dir / "checkpoints") as checkpoints:
        checkpoints.save(6, state)
    return run_dir, tiny_run.on_host(state.learner.params)


# --- opponents by name ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec, name",
    [("random", "random"), ("greedy", "greedy prior"), ("mcts:7", "rollout MCTS (7 simulations)")],
)
def test_opponents_go_by_name(spec, name):
    assert arena.make_opponent(spec, tiny_run.parts()).name == name


@pytest.mark.parametrize("spec", ["", "rnadom", "mcts", "mcts:", "mcts:0", "mcts:-5", "mcts:many", "Random"])
def test_an_unknown_opponent_is_refused_with_the_names_there_are(spec):
    with pytest.raises(ValueError, match="unknown opponent.*random.*greedy.*mcts:N.*run directory"):
        arena.make_opponent(spec, tiny_run.parts())


# --- matches ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nim_match():
    """Perfect play at nim against random play: 6 games asked for, on two devices. It is compiled from shapes."""
    match = arena.sharded_match(
        NIM, PERFECT, opponents.random_player(NIM.environment), tiny_run.mesh(), num_games=6, opening_plies=0
    )
    match.compile(jax.ShapeDtypeStruct(BEST.shape, BEST.dtype), None)
    return match


def test_a_match_compiled_beforehand_is_not_compiled_when_it_is_played(nim_match, monkeypatch):
    monkeypatch.delattr(nim_match, "_begin")
    nim_match(BEST, None, jax.random.key(1))


def test_a_match_is_rounded_up_to_every_opening_from_both_sides_on_every_device(nim_match):
    assert nim_match(BEST, None, jax.random.key(0))["games"] == 8


def test_the_summary_is_player_as(nim_match):
    """From 9 stones perfect play wins whenever it starts, and mostly if not."""
    summary = nim_match(BEST, None, jax.random.key(0))
    assert summary["score_as_first"] == 1
    assert summary["wins"] + summary["losses"] == 8 and summary["wins"] > summary["losses"]
    assert summary["illegal_actions"] == 0


def test_a_match_with_the_same_key_is_the_same_match(nim_match):
    assert nim_match(BEST, None, jax.random.key(3)) == nim_match(BEST, None, jax.random.key(3))


def test_an_arena_compiles_each_match_once_and_seats_a_rival_with_its_own_weights(monkeypatch):
    made = []

    class FakeMatch(arena.ShardedMatch):
        def __init__(self):
            pass

        def __call__(self, params_a, params_b, key):
            return {"a": params_a, "b": params_b}

    def fake_match(parts, player_a, player_b, mesh, *, num_games, opening_plies):
        made.append((player_b.name, num_games))
        return FakeMatch()

    monkeypatch.setattr(arena, "sharded_match", fake_match)
    matches = arena.Arena(tiny_run.CONFIG, tiny_run.parts(), tiny_run.mesh())
    key = jax.random.key(0)
    assert matches.play("random", "new", key, num_games=4) == {"a": "new", "b": "new"}
    assert matches.play("self", "new", key, num_games=4, rival="old") == {"a": "new", "b": "old"}
    for _ in range(3):
        matches.play("random", "newer", key, num_games=4)
    assert made == [("random", 4), ("agent (2 simulations)", 4)]


# --- trained runs -----------------------------------------------------------------------------------------------------


def test_a_loaded_agent_has_the_saved_weights_and_the_budget_asked_for(saved):
    run_dir, params = saved
    agent = arena.load_agent(run_dir)
    tiny_run.assert_same(agent.params, params)
    assert (agent.iteration, agent.player.name, agent.config) == (6, "agent (2 simulations)", tiny_run.CONFIG)
    assert arena.load_agent(run_dir, 9).player.name == "agent (9 simulations)"


def test_a_run_can_be_an_opponent_with_its_own_weights(saved):
    run_dir, params = saved
    agent = arena.load_agent(run_dir)
    player, rival_params = arena.load_opponent(str(run_dir), agent._replace(params=None), 3)
    assert player.name == "agent (3 simulations)"
    tiny_run.assert_same(rival_params, params)


def test_a_run_of_another_game_is_no_opponent(saved, tmp_path):
    run_dir, _ = saved
    agent = arena.load_agent(run_dir)
    other = agent._replace(config=replace(agent.config, env="hex", board_size=3))
    with pytest.raises(ValueError, match="different games: env is hex here and tic_tac_toe in"):
        arena.load_opponent(str(run_dir), other, None)


@pytest.mark.parametrize("budget", [0, -3])
def test_an_agent_without_simulations_is_refused(saved, budget):
    with pytest.raises(ValueError, match=f"--num-simulations is {budget}, but must be positive"):
        arena.load_agent(saved[0], budget)


def test_a_folder_without_a_run_or_without_a_checkpoint_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no run"):
        arena.load_agent(tmp_path)
    (tmp_path / "config.json").write_text(configs.to_json(tiny_run.CONFIG))
    with pytest.raises(ValueError, match="no checkpoint in"):
        arena.load_agent(tmp_path)
