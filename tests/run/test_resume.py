"""A run can be stopped at any time, and resumed it ends like an uninterrupted one, bit for bit.

`start.train` runs here with the shared tiny program instead of its own compilation and without matches, whose results
no state depends on.
"""

import json
import signal
from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax.apps.evaluation.progress import Ladder, Versions
from muzero_jax.config import config_file
from muzero_jax.run import accounting, compiled, memory, metrics
from muzero_jax.run.flops import Flops
from muzero_jax.run.interrupt import Interrupt
from muzero_jax.run.machine import describe_device
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import checkpoint_steps
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG, assert_same
from tests.run.conftest import DRAWN, happening_in_chunk, saved_state, signalled_in_chunk

# --- bit for bit ------------------------------------------------------------------------------------------------------


def test_a_resumed_run_ends_bit_for_bit_like_an_uninterrupted_one(session, unbroken):
    """Also if it is resumed with nothing left of its budget."""
    for max_iterations in (4, 8, 8):
        resume = max_iterations > 4 or session.directory.exists()
        assert session(max_iterations=max_iterations, resume=resume).summary["iteration"] == max_iterations
    iteration, state = saved_state(session.directory)
    assert iteration == 8
    assert_same(state, unbroken[8])


def test_metrics_and_totals_of_a_resumed_run_continue(session):
    session(max_iterations=4)
    summary = session(max_iterations=8, resume=True).summary
    records = metrics.read_records(session.directory)
    chunks = [record for record in records if "selfplay/frames_per_second" in record]  # the others are of matches
    assert [record["iteration"] for record in chunks] == [2, 4, 6, 8]
    totals = {name: summary["totals"][name] for name in ("frames", "simulations", "updates")}
    assert totals == {"frames": 256, "simulations": 256 * CONFIG.search.num_simulations, "updates": 12}
    assert summary["totals"]["games"] == chunks[-1]["total/games"]
    minutes = [record["time/minutes"] for record in records]
    assert minutes == sorted(minutes)
    assert json.loads((session.directory / "summary.json").read_text()) == summary


def test_the_summary_has_the_device_the_precision_and_planned_and_peak_memory(session, monkeypatch):
    monkeypatch.setattr(memory, "peak", lambda devices: 12345)
    summary = session(max_iterations=4).summary
    assert summary["device"] == describe_device(2) and summary["precision"] != "auto"
    assert summary["memory"]["planned"] > memory.bytes_per_device(tiny_run.abstract_state())
    assert summary["memory"]["peak"] == 12345


def test_a_run_is_evaluated_after_equal_parts_of_its_budget_also_when_it_is_resumed(session):
    evaluation = replace(CONFIG.evaluation, parts=3)
    assert session(signalled_in_chunk(3), max_iterations=12, evaluation=evaluation).interrupted
    resumed = session(max_iterations=12, evaluation=evaluation, resume=True)
    assert list(resumed.summary["elo"]) == ["0", "4", "8", "12"]


def test_an_evaluation_that_a_kill_cut_off_is_made_up_for_before_the_run_continues(session, monkeypatch):
    evaluation, measure = replace(CONFIG.evaluation, parts=3), Versions.measure

    def killed(versions, params, iteration):
        if iteration == 8:
            raise MemoryError
        return measure(versions, params, iteration)

    with monkeypatch.context() as patch:
        patch.setattr(Versions, "measure", killed)
        with pytest.raises(MemoryError):
            session(max_iterations=12, evaluation=evaluation)
    assert checkpoint_steps(session.directory / "checkpoints")[-1] == 8
    resumed = session(max_iterations=12, evaluation=evaluation, resume=True)
    assert list(resumed.summary["elo"]) == ["0", "4", "8", "12"]


# --- what may not harm a run ------------------------------------------------------------------------------------------


def test_an_evaluation_while_training_leaves_a_summary(session):
    found, evaluation = [], replace(CONFIG.evaluation, parts=2)
    look = happening_in_chunk(3, lambda: found.append(run_directory.read_summary(session.directory)))
    session(look, max_iterations=8, evaluation=evaluation)
    assert (found[0]["iteration"], found[0]["finished"]) == (4, False)


