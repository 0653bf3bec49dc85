"""The hardware report: crossovers by hand, equal results before times are compared, and a whole tiny report."""

import datetime
import itertools
import os
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy import stats

from experiments.command_line import report_errors
from muzero_jax.arithmetic import convolution
from scripts import hardware_report
from scripts.benchmarks.workloads import noisy_params
from scripts.report import (
    arithmetic_section,
    chapters,
    formatting,
    interference,
    machine,
    markdown,
    particles,
    particles_section,
    plan,
    run_section,
    timing,
)
from scripts.report import network_section as networks
from scripts.report.crossover import (
    Crossover,
    compare,
    crossover,
    describe_comparison,
    describe_crossover,
    describe_winners,
)
from scripts.report.interference import Interference, taken_share
from scripts.report.plain_network import initial_then_recurrent
from scripts.report.precision_section import InDtypes
from scripts.report.records import Section
from scripts.report.run_section import GpuReadings, Phases, Reading, Run, short_run, told_apart
from scripts.report.throughput import ALL, NETWORK_ALONE, ONE, Measured, measure_learner, measure_search
from scripts.report.throughput_section import throughput_section
from scripts.report.timing import Fresh, Limits, Sample, measure_in_turn, rate, sweep
from scripts.report.utilisation_section import Work, memory_section, utilisation_section
from tests.reference import tiny_run

SMALL = plan.Network("small", "mlp", 8, 1, 3, (1, 2))
CONFIG = replace(tiny_run.CONFIG, env="hex", board_size=3)
TINY = plan.Plan(
    matrix_sizes=(4, 8),
    vector_sizes=(10, 20),
    networks=(SMALL,),
    precision_matrix=8,
    precision_batch=2,
    precision_tower_batch=1,
    searches=(),
    learners=(),
    run=CONFIG,
    transfer_bytes=(64, 128),
    particles=((20, 4),),
    particle_steps=2,
    limits=Limits(call_seconds=1.0, table_seconds=30.0),
    all_devices=False,
)
RUN = Run(
    CONFIG,
    num_devices=2,
    seconds={"self-play": 2.0, "learning": 5.0, "evaluation": 1.0, "compilation": 2.0, "final matches": 0.0},
    rates={"games": 10.0, "frames": 100.0, "simulations": 400.0, "updates": 3.0},
    cpu_busy={"training": 0.75},
    gpu_busy={},
)


def exactly(**seconds):
    """Samples without spread, by size: `exactly(b1=0.5)` is {1: 0.5 s}."""
    return {int(name[1:]): Sample(value, value, value) for name, value in seconds.items()}


def test_crossover_of_a_time_that_grows_and_one_that_does_not():
    host = {1: 1.0, 10: 10.0, 100: 100.0}
    accelerator = {1: 4.0, 10: 4.0, 100: 4.0}
    found = crossover(host, accelerator)  # host(b) = b meets 4 at b = 4
    assert found == Crossover(pytest.approx(4.0), 1, 10)
    assert describe_crossover(found) == "between 1 and 10, near 4"


def test_crossover_between_two_growing_times():
    # On logarithmic axes the lag falls from log 4 to -log 4: half-way between 4 and 16 is 8.
    assert crossover({4: 1.0, 16: 4.0}, {4: 4.0, 16: 1.0}).at == pytest.approx(8.0)
    # From log 2 to -log 4: a third of the way from 1 to 64, which is 4.
    assert crossover({1: 1.0, 64: 4.0}, {1: 2.0, 64: 1.0}).at == pytest.approx(4.0)


def test_crossover_is_the_last_one_where_times_cross_more_than_once():
    first, second = {1: 2.0, 2: 1.0, 4: 1.0, 8: 4.0}, {1: 1.0, 2: 2.0, 4: 4.0, 8: 1.0}
    assert crossover(first, second)[1:] == (4, 8)


