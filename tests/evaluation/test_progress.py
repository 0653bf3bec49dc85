"""What a run is measured by while it trains."""

from dataclasses import replace

import jax
import jax.numpy as jnp

from muzero_jax.evaluation.arena import Arena
from muzero_jax.evaluation.progress import Versions
from tests.reference import tiny_run


class FakeArena(Arena):
    """Notes what is compiled and what is played; every match is drawn."""

    has_matches = True

    def __init__(self):
        self.compiled, self.played = set(), set()

    def compile(self, opponent, params, *, num_games):
        self.compiled.add((opponent, num_games))

    def play(self, opponent, params, key, *, num_games, rival=None):
        self.played.add((opponent, num_games))
        return {"score": 0.5, "games": num_games}


def test_what_is_compiled_beforehand_is_what_evaluations_play(tmp_path):
    """The second one meets the first version; rollout MCTS with 1,000 simulations plays at the end only."""
    evaluation = replace(tiny_run.CONFIG.evaluation, games=8, mcts_simulations=(2, 1000))
    params, arena = {"weights": jnp.ones(3)}, FakeArena()
    abstract = jax.eval_shape(lambda: params)
    versions = Versions(replace(tiny_run.CONFIG, evaluation=evaluation), arena, tmp_path, abstract)
    versions.compile()
    for iteration in range(2):
        versions.measure(params, iteration)
    assert arena.compiled == arena.played == {("random", 8), ("mcts:2", 8), ("self", 4)}


def test_in_a_game_for_one_nothing_is_played(tmp_path):
    arena = FakeArena()
    arena.has_matches = False  # type: ignore
    versions = Versions(tiny_run.CONFIG, arena, tmp_path, {})
    versions.compile()
    assert versions.measure({}, 1) == versions.measure_fully({}, 1) == {} and not arena.compiled | arena.played
