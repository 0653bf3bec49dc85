"""Several boards in one run: settings and turns by hand, what a turn does not touch, and resuming."""

from dataclasses import replace

import jax
import pytest

from muzero_jax import presets
from muzero_jax.apps.commands.train import main, settle
from muzero_jax.apps.train import train
from muzero_jax.config.session import Session
from muzero_jax.run import metrics, sizes
from muzero_jax.types import TrainState
from tests.reference.tiny_run import assert_same, restore_latest

CONFIG = replace(presets.hex_any(8), board_sizes=(3, 8, 8), iterations_per_chunk=3)


def test_a_smaller_board_has_as_many_random_moves_a_game_and_shorter_returns():
    small = sizes.of_board(CONFIG, 4)
    assert small.self_play.exploration * 4**2 == pytest.approx(CONFIG.self_play.exploration * 8**2)
    assert (small.board_size, small.targets.td_steps, CONFIG.targets.td_steps) == (4, 16, 64)
    assert sizes.of_board(replace(CONFIG, env="go_9x9"), 4).targets.td_steps == 64, (
        "its games may be longer than its cells"
    )
    assert sizes.of_board(CONFIG, 8) == CONFIG, "the run's own board keeps every setting"


def test_a_size_that_is_named_twice_has_twice_as_many_turns():
    """A turn is a chunk: by iterations alone all of these would be the first board's."""
    assert [sizes.turn(CONFIG, iteration) for iteration in (0, 3, 6, 9, 12, 15)] == [3, 8, 8, 3, 8, 8]


def test_evaluation_uses_the_largest_board_unless_a_flag_names_another():
    given = {"env": "hex", "board_sizes": ["9", "11", "9"], "minutes": "1"}
    config = settle(given, Session())[0]
    assert (config.board_size, config.board_sizes) == (11, (9, 11, 9))
    small = settle(given | {"board_sizes": ["5", "7"]}, Session())[0]
    assert (small.network.kind, small.network.width) == (config.network.kind, config.network.width)
    assert settle(given | {"board_size": "9"}, Session())[0].board_size == 9


def test_a_turn_takes_and_changes_only_its_own_board():
    state = TrainState({"3x3": 1, "8x8": 2}, "learner", {"3x3": 3, "8x8": 4}, 0, "key")
    assert sizes.own_state(state, 8) == TrainState(2, "learner", 4, 0, "key")
    after = sizes.with_own(state, 8, TrainState(20, "wiser", 40, 2, "key"))
    assert after == TrainState({"3x3": 1, "8x8": 20}, "wiser", {"3x3": 3, "8x8": 40}, 2, "key")


def tiny(**changes):
    config = presets.hex_any(3)
    return replace(
        config,
        board_size=4,
        board_sizes=(3, 4),
        minutes=None,
        iterations_per_chunk=1,
        network=replace(config.network, kind="fully_convolutional", width=4, num_blocks=0),
        search=replace(config.search, num_simulations=2, max_num_considered_actions=2),
        self_play=replace(config.self_play, num_envs=4, rollout_length=4),
        replay=replace(config.replay, replay_length=32, min_frames=0),
        targets=replace(config.targets, unroll_steps=1, td_steps=16),
        optimiser=replace(config.optimiser, batch_size=4, updates_per_iteration=1, schedule="constant"),
        evaluation=replace(config.evaluation, interval_minutes=0.0, final_games=2, games=2, mcts_simulations=()),
        **changes,
    )


@pytest.mark.slow
def test_a_turn_does_not_touch_the_other_board_and_a_resumed_run_equals_an_uninterrupted_one(tmp_path):
    """Each board's first window comes with its sixth turn at the latest, so all boards have learned by 12."""
    train(tiny(max_iterations=13), tmp_path / "whole")
    train(tiny(max_iterations=12), tmp_path / "broken")
    assert main(["--resume", "--run-dir", str(tmp_path / "broken"), "--max-iterations", "13"]) == 0
    config = tiny(max_iterations=13)
    own = {size: sizes.make_algorithm(sizes.of_board(config, size)) for size in (3, 4)}
    abstract = sizes.make_init(own, 0, jax.make_mesh((1,), ("data",))).eval_shape()
    (_, whole), (_, broken) = (
        restore_latest(tmp_path / name / "checkpoints", abstract) for name in ("whole", "broken")
    )
    assert_same(whole, broken)
    assert [int(whole.replay[name].num_stored) for name in ("3x3", "4x4")] == [28, 24], "7 turns and 6"
    assert int(whole.learner.num_updates) > 6
    last = metrics.last_record(tmp_path / "whole", up_to_iteration=13)
    assert {"eval/openings_right_3x3", "eval/openings_right"} <= last.keys()