def test_no_crossover_at_either_end():
    assert crossover({1: 1.0, 2: 1.0}, {1: 2.0, 2: 1.0}) == Crossover(None, 2, None)  # a tie is not ahead
    assert crossover({1: 2.0, 2: 2.0}, {1: 1.0, 2: 1.0}) == Crossover(1.0, None, 1)
    assert describe_crossover(Crossover(None, 2, None)) == "never, up to 2"
    assert describe_crossover(Crossover(1.0, None, 1)) == "ahead from the smallest, 1"


def test_crossover_reads_only_the_sizes_that_both_tables_have():
    assert crossover({1: 1.0, 4: 9.0, 8: 9.0}, {2: 5.0, 4: 3.0, 8: 3.0}) == Crossover(4.0, None, 4)
    with pytest.raises(ValueError, match="no size in common"):
        crossover({1: 1.0}, {2: 1.0})


def test_a_difference_is_clear_only_where_the_ranges_do_not_touch():
    first = {1: Sample(1.0, 0.9, 1.1), 2: Sample(1.0, 0.9, 2.0), 4: Sample(6.0, 5.0, 7.0), 8: Sample(1.0, 1.0, 1.0)}
    second = {1: Sample(2.0, 1.9, 2.1), 2: Sample(3.0, 2.0, 4.0), 4: Sample(2.0, 1.0, 3.0)}
    found = compare(first, second)
    assert (found.faster, found.slower, list(found.unclear)) == ({1: 2.0}, {4: 3.0}, [2])
    assert describe_comparison("A", "B", "at batch", found) == (
        "A against B: faster at batch 1 (2x); slower at batch 4 (3x); not clearly different at batch 2."
    )


def test_winners_are_named_by_size():
    times = {"A": exactly(b1=1.0, b2=1.0, b4=3.0), "B": exactly(b1=2.0, b2=2.0, b4=2.0)}
    assert describe_winners(times, "at n =") == "fastest by median: A at n = 1, 2; B at n = 4."


def test_what_holds_everywhere_is_said_in_one_word():
    times = {"A": exactly(b1=1.0, b2=1.0), "B": exactly(b1=2.0, b2=4.0)}
    assert describe_winners(times, "at n =") == "fastest by median: A everywhere, 2 of 2 measured."
    sentence = describe_comparison("A", "B", "at n =", compare(times["A"], times["B"]))
    assert sentence == "A against B: faster everywhere, 2 of 2 measured (2x to 4x)."


def test_cpu_time_of_others_is_what_was_busy_less_ones_own(tmp_path, monkeypatch):
    assert taken_share(busy=7.0, own=4.0, wall=2.0, cores=3) == 0.5
    assert taken_share(busy=1.0, own=1.2, wall=1.0, cores=1) == 0.0  # clocks of different grain
    ticks = os.sysconf("SC_CLK_TCK")
    stat = tmp_path / "stat"
    stat.write_text("cpu 0 0 0 0 0 0 0 0 0 0\n")
    others = Interference(stat)
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    monkeypatch.setattr(interference.time, "perf_counter", itertools.count(step=10).__next__)
    monkeypatch.setattr(os, "times", lambda: (0.0,) * 5)
    with others.stage("search"):
        stat.write_text(f"cpu {3 * ticks} 0 {ticks} {99 * ticks} {99 * ticks} 0 0 {ticks} 0 0\n")
    assert others.shares() == {"search": 0.5}  # user 3, system 1, stolen 1 in 10 seconds; idle and disk don't count
    assert "took 50%" in others.warnings()[0]


def test_where_nobody_counts_cpu_time_nothing_is_claimed(tmp_path):
    others = Interference(tmp_path / "missing")
    with others.stage("search"):
        pass
    assert (others.total(), others.warnings(), others.table().rows) == (None, [], [("unknown", "-")])


def test_a_rate_turns_the_spread_around():
    assert rate(12.0, Sample(3.0, 2.0, 4.0)) == Sample(4.0, 3.0, 6.0)


