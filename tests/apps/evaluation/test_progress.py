"""What a run is measured by while it trains."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.apps.evaluation.progress import Versions
from muzero_jax.run import metrics
from muzero_jax.storage.checkpoint import checkpoint_steps
from tests.reference import tiny_run

PARAMS = {"weights": jnp.ones(3)}


class FakeArena(Arena):
    """Notes what is compiled and what is played; every match is drawn."""

    has_matches, openings = True, None

    def __init__(self):
        self.compiled, self.played = set(), set()

    def compile(self, opponent, params, *, num_games):
        self.compiled.add((opponent, num_games))

    def play(self, opponent, params, key, *, num_games, num_matches=1, rival=None):
        self.played.add((opponent, num_games))
        return {"score": 0.5, "games": num_games}


@pytest.fixture
def versions(tmp_path):
    """Makes the versions of a run, with a fake arena, and evaluations changed by keywords."""

    def make(**changes):
        config = replace(tiny_run.CONFIG, evaluation=replace(tiny_run.CONFIG.evaluation, **changes))
        return Versions(config, FakeArena(), tmp_path, jax.eval_shape(lambda: PARAMS))

    return make


@pytest.mark.parametrize("final_games, size", [(16, 8), (20, 20)])
def test_what_is_compiled_beforehand_is_what_evaluations_play(versions, final_games, size):
    """Rollout MCTS with 1,000 simulations plays at the end only; final matches share programs if they can."""
    ours = versions(interval_minutes=1.0, games=8, final_games=final_games, mcts_simulations=(2, 1000))
    arena = ours._arena
    for compile_match in ours.compilations():
        compile_match()
    ours.begin(PARAMS)
    ours.measure(PARAMS, 1)
    quick = {("random", 8), ("mcts:2", 8), ("self", 4)}
    assert arena.played == quick
    ours.conclude(PARAMS, 2)
    assert arena.compiled == arena.played == quick | {(name, size) for name in ("random", "mcts:2", "mcts:1000")}


def test_an_evaluation_judges_solved_first_stones_but_takes_them_for_no_opponent(versions):
    """As if every first move of Hex 3x3 won, which is right for 5 of 9."""
    ours = versions()
    ours._arena.openings = SimpleNamespace(values=lambda params: np.ones((3, 3)))
    record = ours.measure(PARAMS, 2)
    assert record[metrics.OPENINGS] == 5 / 9 and metrics.scores(record) == {"random": 0.5}
    summary, final = ours.conclude(PARAMS, 3)
    assert {"right": 5, "solved": 9}.items() <= summary["openings"].items() and final[metrics.OPENINGS] == 5 / 9


def test_the_untrained_version_is_where_elo_begins(versions, tmp_path):
    ours = versions()
    assert ours.begin(PARAMS) == ours.begin(PARAMS) == {"eval/elo": 0.0}  # also if it is resumed at once
    ours.measure(PARAMS, 10)
    assert ours.ratings() == {"0": 0.0, "10": 0.0}  # all games were drawn
    assert checkpoint_steps(tmp_path / "versions") == [0, 10]