def test_a_run_that_does_not_fit_in_memory_deletes_nothing_and_blocks_nothing(session, monkeypatch):
    session(max_iterations=4)
    with monkeypatch.context() as full:
        full.setattr(compiled, "available_memory_bytes", lambda num_devices=1: 1024)
        for changes in ({"overwrite": True}, {"resume": True}):
            with pytest.raises(ValueError, match="this run needs .*; lower --"):
                session(max_iterations=8, **changes)
    assert session(max_iterations=8, resume=True).summary["iteration"] == 8


def test_an_overwritten_run_leaves_nothing_behind_and_the_new_config_is_saved(session):
    session(max_iterations=6)
    assert session(max_iterations=4, overwrite=True, minutes=7.0).summary["totals"]["frames"] == 128
    assert config_file.load(session.directory) == replace(CONFIG, max_iterations=4, minutes=7.0)
    assert checkpoint_steps(session.directory / "checkpoints") == [2, 4]


def test_flags_that_do_not_fit_the_checkpoint_leave_the_run_as_it_was(session, unbroken):
    session(max_iterations=4)
    before = config_file.load(session.directory)
    with pytest.raises(ValueError, match="another network: its "):
        session(max_iterations=8, resume=True, network=replace(CONFIG.network, width=8))
    assert config_file.load(session.directory) == before
    assert_same(saved_state(session.directory)[1], unbroken[4])


def test_an_exception_of_a_callback_is_raised_after_the_run_is_saved(session):
    heard, evaluations, error = [], [], RuntimeError("no hope")

    def fail(record):
        heard.append(record["iteration"])
        raise error

    with pytest.raises(RuntimeError) as raised:
        session(max_iterations=8, on_metrics=fail, on_evaluation=lambda record: heard.append("evaluation"))
    assert raised.value is error and heard == [2], "nothing is called once one has failed"
    assert str(session.directory) in error.__notes__[0]
    assert checkpoint_steps(session.directory / "checkpoints") == [2]
    assert json.loads((session.directory / "summary.json").read_text())["finished"] is False
    resumed = session(max_iterations=8, resume=True, on_evaluation=evaluations.append)
    assert resumed.summary["iteration"] == 8
    records = metrics.read_records(session.directory)
    assert [record["iteration"] for record in records] == [2, 4, 6, 8, 8], "no record is lost or comes twice"
    assert evaluations == records[4:] and evaluations[0]["eval/random"] == 0.5, "the final matches"


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


def test_ctrl_c_finishes_the_chunk_and_saves(session, unbroken):
    before, evaluation = signal.getsignal(signal.SIGINT), replace(CONFIG.evaluation, interval_minutes=1e-9)
    result = session(signalled_in_chunk(2), max_iterations=8, evaluation=evaluation)
    assert signal.getsignal(signal.SIGINT) is before
    assert result.interrupted and not result.by_system and not result.summary["finished"]
    assert result.summary == json.loads((session.directory / "summary.json").read_text())
    assert result.summary["totals"]["frames"] == 128
    evaluated = [record["iteration"] for record in metrics.read_records(session.directory) if "eval/random" in record]
    assert 4 not in evaluated, "who asks for a stop waits for no match"
    assert (session.directory / "curves.png").exists()
    assert checkpoint_steps(session.directory / "checkpoints")[-1] == 4
    session(max_iterations=8, resume=True, evaluation=evaluation)
    assert_same(saved_state(session.directory)[1], unbroken[8])


def test_a_second_ctrl_c_stops_at_once():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with it ignored
    with pytest.raises(KeyboardInterrupt), Interrupt() as interrupt, interrupt.by_ctrl_c():
        signal.raise_signal(signal.SIGINT)
        assert interrupt.requested
        signal.raise_signal(signal.SIGINT)


# --- divergence -------------------------------------------------------------------------------------------------------


def diverging(state, progress):
    """The program, with parameters that are NaN from the third chunk on."""
    if int(state.iteration) >= 4:
        broken = jax.tree.map(lambda x: x * np.nan, state.learner.params)
        state = state._replace(learner=state.learner._replace(params=broken))
    return tiny_run.program()(state, progress)


