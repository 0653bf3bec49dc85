"""A run can be stopped at any time, by anything, and goes on as if nothing had happened, bit for bit.

`start.train` runs here with the shared tiny program in place of its own compilation and without matches, whose results
no state depends on.
"""

import json
import shutil
import signal
import weakref
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.apps.evaluation.arena import Arena
from muzero_jax.apps.evaluation.progress import Ladder, Versions
from muzero_jax.ops import devices, precision
from muzero_jax.run import accounting, budget, loop, memory, metrics, program, run
from muzero_jax.run.interrupt import Interrupt
from muzero_jax.run.memory import bytes_per_device
from muzero_jax.run.metrics import plot_curves
from muzero_jax.storage import config as configs
from muzero_jax.storage.checkpoint import Checkpointer, checkpoint_steps
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG, assert_same
from tests.run.conftest import DRAWN, saved_state

# --- bit for bit ------------------------------------------------------------------------------------------------------


def test_a_checkpoint_restored_elsewhere_continues_bit_for_bit(unbroken, tmp_path):
    """Parameters, optimiser, replay, keys and games: 2 chunks, a checkpoint, everything anew, 2 more chunks."""
    state = tiny_run.make_init()()
    for _ in range(2):
        state, _ = tiny_run.program()(state, tiny_run.PROGRESS)
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(4, state)
    del state
    with Checkpointer(tmp_path) as elsewhere:
        abstract = program.make_init(algorithms.make(CONFIG), CONFIG.seed, tiny_run.mesh()).eval_shape()
        iteration, state = elsewhere.restore_latest(abstract)
    assert iteration == 4
    assert_same(state, unbroken[4])
    for _ in range(2):
        state, _ = tiny_run.program()(state, tiny_run.PROGRESS)
    assert_same(state, unbroken[8])


@pytest.mark.parametrize("name", ["adafactor", "muon"])
def test_the_state_of_every_optimiser_survives_a_checkpoint(name, tmp_path):
    """Each has a structure of its own, with places for weights that it leaves to another."""
    config = replace(CONFIG, optimiser=replace(CONFIG.optimiser, name=name))
    init = program.make_init(algorithms.make(config), CONFIG.seed, tiny_run.mesh())
    state = init()
    with Checkpointer(tmp_path) as checkpoints:
        checkpoints.save(2, state)
    with Checkpointer(tmp_path) as elsewhere:
        iteration, restored = elsewhere.restore_latest(init.eval_shape())
    assert iteration == 2
    assert jax.tree.structure(restored) == jax.tree.structure(state)
    assert_same(restored, state)


def test_a_resumed_run_ends_where_an_unbroken_one_does(session, unbroken):
    first = session(max_iterations=4)
    assert first.summary["iteration"] == 4
    second = session(max_iterations=8, resume=True)
    assert second.summary["iteration"] == 8
    iteration, state = saved_state(session.directory)
    assert iteration == 8
    assert_same(state, unbroken[8])


def test_metrics_and_totals_of_a_resumed_run_go_on(session):
    session(max_iterations=4)
    summary = session(max_iterations=8, resume=True).summary
    records = metrics.read_records(session.directory)
    chunks = [record for record in records if "selfplay/frames_per_second" in record]  # the others are of matches
    assert [record["iteration"] for record in chunks] == [2, 4, 6, 8]
    assert [record["total/frames"] for record in chunks] == [64, 128, 192, 256]
    totals = {name: summary["totals"][name] for name in ("frames", "simulations", "updates")}
    assert totals == {"frames": 256, "simulations": 256 * CONFIG.search.num_simulations, "updates": 12}
    assert summary["totals"]["games"] == chunks[-1]["total/games"]
    minutes = [record["time/minutes"] for record in records]
    assert minutes == sorted(minutes)
    assert json.loads((session.directory / "summary.json").read_text()) == summary


def test_a_run_whose_metrics_are_gone_says_that_it_counts_anew(session):
    session(max_iterations=4)
    (session.directory / metrics.FILE).unlink()
    summary = session(max_iterations=8, resume=True).summary
    assert any("metrics.jsonl has no record of the run so far" in line for line in session.said)
    assert summary["iteration"] == 8 and summary["totals"]["frames"] == 128


def test_the_summary_says_where_a_run_was_made_and_what_auto_meant_there(session, monkeypatch):
    monkeypatch.setattr(precision, "has_amx", lambda: True)
    summary = session(max_iterations=4).summary
    assert CONFIG.network.compute_dtype == "auto"
    assert (summary["device"], summary["precision"]) == (devices.describe_device(2), "bfloat16_products")


def test_the_summary_sets_the_memory_held_beside_the_plan(session, monkeypatch):
    monkeypatch.setattr(memory, "peak", lambda devices: 12345)
    found = session(max_iterations=4).summary["memory"]
    assert found["planned"] > bytes_per_device(tiny_run.abstract_state())
    assert found["peak"] == 12345


