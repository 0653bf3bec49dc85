"""Whether agents learn: minutes of training through the commands that a user types (all slow)."""

import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.agent import load_agent
from muzero_jax.ops.legal_actions import predicted_legal, uniform_legal_action
from tests.reference import tic_tac_toe
from tests.reference.pages import ROOT

pytestmark = pytest.mark.slow


def run(script, *arguments):
    """Standard output of a command that must succeed."""
    command = [sys.executable, f"experiments/{script}.py", *map(str, arguments)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


def train(run_dir, env, *arguments):
    run("train", "--env", env, "--run-dir", run_dir, "--evaluation.interval-minutes", 0, *arguments)


def evaluate(run_dir, how, *arguments):
    """What a subcommand of evaluate.py finds."""
    return json.loads(run("evaluate", how, "--run", run_dir, "--json", *arguments))


def best_moves(run_dir, num_simulations):
    """How often a search plays an optimal move of tic-tac-toe, of all 3,191 positions where it can err."""
    examined = evaluate(run_dir, "oracle", "--num-simulations", num_simulations)
    (searched,) = (score for score in examined["scores"] if score["player"] == f"{num_simulations} simulations")
    assert examined["can_err"] == 3191
    return searched["optimal_move_rate"]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_after_four_minutes_the_agent_plays_tic_tac_toe_perfectly_from_every_position(tmp_path, seed):
    train(tmp_path / "run", "tic_tac_toe", "--minutes", 4, "--seed", seed)
    result = evaluate(tmp_path / "run", "exhaustive")
    assert result["losses"] == 0, result
    assert best_moves(tmp_path / "run", 64) == 1.0


@pytest.mark.parametrize("seed", [0, 1])
def test_after_two_minutes_the_agent_never_loses_hex_3x3_as_second_player(tmp_path, seed):
    """With the swap rule the second player can win after every opening; as first player the agent may lose."""
    train(tmp_path / "run", "hex", "--board-size", 3, "--minutes", 2, "--seed", seed)
    result = evaluate(tmp_path / "run", "exhaustive")
    assert result["losses_as_second"] == 0, result


MEMBERS = {
    "AlphaZero": ["--model", "rules"],
    "AlphaZero, Reanalyze": ["--model", "rules", "--replay.reanalyze-fraction", 0.5],
    "PUCT, greedy after two moves": ["--search.policy", "puct", "--self-play.sampled-moves", 2],
    "playout cap": ["--self-play.full-search-share", 0.5],
    "values of search": ["--targets.search-value-weight", 0.5],
    "Reanalyze, a target network": ["--replay.reanalyze-fraction", 0.25, "--optimiser.target-decay", 0.99],
    "consistency": ["--optimiser.consistency-weight", 2.0],
    "prioritised": ["--replay.priority-exponent", 0.5],
}


@pytest.mark.parametrize("flags", MEMBERS.values(), ids=MEMBERS)
def test_every_variant_learns_tic_tac_toe(tmp_path, flags):
    """Random moves are optimal in 40% of these positions, and an agent that learns the wrong thing is little better."""
    train(tmp_path / "run", "tic_tac_toe", "--updates", 2000, *flags)
    assert best_moves(tmp_path / "run", 16) > 0.9


def test_a_model_learns_to_predict_legal_moves_and_the_sign_of_the_discount(tmp_path):
    """One imagined move from positions of random games, among them moves that end the game."""
    flags = ["--model", "learned_legality", "--network.predict-discount"]
    train(tmp_path / "run", "tic_tac_toe", "--updates", 2000, *flags)
    agent = load_agent(tmp_path / "run")
    environment, model = agent.environment, agent.model

    @jax.jit
    def look(states, key):
        roots = environment.roots(states)
        action = uniform_legal_action(key, roots.legal_action_mask)
        root = model.initial_inference(agent.params, roots.observation)
        said = model.recurrent_inference(agent.params, root.embedding, action)
        return (
            jax.vmap(environment.move)(states, action),
            predicted_legal(said.extras),
            jnp.argmax(said.extras["discount_logits"], -1) - 1,
        )

    states = jax.vmap(environment.init)(jax.random.split(jax.random.key(0), 512))
    legal_right, sign_right = [], []
    for ply in range(9):
        goes_on = ~states.terminated
        moved, legal, sign = look(states, jax.random.key(ply))
        states = moved.state
        sign_right += (sign == jnp.sign(moved.discount))[goes_on].tolist()
        legal_right += (legal == states.legal_action_mask)[goes_on & ~moved.is_last].ravel().tolist()
    assert np.mean(sign_right) > 0.97 and np.mean(legal_right) > 0.97, (np.mean(sign_right), np.mean(legal_right))


@pytest.fixture(scope="module")
def beginner(tmp_path_factory):
    """A run of one minute."""
    run_dir = tmp_path_factory.mktemp("runs") / "beginner"
    train(run_dir, "tic_tac_toe", "--minutes", 1)
    return run_dir


def score(run_dir):
    """The lower end of the interval of a run's score against random play."""
    return evaluate(run_dir, "match", "--games", 256)["ci95"][0]


def test_an_agent_learns_offline_from_the_games_of_another_run(beginner, tmp_path):
    run("train", "--offline", beginner, "--run-dir", tmp_path / "run", "--updates", 600, "--network.width", 64)
    assert score(tmp_path / "run") > 0.8


def test_an_agent_learns_offline_from_random_games_with_reanalyze(tmp_path):
    """No game here was played well, and none is added: better targets come only from searching positions again."""
    (tmp_path / "games.txt").write_text(random_games(2000))
    train(tmp_path / "run", "tic_tac_toe", "--offline", tmp_path / "games.txt", "--updates", 600)
    assert score(tmp_path / "run") > 0.8


def random_games(count):
    """Games of random play, a line each."""
    random, lines = np.random.default_rng(0), []
    for _ in range(count):
        board, moves, over = tic_tac_toe.EMPTY, [], False
        while not over:
            moves.append(int(random.choice(tic_tac_toe.legal_actions(board))))
            board, _, over = tic_tac_toe.play(board, moves[-1])
        lines.append(" ".join(map(str, moves)))
    return "\n".join(lines)
