"""What a run is measured by while it trains."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation import openings, progress
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.apps.evaluation.progress import Ladder, Versions
from muzero_jax.run import metrics
from muzero_jax.storage.checkpoint import checkpoint_steps
from tests.reference import tiny_run


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


@pytest.mark.parametrize("final_games, size", [(16, 8), (8, 8), (20, 20)])
def test_what_is_compiled_beforehand_is_what_evaluations_play(tmp_path, final_games, size):
    """Rollout MCTS with 1,000 simulations plays at the end only; final matches share programs if they can."""
    evaluation = replace(
        tiny_run.CONFIG.evaluation, interval_minutes=1.0, games=8, final_games=final_games, mcts_simulations=(2, 1000)
    )
    params, arena = {"weights": jnp.ones(3)}, FakeArena()
    abstract = jax.eval_shape(lambda: params)
    versions = Versions(replace(tiny_run.CONFIG, evaluation=evaluation), arena, tmp_path, abstract)
    for compile_match in versions.compilations():
        compile_match()
    versions.begin(params)
    versions.measure(params, 1)
    quick = {("random", 8), ("mcts:2", 8), ("self", 4)}
    assert arena.played == quick
    versions.conclude(params, 2)
    assert arena.compiled == arena.played == quick | {(name, size) for name in ("random", "mcts:2", "mcts:1000")}


class FakeOpenings:
    """Says that every first move of Hex 3x3 wins, which is right for 5 of 9."""

    wins, compiled = openings.WINS[3], False

    def compile(self, params):
        self.compiled = True

    def values(self, params):
        return np.ones((3, 3))


def test_an_evaluation_judges_solved_first_stones_but_takes_them_for_no_opponent(tmp_path):
    params, arena = {"weights": jnp.ones(3)}, FakeArena()
    versions = Versions(tiny_run.CONFIG, arena, tmp_path, jax.eval_shape(lambda: params))
    assert versions.judge_openings(params) is None and progress.share_right(None) == {}
    assert metrics.OPENINGS not in versions.measure(params, 1)
    arena.openings = FakeOpenings()  # type: ignore
    for compile_one in versions.compilations():
        compile_one()
    assert arena.openings.compiled
    record = versions.measure(params, 2)
    assert record[metrics.OPENINGS] == 5 / 9 and metrics.scores(record) == {"random": 0.5}
    assert {"right": 5, "solved": 9}.items() <= versions.judge_openings(params).items()


def test_the_untrained_version_is_where_elo_begins(tmp_path):
    params = {"weights": jnp.ones(3)}
    versions = Versions(tiny_run.CONFIG, FakeArena(), tmp_path, jax.eval_shape(lambda: params))  # type: ignore
    assert versions.begin(params) == versions.begin(params) == {"eval/elo": 0.0}  # also if it is resumed at once
    versions.measure(params, 10)
    assert versions.ladder.by_iteration() == {"0": 0.0, "10": 0.0}  # all games were drawn
    assert checkpoint_steps(tmp_path / "versions") == [0, 10]


def test_in_a_game_for_one_nothing_is_played(tmp_path):
    arena = FakeArena()
    arena.has_matches = False  # type: ignore
    versions = Versions(tiny_run.CONFIG, arena, tmp_path, {})
    assert versions.begin({}) == {}
    assert versions.compilations() == []
    assert versions.measure({}, 1) == {} and versions.conclude({}, 1) == ({"strength": {}}, {})
    assert not arena.compiled | arena.played


# --- the ladder's file ------------------------------------------------------------------------------------------------


def damaged_ladders():
    games = [[1, 0, 3.0, 5.0], [2, 1, 4.0, 4.0]]
    yield from (b"", b"{", b"\xff\xfe", b"7", b"null", b"[]", b"[" * 100_000, b"{}", b'{"iterations": [1]}')
    for iterations in (7, ["1", "2", "3"], [[1], 2, 3]):
        yield {"iterations": iterations, "games": games}
    for game in (None, 3, [], [2, 1, 4.0], [2, 1, "x", 4], [2, 1, 10**400, 1]):
        yield {"iterations": [10, 20, 30], "games": [games[0], game]}
    for game in ([2, 1, 0, 0], [2, 2, 1, 1], [3, 0, 1, 1]):  # none of these connects the third version
        yield {"iterations": [10, 20, 30], "games": [games[0], game]}
    yield {"iterations": [10, 20, 30], "games": games[:1]}


@pytest.mark.parametrize("content", list(damaged_ladders()), ids=lambda content: repr(content)[:60])
def test_a_damaged_elo_json_is_one_sentence_that_names_it(tmp_path, content):
    file = tmp_path / "elo.json"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    with pytest.raises(ValueError) as error:
        Ladder(file).load(up_to_iteration=100)
    assert str(error.value) == f"{file} is damaged; restore a copy, or delete it to start the run's Elo anew"


def test_an_intact_elo_json_is_read_up_to_the_checkpoint(tmp_path):
    file = tmp_path / "elo.json"
    file.write_text('{"iterations": [10, 20, 30], "games": [[1, 0, 8.0, 0], [2, 1, 4, 4.0], [2, 0, 6, 2]]}')
    ladder = Ladder(file)
    ladder.load(up_to_iteration=29)
    assert ladder.iterations == [10, 20] and ladder.ratings()[1] > 0