def test_what_made_the_first_state_is_gone_when_chunks_run(session, monkeypatch):
    """Its program would stay in memory as long as it does."""

    class Init:
        def __call__(self):
            return tiny_run.make_init()()

        def eval_shape(self):
            return tiny_run.make_init().eval_shape()

    made, alive = [], []

    def make_init(*arguments):
        init = Init()
        made.append(weakref.ref(init))
        return init

    def chunk(state, progress):
        alive.append(made[0]() is not None)
        return tiny_run.program()(state, progress)

    monkeypatch.setattr(program, "make_init", make_init)
    session(chunk, max_iterations=4)
    assert len(made) == 1 and alive == [False, False]


def test_a_run_that_does_not_fit_deletes_nothing_and_blocks_nothing(session, monkeypatch):
    session(max_iterations=4)
    with monkeypatch.context() as full:
        full.setattr(devices, "available_memory_bytes", lambda num_devices=1: 1024)
        for changes in ({"overwrite": True}, {"resume": True}):
            with pytest.raises(ValueError, match="this run needs .*; lower --"):
                session(max_iterations=8, **changes)
    assert session(max_iterations=8, resume=True).summary["iteration"] == 8


def test_a_run_whose_newest_checkpoint_is_damaged_says_so_and_resumes_from_the_one_before(session, unbroken):
    session(max_iterations=6)
    newest = session.directory / "checkpoints" / "6"
    (newest / "state" / "manifest.ocdbt").unlink()
    with pytest.raises(ValueError, match=f"checkpoint {newest} cannot be read, so it may be damaged .*; delete it"):
        session(max_iterations=8, resume=True)
    shutil.rmtree(newest)
    session(max_iterations=8, resume=True)
    assert_same(saved_state(session.directory)[1], unbroken[8])


def test_a_finished_run_that_is_resumed_learns_nothing_more_and_loses_nothing(session, unbroken):
    session(max_iterations=4)
    (session.directory / "notes.txt").write_text("precious")
    session(max_iterations=4, resume=True, overwrite=True)
    assert_same(saved_state(session.directory)[1], unbroken[4])
    assert (session.directory / "notes.txt").exists()


def test_a_run_whose_budget_was_spent_before_any_version_was_rated_can_be_resumed(session):
    session(interrupted_in_chunk(2), max_iterations=8)
    summary = session(max_iterations=4, resume=True).summary
    assert (summary["iteration"], summary["elo"]) == (4, {})


def test_a_run_without_an_update_is_an_error_that_says_what_to_do_and_can_be_resumed(session):
    words = "no update: learning begins with iteration 3, .* 2 iterations held 2; .*--resume --max-iterations 9$"
    with pytest.raises(ValueError, match=words):
        session(max_iterations=2, minutes=None)
    assert session(max_iterations=4, minutes=None, resume=True).summary["totals"]["updates"] > 0


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------


def interrupted_in_chunk(number):
    """The program, with a Ctrl-C while chunk `number` runs."""
    calls = []

    def program(state, progress):
        calls.append(None)
        if len(calls) == number:
            signal.raise_signal(signal.SIGINT)
        return tiny_run.program()(state, progress)

    return program