def test_candidates_run_in_turn_and_the_first_call_is_not_counted(monkeypatch):
    calls, now = [], itertools.count()
    monkeypatch.setattr(timing, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(now)))  # every call takes one second
    samples = measure_in_turn({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, repeats=5)
    assert calls == ["a", "b"] + ["a", "b"] * 5
    assert samples == {"a": Sample(1.0, 1.0, 1.0), "b": Sample(1.0, 1.0, 1.0)}


class FakeTime:
    """A clock that calls and pauses move on; threads spin until `rest_at`, and use up the process's time till then."""

    def __init__(self):
        self.now, self.rest_at = 0.0, 0.0

    def perf_counter(self):
        return self.now

    def process_time(self):
        return min(self.now, self.rest_at)

    def sleep(self, seconds):
        self.now += seconds


def test_short_calls_are_timed_once_threads_are_awake(monkeypatch):
    """The first four calls after a pause take twice as long as the rest."""
    clock, asleep = FakeTime(), 0

    def sleep(seconds):
        nonlocal asleep
        clock.now, asleep = clock.now + seconds, 4

    def call():
        nonlocal asleep
        clock.now += 0.012 if asleep else 0.006
        asleep = max(0, asleep - 1)

    monkeypatch.setattr(timing, "time", clock)
    monkeypatch.setattr(clock, "sleep", sleep)
    assert measure_in_turn({"a": call})["a"] == pytest.approx((0.006, 0.006, 0.006))


def test_a_candidate_waits_until_the_threads_of_the_one_before_rest(monkeypatch):
    clock = FakeTime()

    def spins():
        clock.now += 0.01
        clock.rest_at = clock.now + 0.105

    def suffers():
        clock.now += 0.2 if clock.now < clock.rest_at else 0.1

    monkeypatch.setattr(timing, "time", clock)
    samples = measure_in_turn({"spins": spins, "suffers": suffers})
    assert samples["suffers"] == pytest.approx((0.1, 0.1, 0.1))
    assert samples["spins"] == pytest.approx((0.01, 0.01, 0.01))


def test_threads_that_never_rest_are_not_waited_for_long(monkeypatch):
    clock = FakeTime()
    clock.rest_at = float("inf")
    monkeypatch.setattr(timing, "time", clock)
    measure_in_turn({"a": lambda: clock.sleep(1.0)}, repeats=5)
    assert clock.now == pytest.approx(1.0 + 5 * (timing.MAX_PAUSES * timing.PAUSE_SECONDS + 1.0))


@pytest.mark.parametrize(("call_seconds", "samples"), [(0.2, 7), (0.3, 5)])
def test_long_calls_are_repeated_less(monkeypatch, call_seconds, samples):
    clock, calls = FakeTime(), []

    def call():
        clock.now += call_seconds
        calls.append(1)

    monkeypatch.setattr(timing, "time", clock)
    assert measure_in_turn({"a": call})["a"].median == pytest.approx(call_seconds)
    calls_per_sample = 2 if call_seconds < timing.LONG_SECONDS else 1  # the first only wakes the threads up
    assert len(calls) == 1 + samples * calls_per_sample


def test_calls_of_middling_length_are_timed_warm_too(monkeypatch):
    """The first call after a pause takes longer than a short sample, the others do not."""
    clock, asleep = FakeTime(), False

    def sleep(seconds):
        nonlocal asleep
        asleep = True

    def call():
        nonlocal asleep
        clock.now += 0.061 if asleep else 0.038
        asleep = False

    monkeypatch.setattr(timing, "time", clock)
    monkeypatch.setattr(clock, "sleep", sleep)
    assert measure_in_turn({"a": call})["a"] == pytest.approx((0.038, 0.038, 0.038))


def test_a_fresh_input_is_made_for_every_call(monkeypatch):
    clock, made, used = FakeTime(), itertools.count(), []

    def run(value):
        clock.now += 0.01
        used.append(int(value))

    monkeypatch.setattr(timing, "time", clock)
    measure_in_turn({"fresh": Fresh(run, lambda: np.array(next(made)))}, repeats=5)
    assert used == list(range(len(used))) and len(used) >= 6


def test_inputs_that_take_long_to_make_are_made_a_few_times(monkeypatch):
    clock, made = FakeTime(), []

    def prepare():
        clock.now += 0.02
        made.append(1)
        return 0

    def run(_):
        clock.now += 0.0001

    monkeypatch.setattr(timing, "time", clock)
    assert measure_in_turn({"fresh": Fresh(run, prepare)}, repeats=5)["fresh"].median == pytest.approx(0.0001)
    assert len(made) == 1 + 5 * (1 + 3 + 3)  # one before all; in each sample the first, three to warm up, three counted


def test_fewer_than_five_repeats_are_refused():
    with pytest.raises(ValueError, match="at least 5"):
        measure_in_turn({}, repeats=4)


def test_sizes_expected_to_take_too_long_are_left_out(monkeypatch):
    monkeypatch.setattr(timing, "measure_in_turn", lambda candidates, **_: {n: Sample(1, 1, 1) for n in candidates})
    times = sweep((1, 2, 9), lambda n: {"a": print}, work=float, limits=Limits(3.0, 100.0), say=lambda text: None)
    assert list(times["a"]) == [1, 2]  # 9 would take 9 / 2 seconds


def test_a_table_that_takes_too_long_stops_growing(monkeypatch):
    now = itertools.count()
    monkeypatch.setattr(timing.time, "perf_counter", lambda: 10.0 * next(now))
    monkeypatch.setattr(timing, "measure_in_turn", lambda candidates, **_: {n: Sample(1, 1, 1) for n in candidates})
    times = sweep((1, 2, 4), lambda n: {"a": print}, work=float, limits=Limits(100.0, 25.0), say=lambda text: None)
    assert list(times["a"]) == [1, 2]  # begun 10 and 20 seconds after the start; the third would be at 30


def test_numpy_computes_the_same_network_as_the_library():
    network = SMALL._replace(num_blocks=2, width=16)
    model = networks.build(network)
    params = noisy_params(model)
    observation, action = networks.make_inputs(network, 4)
    root, output = networks.make_inference(model)(params, observation, action)
    arrays = jax.tree.map(np.asarray, params)
    plain = initial_then_recurrent(np, arrays, observation.reshape(4, -1).astype(np.float32), action)
    expected = [
        np.concatenate([root.policy_logits, root.value_logits], axis=1),
        np.concatenate([output.policy_logits, output.value_logits], axis=1),
        output.reward_logits,
    ]
    for ours, theirs in zip(plain, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)


def test_operations_of_an_mlp_are_two_for_each_weight_used():
    network = SMALL  # Hex 3x3: 9 cells x 4 planes in, 8 units, 10 actions and 2 bins out
    params = jax.eval_shape(networks.build(network).init, jax.random.key(0))
    prediction = 3 * 8 * 8 + 8 * (10 + 2)
    initial, recurrent = networks.inference_flops(params, board_size=3)
    assert initial == 2 * (36 * 8 + 2 * 8 * 8 + prediction)
    assert recurrent == 2 * (3 * 8 * 8 + 8 * 2 + prediction)


@pytest.fixture(scope="module")
def simulated():
    positions, noise = particles.start(num_particles=200, num_steps=3)
    axis = particles.grid_axis(12)
    return {
        "numpy": particles.simulate_numpy(positions, noise, axis),
        "scipy": particles.simulate_scipy(positions, noise, axis),
        "transfers": particles.simulate_with_transfers(positions, noise, axis, jax.devices()[0]),
        "fused": jax.device_get(particles.simulate_fused(positions, noise, axis)),
    }


@pytest.mark.parametrize("way", ["scipy", "transfers", "fused"])
def test_particles_and_their_density_are_the_same_in_all_four_ways(simulated, way):
    for result, expected in zip(simulated[way], simulated["numpy"], strict=True):
        assert result.shape == expected.shape
        np.testing.assert_allclose(result, expected, atol=1e-5)


def test_an_euler_maruyama_step_by_hand():
    # At (2, 1) the force is -(4 * 2 * 3, 2); the noise is (1, 0) times sqrt(2 T dt) = 0.1.
    moved = particles.move(np, np.array([[2.0, 1.0]], np.float32), np.array([[1.0, 0.0]], np.float32))
    np.testing.assert_allclose(moved, [[2 - 0.24 + 0.1, 1 - 0.02]], rtol=1e-6)


def test_the_density_is_scipys():
    points = np.random.default_rng(1).normal(size=(100, 2))
    points -= points.mean(axis=0)
    points = (points @ np.linalg.inv(np.linalg.cholesky(np.cov(points.T))).T).astype(np.float32)
    axis = particles.grid_axis(9)
    kernels = stats.gaussian_kde(points.T, bw_method=particles.BANDWIDTH)  # scaled by the covariance, which is 1
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij")).reshape(2, -1)
    ours = particles.density(np, points, axis)
    np.testing.assert_allclose(ours, kernels(grid).reshape(9, 9), atol=1e-5)


def test_scipys_density_is_measured_at_the_smallest_size_and_then_as_long_as_it_is_fast(monkeypatch):
    monkeypatch.setattr(timing, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(timing, "SHORTEST_SECONDS", 0)
    sizes = replace(TINY, particles=((20, 4), (30, 4)), limits=Limits(call_seconds=0.0, table_seconds=30.0))
    section = particles_section.particles_section(machine.find_machine(), sizes, lambda text: None)
    assert section.tables[0].header[3] == "SciPy"
    assert [row[3] == "-" for row in section.tables[0].rows] == [False, True]


def test_a_report_is_never_overwritten_unasked(tmp_path):
    markdown.prepare(tmp_path / "report.md", overwrite=False)
    (tmp_path / "report-particles.png").touch()
    with pytest.raises(ValueError, match="--overwrite"):
        markdown.prepare(tmp_path / "report.md", overwrite=False)
    markdown.prepare(tmp_path / "report.md", overwrite=True)
    markdown.prepare(tmp_path / "other.md", overwrite=False)
    (tmp_path / "report.md").write_text("mine")
    with pytest.raises(ValueError, match="report.md exists already"):
        hardware_report.main(["--out", str(tmp_path)])
    assert (tmp_path / "report.md").read_text() == "mine"


@pytest.mark.parametrize("out", ["file", "file/folder", "folder/report.md"])
def test_a_report_that_cannot_be_written_is_one_sentence_before_anything_is_measured(
    out, tmp_path, monkeypatch, capsys
):
    (tmp_path / "file").touch()
    (tmp_path / "folder/report.md").mkdir(parents=True)
    monkeypatch.setattr(chapters, "measure", lambda *arguments: pytest.fail("too late"))
    assert report_errors(hardware_report.main, ["--overwrite", "--out", str(tmp_path / out)]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith(f"error: --out {tmp_path / out} ")


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (ValueError("a chapter failed"), 2)])
def test_what_stops_a_report_costs_no_chapter_before_it(error, status, tmp_path, monkeypatch, capsys):
    def measure(*arguments):
        yield Section("The first chapter", "", [], headlines=["Something was found."])
        raise error

    monkeypatch.setattr(chapters, "measure", measure)
    (tmp_path / "report.md").write_text("older")
    assert report_errors(hardware_report.main, ["--overwrite", "--out", str(tmp_path)]) == status
    assert (tmp_path / "report.md").read_text() == "older"
    stopped = tmp_path / "stopped-report.md"
    text = stopped.read_text()
    assert "## 1. Hardware and versions" in text and "## 2. The first chapter" in text and "- Something was" in text
    assert text.splitlines()[-1].startswith("Stopped before its end, after 0.0 minutes")
    assert f"report: {stopped}" in capsys.readouterr().out
    report_errors(hardware_report.main, ["--overwrite", "--out", str(tmp_path)])
    assert stopped.read_text() == text and (tmp_path / "stopped-2-report.md").exists()


def test_a_report_holds_every_chapter_plot_and_a_conclusion(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(timing, "SHORTEST_SECONDS", 0)
    monkeypatch.setitem(sys.modules, "torch", None)  # not installed
    said = []
    found, others = machine.find_machine(), Interference()
    sections = list(chapters.measure(found, TINY, others, said.append, run=lambda plan, say: RUN))
    assert sections[-1].title == "Peak memory"  # of all chapters
    told = machine.hardware_table(found, "command", datetime.datetime.now())
    sections.insert(0, machine.hardware_section(told, others))
    markdown.write(sections, tmp_path / "report.md", end="Measured.")
    text = (tmp_path / "report.md").read_text()
    for word in (
        *("Matrix product", "Vector operations", "MuZero network", "Precision", "Crossover", "throughput"),
        *("Where a run's time goes", "Utilisation", "Peak memory", "Transfers", "Particle density", "Conclusion"),
    ):
        assert word in text
    assert "no crossover between CPU and accelerator" in text
    assert "Of a short run's 10 s, learning took most: 50%." in text
    assert "PyTorch | not installed" in text
    for section in sections:
        for plot in section.plots:
            assert f"(report-{plot.name}.png)" in text
            assert (tmp_path / f"report-{plot.name}.png").stat().st_size > 1000
        for table in section.tables:
            assert all(len(row) == len(table.header) for row in table.rows)
    assert any("transfers" in line for line in said)


def test_throughput_memory_and_utilisation_by_hand():
    memory = SimpleNamespace(argument_size_in_bytes=1024, output_size_in_bytes=2048, temp_size_in_bytes=0)
    samples = {ONE: Sample(2.0, 1.0, 4.0), ALL: Sample(0.5, 0.4, 0.6), NETWORK_ALONE: Sample(1.0, 1.0, 1.0)}
    config = replace(CONFIG, network=replace(CONFIG.network, compute_dtype="float32"))
    searched = Measured(config, size=8, units=8 * 4, times=samples, memory=memory, num_devices=4)
    learned = Measured(config, size=8, units=2, times={ONE: samples[ONE]}, memory=memory)
    section = throughput_section([searched], [learned])
    assert section.tables[0].rows[0][4:] == ("16 (8 to 32)", "64 (53.3 to 80)", "4", "50%")  # 32 simulations in 2 s
    assert section.tables[1].rows[0][3:] == ("1 (0.5 to 2) s", "1 (0.5 to 2)", "-", "-")
    assert "faster for search (hex 3x3, mlp 16x1, 8 games) (4x)" in section.headlines[0]

    found = machine.find_machine()
    matrices = {"JAX": {10: Sample(1e-3, 1e-3, 1e-3)}, "NumPy": {10: Sample(1e-2, 1e-2, 1e-2)}}  # 2 MFLOP/s at best
    product = {"float32": 2e-3, "bfloat16": 2.5e-4, "float16": 1.0}  # 1, 8 and 0.002 MFLOP/s
    product = InDtypes("product", 2000.0, {dtype: Sample(t, t, t) for dtype, t in product.items()}, {})
    half = replace(CONFIG, network=replace(CONFIG.network, compute_dtype="bfloat16"))
    run = RUN._replace(config=config)
    searches = [searched, searched._replace(config=half, size=16)]
    used = utilisation_section(found, matrices, product, {}, searches, [learned], run)
    work = Work(CONFIG)
    flops = 8 * (work.initial + 4 * work.recurrent) / 2.0
    assert used.tables[0].rows[0][1::2] == ("float32", f"{flops / 2e6:.0%}")
    assert used.tables[0].rows[2][1::2] == ("bfloat16", f"{2 * flops / 8e6:.0%}")
    assert "float32 0.002 (JAX), bfloat16 0.008 (JAX)" in used.text
    assert work.updates(1) == 8 * 3 * (work.initial + 2 * work.recurrent)
    assert memory_section(found, [searched], []).tables[0].rows[0][1:] == ("1.0 KiB", "2.0 KiB", "0 B")


def test_the_devices_that_share_a_size_are_those_that_divide_it():
    assert formatting.devices_for([1, 4, 64], 2) == "2 of 2 (at 1: 1 of 2)"
    assert formatting.devices_for([4, 16, 64], 12) == "8 of 12 (at 4: 4 of 12)"
    assert formatting.devices_for([64, 16], 6) == "4 of 6"


def test_an_accelerator_gets_larger_sizes_and_a_cpu_keeps_its_own():
    full = plan.choose(quick_look=False, accelerator=False)
    assert (full.matrix_sizes[-1], full.precision_matrix) == (4096, 1024)
    assert (full.precision_batch, full.precision_tower_batch, full.searches[0][1]) == (1024, 64, 512)
    for quick in (False, True):
        few, many = (plan.choose(quick_look=quick, accelerator=accelerator) for accelerator in (False, True))
        assert many.matrix_sizes == (*few.matrix_sizes, 8192)
        assert (many.precision_matrix, many.precision_tower_batch) == (8192, 1024)
        assert [n.batches[-1] for n in many.networks] == [4 * n.batches[-1] for n in few.networks]


def test_the_command_chooses_the_sizes_by_the_machine(tmp_path, monkeypatch):
    gpu, chosen = SimpleNamespace(platform="gpu"), []
    pretended = machine.Machine(device=gpu, host=jax.devices()[0], accelerator=gpu, devices=[gpu], torch=None)
    monkeypatch.setattr(machine, "find_machine", lambda: pretended)
    monkeypatch.setattr(chapters, "measure", lambda found, sizes, *_: chosen.append(sizes) or [])
    assert hardware_report.main(["--quick", "--out", str(tmp_path)]) == 0
    assert chosen == [plan.for_accelerator(plan.quick())]


@pytest.mark.parametrize(
    ("visible", "asked"),
    [(None, ["--id=0"]), ("3,1", ["--id=3"]), ("GPU-8932f937, GPU-1", ["--id=GPU-8932f937"]), ("", [])],
)
def test_the_gpu_that_is_read_is_the_first_that_jax_may_see(monkeypatch, visible, asked):
    queries = []
    answer = SimpleNamespace(stdout="37\n")
    monkeypatch.setattr(machine.shutil, "which", lambda name: name)
    monkeypatch.setattr(machine.subprocess, "run", lambda query, **_: queries.append(query[-1]) or answer)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert machine.gpu_busy_percent() == (37.0 if asked else None)
    assert queries == asked


def test_a_gpu_is_read_until_it_says_nothing_more(monkeypatch):
    over, answers = threading.Event(), iter((40.0, 60.0))

    def answer():
        percent = next(answers, None)
        if percent is None:
            over.set()
        return percent

    monkeypatch.setattr(run_section, "gpu_busy_percent", answer)
    monkeypatch.setattr(run_section, "READING_SECONDS", 0.0)
    with GpuReadings() as readings:
        assert over.wait(timeout=30.0)
    assert [reading.busy for reading in readings.values] == [0.4, 0.6]
    assert all(reading.asked <= reading.answered for reading in readings.values)


def test_readings_of_the_gpu_are_shared_out_by_the_phases_of_a_run(monkeypatch):
    clock = iter((0.0, 10.0, 20.0, 20.9))
    monkeypatch.setattr(run_section.time, "perf_counter", lambda: next(clock))
    phases = Phases(lambda text: None)
    for text in ("compiling", "part  bytes\ntotal  1 B", "training", "final matches"):
        phases.say(text)
    phases.end()
    busy = phases.gpu_busy(
        [
            Reading(5.0, 5.1, 0.0),
            Reading(9.9, 10.1, 0.3),  # answered in the next phase
            Reading(10.9, 11.0, 0.3),  # may be of the second from 9.9 on
            Reading(11.0, 11.1, 0.8),
            Reading(19.0, 19.1, 1.0),
            Reading(20.8, 20.9, 0.3),  # as is this one
            Reading(22.0, 22.1, 0.3),  # after the run
        ]
    )
    assert busy == {"compiling": 0.0, "training": pytest.approx(0.9)}
    run = RUN._replace(cpu_busy={"compiling": 0.1, "training": 0.2, "final matches": 0.3}, gpu_busy=busy)
    rows = run_section.run_section(machine.find_machine(), run).tables[2].rows
    assert rows[3:] == [
        ('GPU, after "compiling"', "0%"),
        ('GPU, after "training"', "90%"),
        ('GPU, after "final matches"', "-"),
    ]


def test_a_run_too_short_to_tell_learning_from_self_play_says_so():
    assert told_apart(RUN.seconds) == RUN.seconds
    split = told_apart(RUN.seconds | {"self-play": 0.0})
    assert split["self-play and learning, not told apart"] == 5.0 and not {"self-play", "learning"} & set(split)


@pytest.mark.slow
def test_search_and_learner_are_measured_on_one_device_and_on_all():
    searched, learned = measure_search(CONFIG, 8, 2, say=print), measure_learner(CONFIG, 2, say=print)
    assert set(searched.times) == {ONE, ALL, NETWORK_ALONE} and set(learned.times) == {ONE, ALL}
    assert (searched.units, learned.units) == (8 * 4, 2)
    assert learned.memory.argument_size_in_bytes > 0


@pytest.mark.slow
def test_a_short_run_tells_where_its_time_went():
    said = []
    run = short_run(replace(CONFIG, max_iterations=8), said.append)
    assert set(run.seconds) == {"self-play", "learning", "evaluation", "compilation", "final matches"}
    phases = {text for text in said if "\n" not in text}  # the memory plan is a table
    assert "compiling" in phases and set(run.cpu_busy) == phases
    assert all(0 < share < 2 for share in run.cpu_busy.values())


def test_with_an_accelerator_the_crossover_is_between_it_and_the_cpu():
    gpu = SimpleNamespace(platform="gpu")
    pretended = machine.Machine(device=gpu, host=jax.devices()[0], accelerator=gpu, devices=[gpu], torch=None)
    times = {
        "JAX GPU": exactly(b1=4.0, b100=4.0),
        "JAX CPU": exactly(b1=1.0, b100=100.0),
        networks.COPIES: exactly(b1=10.0, b100=10.0),
    }
    section = chapters.crossover_section(pretended, {}, {"standard": times})
    assert [row[1:4] for row in section.tables[0].rows] == [
        ("JAX CPU", "JAX GPU", "between 1 and 100, near 4"),
        ("JAX CPU", networks.COPIES, "between 1 and 100, near 10"),
    ]
    assert "no accelerator" not in section.text


def test_every_candidate_is_traced_for_the_device_that_it_runs_on(monkeypatch):
    """A convolution asks for it while it is traced; of one trace for both, the CPU would run the accelerator's."""
    host, other = jax.devices()  # the second in a GPU's place
    stand_in = machine.Machine(device=other, host=host, accelerator=other, devices=[other], torch=None)
    monkeypatch.setattr(arithmetic_section, "labels", lambda found: {"JAX GPU": other, "JAX CPU": host})
    monkeypatch.setattr(timing, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(timing, "SHORTEST_SECONDS", 0)
    asked, traced_for = [], {}
    target_device, measure = convolution.target_device, timing.measure_in_turn

    def asks():
        asked.append(target_device())
        return asked[-1]

    def measure_one_by_one(candidates):
        times = {}
        for name, candidate in candidates.items():
            asked.clear()
            times |= measure({name: candidate})
            traced_for[name] = set(asked)
        return times

    monkeypatch.setattr(convolution, "target_device", asks)
    monkeypatch.setattr(timing, "measure_in_turn", measure_one_by_one)
    tower = plan.Network("tower", "tower", 4, 1, 3, (1,))
    networks.network_times(stand_in, TINY, tower, lambda text: None)
    assert traced_for == {"JAX GPU": {other}, "JAX CPU": {host}, networks.COPIES: set()}  # copies: the GPU's trace