def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_good_checkpoint(session, unbroken):
    with pytest.raises(ValueError, match=r"^train/\w+_loss is not finite at iteration 6.*learning-rate.*--resume"):
        session(diverging, max_iterations=8)
    iteration, state = saved_state(session.directory)
    assert iteration == 4
    assert_same(state, unbroken[4])
    session(max_iterations=8, resume=True)
    assert_same(saved_state(session.directory)[1], unbroken[8])


# --- what a run has cost ----------------------------------------------------------------------------------------------


def test_the_clock_counts_earlier_sessions_but_neither_compiling_nor_the_final_matches():
    clock = accounting.Clock(
        {"time/train": 60.0, "time/evaluate": 30.0, "time/compile": 45.0, "time/finish": 9.0, "train/loss": 9.0}
    )
    assert clock.minutes == 1.5
    with clock.measure("evaluate"):
        pass
    assert clock.minutes > 1.5 and clock.record()["time/train"] == 60.0


CHUNK = {
    "selfplay/games": np.array([3.0, 5.0]),
    "selfplay/decisive_games": np.array([1.0, 2.0]),
    "selfplay/frames": np.array([32.0, 32.0]),
    "selfplay/finished_frames": np.array([20.0, 40.0]),
    "selfplay/simulations": np.array([224.0, 256.0]),
    "train/updates": np.array([0.0, 2.0]),
    "train/loss": np.array([0.0, 0.7]),
}


def make_totals(config=CONFIG, record=None):
    return accounting.Totals(config, record or {}, Flops(100.0, 10.0))


def test_totals_average_losses_over_learning_iterations_only():
    record = make_totals(record={"total/games": 10.0}).add(CHUNK, seconds=4.0)
    assert record["total/games"] == 18 and record["train/loss"] == 0.7
    assert record["total/flops"] == 2 * 100 + 10
    assert record["selfplay/mean_length"] == 60 / 8
    assert record["selfplay/frames_per_second"] == 16
    assert record["selfplay/simulations_per_second"] == 120 and record["total/simulations"] == 480
    assert record["train/updates_per_second"] == 0.5
    unfinished = {"selfplay/games": np.zeros(2), "selfplay/finished_frames": np.zeros(2)}
    assert "selfplay/mean_length" not in make_totals().add(CHUNK | unfinished, seconds=4.0)


def test_simulations_are_added_to_those_of_earlier_sessions():
    assert make_totals(record={"total/simulations": 20.0}).add(CHUNK, seconds=4.0)["total/simulations"] == 500


def test_a_run_without_a_search_counts_no_simulations():
    totals = make_totals()
    record = totals.add({name: values for name, values in CHUNK.items() if "simulations" not in name}, seconds=4.0)
    assert not [name for name in (*record, *totals.summary(4.0)["totals"]) if "simulations" in name]


def test_time_is_split_by_purpose_and_a_program_that_plays_and_learns_is_one():
    chunk = dict.fromkeys(CHUNK, np.zeros(2))
    totals, clock = make_totals(), accounting.Clock({"time/train": 60.0})
    assert accounting.split_time(clock, totals)["self-play"] == 60  # nothing was learned
    totals.add(chunk | {"train/updates": np.array([2.0, 2.0])}, seconds=9.0)
    assert accounting.split_time(clock, totals)["self-play and learning"] == 60


# --- the ladder of a run's versions -----------------------------------------------------------------------------------


def test_a_ladder_read_back_has_the_same_ratings_without_versions_newer_than_the_checkpoint(tmp_path):
    ladder = Ladder(tmp_path / "elo.json")
    assert ladder.rivals() == [] and ladder.add(10, {}) == 0
    for iteration in (20, 30, 40):
        ladder.add(iteration, {rival: DRAWN | {"score": 0.75} for rival in ladder.rivals()})
    again, earlier = Ladder(tmp_path / "elo.json"), Ladder(tmp_path / "elo.json")
    again.load(up_to_iteration=40)
    assert again.ratings() == ladder.ratings() and again.rivals() == ladder.rivals() == [20, 40]
    assert sorted(ladder.ratings().values()) == list(ladder.ratings().values())
    earlier.load(up_to_iteration=20)
    assert list(earlier.ratings()) == ["10", "20"]
    earlier.add(25, {rival: DRAWN for rival in earlier.rivals()})
    assert list(earlier.ratings()) == ["10", "20", "25"]