def test_ctrl_c_finishes_the_chunk_and_saves(session, unbroken, monkeypatch):
    monkeypatch.setattr(metrics, "plot_curves", plot_curves)  # the real one
    result = session(interrupted_in_chunk(2), max_iterations=8)
    assert result.interrupted and not result.by_system and not result.summary["finished"]
    assert result.summary == json.loads((session.directory / "summary.json").read_text())
    assert result.summary["totals"]["frames"] == 128
    assert (session.directory / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert checkpoint_steps(session.directory / "checkpoints")[-1] == 4
    session(max_iterations=8, resume=True)
    assert_same(saved_state(session.directory)[1], unbroken[8])


def test_ctrl_c_in_the_final_matches_loses_nothing_and_they_can_be_played_later(session, monkeypatch):
    def interrupt(*arguments, **keywords):
        raise KeyboardInterrupt

    with monkeypatch.context() as matches, pytest.raises(KeyboardInterrupt):
        matches.setattr(Arena, "play", interrupt)
        session(max_iterations=4)
    assert not json.loads((session.directory / "summary.json").read_text())["finished"]
    budget.check_left(replace(CONFIG, max_iterations=4), session.directory)  # something is: the matches
    summary = session(max_iterations=4, resume=True).summary
    assert summary["finished"] and summary["strength"] == {"random": DRAWN}
    with pytest.raises(ValueError, match="nothing is left of 4 iterations; give --max-iterations 8"):
        budget.check_left(replace(CONFIG, max_iterations=4), session.directory)


def test_a_run_that_is_interrupted_before_its_first_chunk_can_be_resumed(session, monkeypatch, unbroken):
    evaluation = replace(CONFIG.evaluation, interval_minutes=0.001)
    begin = Versions.begin

    def begin_and_interrupt(self, params):
        signal.raise_signal(signal.SIGINT)
        return begin(self, params)

    with monkeypatch.context() as early:
        early.setattr(Versions, "begin", begin_and_interrupt)
        assert session(max_iterations=4, evaluation=evaluation).interrupted
    assert checkpoint_steps(session.directory / "checkpoints") == [0]
    assert list(session(max_iterations=4, evaluation=evaluation, resume=True).summary["elo"]) == ["0", "2", "4"]
    assert_same(saved_state(session.directory)[1], unbroken[4])


def test_a_run_is_evaluated_after_equal_parts_of_its_budget_also_when_it_is_resumed(session):
    evaluation = replace(CONFIG.evaluation, parts=3)
    assert session(interrupted_in_chunk(3), max_iterations=12, evaluation=evaluation).interrupted
    resumed = session(max_iterations=12, evaluation=evaluation, resume=True)
    assert list(resumed.summary["elo"]) == ["0", "4", "8", "12"]


def test_ctrl_c_hands_its_meaning_back_afterwards(session):
    before = signal.getsignal(signal.SIGINT)
    session(interrupted_in_chunk(1), max_iterations=8)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_ctrl_c_stops_at_once():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job starts with it ignored
    with pytest.raises(KeyboardInterrupt), Interrupt() as interrupt, interrupt.by_ctrl_c():
        signal.raise_signal(signal.SIGINT)
        assert interrupt.requested
        signal.raise_signal(signal.SIGINT)


# --- divergence -------------------------------------------------------------------------------------------------------


def diverging(state, progress):
    """The program; from the third chunk on with parameters that are no numbers."""
    if int(state.iteration) >= 4:
        broken = jax.tree.map(lambda x: x * jnp.nan, state.learner.params)
        state = state._replace(learner=state.learner._replace(params=broken))
    return tiny_run.program()(state, progress)


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_last_good_checkpoint(session, unbroken):
    with pytest.raises(ValueError, match="not finite at iteration 6.*--resume.*learning-rate"):
        session(diverging, max_iterations=8)
    iteration, state = saved_state(session.directory)
    assert iteration == 4
    assert_same(state, unbroken[4])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_the_metric_that_is_not_finite_is_named_and_a_heads_before_their_sum(value):
    assert run.not_finite({"train/loss": 1.0, "train/gradient_norm": value}) == "train/gradient_norm"
    for term in ("value", "reconstruction", "consistency", "legality", "discount"):
        record = {"train/loss": value, f"train/{term}_loss": value, "train/policy_loss": 1.0}
        assert run.not_finite(record) == f"train/{term}_loss"
    assert run.not_finite({"train/loss": 1.0}) is run.not_finite({}) is None


def test_a_run_that_diverges_before_its_first_checkpoint_is_told_to_begin_anew(session, monkeypatch):
    monkeypatch.setattr(tiny_run, "SESSION", replace(tiny_run.SESSION, checkpoint_minutes=0.0))
    with pytest.raises(ValueError, match="nothing was saved yet; begin again with --overwrite and a lower --optim"):
        session(diverging, max_iterations=8)
    assert checkpoint_steps(session.directory / "checkpoints") == []
    assert session(max_iterations=4, overwrite=True).summary["finished"]


def test_a_run_that_is_overwritten_leaves_nothing_behind_and_its_config_is_the_new_ones(session):
    session(max_iterations=6)
    assert session(max_iterations=4, overwrite=True, minutes=7.0).summary["totals"]["frames"] == 128
    assert configs.load(session.directory) == replace(CONFIG, max_iterations=4, minutes=7.0)
    assert checkpoint_steps(session.directory / "checkpoints") == [2, 4]


def test_flags_that_do_not_fit_the_checkpoint_leave_the_run_as_it_was(session, unbroken):
    session(max_iterations=4)
    before = configs.load(session.directory)
    with pytest.raises(ValueError, match="another network: its "):
        session(max_iterations=8, resume=True, network=replace(CONFIG.network, width=8))
    assert configs.load(session.directory) == before
    assert_same(saved_state(session.directory)[1], unbroken[4])


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
    "train/updates": np.array([0.0, 2.0]),
    "train/loss": np.array([0.0, 0.7]),
}


def test_totals_average_losses_over_learning_iterations_only():
    totals = accounting.Totals(CONFIG, {"total/games": 10.0})
    record = totals.add(CHUNK, seconds=4.0)
    assert record["total/games"] == 18 and record["train/loss"] == 0.7
    assert record["selfplay/mean_length"] == 60 / 8
    assert record["selfplay/frames_per_second"] == 16
    assert record["selfplay/simulations_per_second"] == 16 * CONFIG.search.num_simulations
    assert record["train/updates_per_second"] == 0.5


def test_games_that_none_has_finished_have_no_mean_length():
    unfinished = {"selfplay/games": np.zeros(2), "selfplay/finished_frames": np.zeros(2)}
    assert "selfplay/mean_length" not in accounting.Totals(CONFIG, {}).add(CHUNK | unfinished, seconds=4.0)


def test_simulations_of_earlier_sessions_are_counted_with_their_own_budget():
    first = accounting.Totals(replace(CONFIG, search=replace(CONFIG.search, num_simulations=100)), {})
    record = first.add(CHUNK, seconds=4.0)
    second = accounting.Totals(replace(CONFIG, search=replace(CONFIG.search, num_simulations=7)), record)
    assert second.add(CHUNK, seconds=4.0)["total/simulations"] == 64 * 100 + 64 * 7


def test_self_play_is_timed_while_nothing_learns_and_not_set_apart_if_it_never_was():
    chunk = dict.fromkeys(CHUNK, np.zeros(2))
    learning = chunk | {"train/updates": np.array([2.0, 2.0])}
    totals, clock = accounting.Totals(CONFIG, {}), accounting.Clock({"time/train": 60.0})
    assert accounting.split_time(clock, totals)["self-play"] == 60  # nothing was learned
    totals.add(learning, seconds=9.0)
    assert accounting.split_time(clock, totals)["self-play and learning"] == 60
    for seconds in (90.0, 4.0, 4.0, 4.0):  # the first chunk of all is slower
        totals.add(chunk, seconds=seconds)
    totals.add(chunk | {"train/updates": np.array([0.0, 2.0])}, seconds=7.0)
    for seconds in (9.0, 15.0, 12.0, 99.0):  # three that learn are compared
        totals.add(learning, seconds=seconds)
    split = accounting.split_time(clock, totals)
    assert (split["self-play"], split["learning"]) == (pytest.approx(20), pytest.approx(40))
    assert accounting.Totals(CONFIG, totals.record()).self_play_share == pytest.approx(1 / 3)


def test_where_learning_seems_to_cost_nothing_it_is_not_set_apart():
    totals, clock = accounting.Totals(CONFIG, {}), accounting.Clock({"time/train": 60.0})
    chunk = dict.fromkeys(CHUNK, np.zeros(2))
    totals.add(chunk, seconds=9.0)  # something else kept the machine busy
    totals.add(chunk | {"train/updates": np.array([2.0, 2.0])}, seconds=5.0)
    assert accounting.split_time(clock, totals)["self-play and learning"] == 60


def test_a_timer_is_due_once_per_interval_and_never_if_that_is_0():
    timer = loop.Timer(2.0, now=10.0)
    assert [timer.due(now) for now in (11.0, 12.0, 12.5, 13.9, 14.0)] == [False, True, False, False, True]
    assert not loop.Timer(0.0, now=0.0).due(1e9)


# --- the ladder of a run's versions -----------------------------------------------------------------------------------


def test_a_ladder_read_back_has_the_same_ratings_and_rivals(tmp_path):
    ladder = Ladder(tmp_path / "elo.json")
    assert ladder.rivals() == []
    assert ladder.add(10, {}) == 0
    for iteration in (20, 30, 40):
        ladder.add(iteration, {rival: DRAWN | {"score": 0.75} for rival in ladder.rivals()})
    assert ladder.rivals() == [20, 40]
    again = Ladder(tmp_path / "elo.json")
    again.load(up_to_iteration=40)
    assert again.by_iteration() == ladder.by_iteration()
    assert again.rivals() == [20, 40]
    assert sorted(ladder.ratings()) == ladder.ratings()


def test_a_ladder_forgets_versions_newer_than_the_checkpoint(tmp_path):
    ladder = Ladder(tmp_path / "elo.json")
    for iteration in (10, 20, 30):
        ladder.add(iteration, {rival: DRAWN for rival in ladder.rivals()})
    again = Ladder(tmp_path / "elo.json")
    again.load(up_to_iteration=20)
    assert list(again.by_iteration()) == ["10", "20"]
    again.add(25, {rival: DRAWN for rival in again.rivals()})
    assert list(again.by_iteration()) == ["10", "20", "25"]


def test_a_ladder_of_two_is_the_elo_of_their_match(tmp_path):
    ladder = Ladder(tmp_path / "elo.json")
    ladder.add(1, {})
    rating = ladder.add(2, {1: DRAWN | {"score": 0.75, "games": 4000}})
    assert rating == pytest.approx(400 * np.log10(3), abs=0.5)
