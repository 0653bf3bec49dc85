"""The hardware report: equal results before times are compared, figures by hand, and a whole tiny report."""

import re
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy import stats

from muzero_jax.arithmetic import convolution
from muzero_jax.commands.command_line import report_errors
from scripts import hardware_report
from scripts.benchmarks import baseline
from scripts.benchmarks.workloads import parts_of
from scripts.measuring import machine, timing
from scripts.measuring.machine import Machine
from scripts.measuring.markdown import Section
from scripts.measuring.timing import Limits, Sample
from scripts.report import chapters, networks, particles, programs, short_run, sizes
from scripts.report.networks import InDtypes
from scripts.report.programs import ALL, NETWORK_ALONE, ONE, Measured
from scripts.report.short_run import Phases, Run
from tests.reference import tiny_run
from tests.scripts.conftest import noise_params

CONFIG = replace(tiny_run.CONFIG, env="hex", board_size=3)
CONFIG = replace(CONFIG, network=replace(CONFIG.network, kind="mlp", width=8, num_bins=2, compute_dtype="float32"))
TINY = sizes.Sizes(
    matrices=(4, 8),
    vectors=(10, 20),
    networks={"small": CONFIG},
    batches=(1, 2),
    precision_matrix=8,
    precision_batches={"mlp": 2},
    searches=(),
    learners=(),
    run=CONFIG,
    transfers=(64, 128),
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
ONCE = timing.Effort(rounds=2, least=2, enough=1.0, seconds=0.0)


@pytest.fixture
def measured_once(monkeypatch):
    monkeypatch.setattr(timing, "AMONG_LIBRARIES", ONCE)
    monkeypatch.setattr(machine, "_find_torch", lambda: None)  # not installed


# --- equal results ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mlp", "tower"])
def test_the_plain_network_computes_what_the_library_does(kind):
    config = replace(CONFIG, network=replace(CONFIG.network, kind=kind, num_blocks=2))
    parts = parts_of(config)
    params = noise_params(parts.model)
    observation, action = networks.make_inputs(config, 4)
    expected = networks.inference(config)(params, observation, action)
    plain = baseline.plain_model(config, parts)
    found = networks.both_inferences(plain)(params, observation, action)
    for ours, theirs in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    if kind == "mlp":
        arrays = jax.tree.map(np.asarray, params)
        flat = observation.reshape(4, -1).astype(np.float32)
        logits, reward, *_ = networks.plain_inference(np, arrays, flat, action)
        np.testing.assert_allclose(logits[:, : parts.environment.num_actions], expected[0].policy_logits, atol=2e-5)
        np.testing.assert_allclose(reward, expected[1].reward_logits, atol=2e-5)


def test_operations_of_an_mlp_are_two_for_each_weight_used():
    """Hex 3x3: 9 cells x 4 planes in, 8 units, 10 actions and 2 bins out."""
    prediction = 3 * 8 * 8 + 8 * (10 + 2)
    initial, recurrent = networks.flops(CONFIG)
    assert initial == 2 * (36 * 8 + 2 * 8 * 8 + prediction)
    assert recurrent == 2 * (3 * 8 * 8 + 8 * 2 + prediction)
    assert programs.search_flops(CONFIG, 3) == 3 * (initial + 4 * recurrent)
    assert programs.update_flops(CONFIG, 1) == 8 * 3 * (initial + 2 * recurrent)


def test_particles_and_their_density_are_the_same_in_all_four_ways():
    results = {way: call() for way, call in particles.ways(jax.devices()[0], 3, (200, 12)).items()}
    positions, densities = results[particles.NUMPY]
    assert densities.shape == (3, 12, 12)
    np.testing.assert_allclose(results.pop(particles.SCIPY)[1], densities[:1], atol=1e-5)
    for result in results.values():
        np.testing.assert_allclose(result[0], positions, atol=1e-5)
        np.testing.assert_allclose(result[1], densities, atol=1e-5)


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
    np.testing.assert_allclose(particles.density(np, points, axis), kernels(grid).reshape(9, 9), atol=1e-5)


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.slow  # half a minute
def test_a_report_holds_every_chapter_plot_and_a_conclusion(tmp_path, monkeypatch, measured_once, quick_params, capsys):
    monkeypatch.setattr(sizes, "choose", lambda quick, accelerator: TINY)
    monkeypatch.setattr(short_run, "short_run", lambda config, say: RUN)
    assert hardware_report.main(["--out", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text()
    chapters_told = (
        "Hardware and versions, Matrix product, Vector operations, The MuZero network by batch size, Precision, "
        "Crossover, Search and training-step throughput, Where a run's time goes, Utilisation, Transfers between host "
        "and device, Particle density pipeline, Peak memory"
    )
    assert re.findall(r"^## \d+\. (.*)$", text, re.MULTILINE) == chapters_told.split(", ")
    assert "no crossover between CPU and accelerator" in text and "PyTorch | not installed" in text
    assert text.count("Of a short run's 10 s, learning took most: 50%.") == 2  # in its chapter and in the conclusion
    assert "python scripts/hardware_report.py --out" in text and text.splitlines()[-1].startswith("Measured in 0.")
    for name in re.findall(r"\((report-.*\.png)\)", text):
        assert (tmp_path / name).stat().st_size > 1000
    for line, following in zip(text.splitlines(), text.splitlines()[1:], strict=False):
        if line.startswith("|") and following.startswith("|"):
            assert line.count("|") == following.count("|")
    assert "transfers: size 64" in capsys.readouterr().out


def test_a_report_is_never_overwritten_unasked(tmp_path):
    hardware_report.prepare(tmp_path / "report.md", overwrite=False)
    (tmp_path / "report-particles.png").touch()
    with pytest.raises(ValueError, match="--overwrite"):
        hardware_report.prepare(tmp_path / "report.md", overwrite=False)
    hardware_report.prepare(tmp_path / "report.md", overwrite=True)
    hardware_report.prepare(tmp_path / "other.md", overwrite=False)
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


@pytest.mark.parametrize("quick", [False, True])
def test_the_command_chooses_the_sizes_by_the_machine(quick, tmp_path, monkeypatch):
    gpu, chosen = SimpleNamespace(platform="gpu"), []
    monkeypatch.setattr(machine, "find_machine", lambda: Machine({"JAX GPU": gpu, "JAX CPU": gpu}, [gpu], None))
    monkeypatch.setattr(chapters, "measure", lambda found, plan, _: chosen.append(plan) or [])
    assert hardware_report.main(["--quick"] * quick + ["--out", str(tmp_path)]) == 0
    (many,) = chosen
    few = sizes.choose(quick=quick, accelerator=False)
    assert many.matrices == (*few.matrices, 8192) and many.batches[-1] == 4 * few.batches[-1]
    assert many.precision_matrix == 8192 > few.precision_matrix
    assert len(few.networks) == (2 if quick else 3)
    assert {network.network.kind for network in few.networks.values()} <= set(few.precision_batches)
    assert many.searches[0][1] == 8 * few.searches[0][1]


# --- figures by hand --------------------------------------------------------------------------------------------------


def test_throughput_memory_and_utilisation_by_hand():
    memory = SimpleNamespace(argument_size_in_bytes=1024, output_size_in_bytes=2048, temp_size_in_bytes=0)
    times = {ONE: Sample(2.0, 1.0, 4.0), ALL: Sample(0.5, 0.4, 0.6), NETWORK_ALONE: Sample(1.0, 1.0, 1.0)}
    searched = Measured("search", CONFIG, units=32, flops=4e6, times=times, memory=memory)
    half = replace(CONFIG, network=replace(CONFIG.network, compute_dtype="bfloat16"))
    learned = Measured("steps", half, units=2, flops=2e6, times={ONE: times[ONE]}, memory=memory)
    section = programs.throughput_section([searched, learned])
    assert section.tables[0].rows == [
        ["search", "2 (1 to 4) s", "500 (400 to 600) ms"],
        ["steps", "2 (1 to 4) s", "-"],
    ]
    assert section.tables[1].rows == [["search", "16 (8 to 32)", "64 (53.3 to 80)"], ["steps", "1 (0.5 to 2)", "-"]]
    assert section.findings == ["Programs: one device against all devices: slower for search (4x)."]
    assert section.headlines[1] == "The network takes 50% of the search, on one device."

    found = Machine({"JAX": jax.devices()[0]}, jax.devices(), None)
    matrices = {"JAX": {10: Sample(1e-3, 1e-3, 1e-3)}, "NumPy": {10: Sample(1e-2, 1e-2, 1e-2)}}  # 2 MFLOP/s at best
    product = {"float32": 2e-3, "bfloat16": 2.5e-4, "float16": 1.0}  # 1, 8 and 0.002 MFLOP/s
    product = InDtypes("product", 2000.0, {dtype: Sample(t, t, t) for dtype, t in product.items()}, {})
    plan = TINY._replace(networks={})
    at_work = list(programs.at_work(found, plan, {}, [searched, learned], RUN))
    assert [speed for *_, speed in at_work[:3]] == [2e6, 8e6, 1e6]
    assert at_work[3][2] == programs.search_flops(CONFIG, 100.0) + programs.update_flops(CONFIG, 3.0)
    used = programs.utilisation_section(found, matrices, product, at_work[:3])
    assert [row[1::2] for row in used.tables[0].rows] == [("float32", "100%"), ("float32", "400%"), ("bfloat16", "12%")]
    assert "float32 0.002 (JAX), bfloat16 0.008 (JAX)" in used.text
    frame = {"plain": 100.0, "plain_as_python_objects": 200.0, "ours": 20.0, "saved": 0.8, "saved_of_objects": 0.9}
    told = programs.memory_section(found, [searched, searched._replace(memory=None)], frame)
    assert told.tables[0].rows == [("search", "1.0 KiB", "2.0 KiB", "0 B")]
    assert "takes 80.0% less" in told.headlines[0]


def test_with_an_accelerator_the_crossover_is_between_it_and_the_cpu():
    pretended = Machine({"JAX GPU": None, "JAX CPU": None}, [None], None)
    times = {
        name: {size: Sample(t, t, t) for size, t in zip((1, 100), row, strict=True)}
        for name, row in {"JAX GPU": (4.0, 4.0), "JAX CPU": (1.0, 100.0), networks.COPIES: (10.0, 10.0)}.items()
    }
    section = networks.crossover_section(pretended, {}, {"standard": times})
    assert [row[1:] for row in section.tables[0].rows] == [
        ("JAX CPU", "JAX GPU", "between 1 and 100, near 4"),
        ("JAX CPU", networks.COPIES, "between 1 and 100, near 10"),
    ]
    assert "no accelerator" not in section.text


def test_every_candidate_is_traced_for_the_device_that_it_runs_on(monkeypatch):
    """A convolution asks for it while it is traced; of one trace for both, the CPU would run the accelerator's."""
    host, other = jax.devices()  # the second in a GPU's place
    stand_in = Machine({"JAX GPU": other, "JAX CPU": host}, [other], None)
    tower = replace(CONFIG, network=replace(CONFIG.network, kind="tower", width=4))
    infer, inputs = networks.inference(tower), networks.make_inputs(tower, 1)
    params = noise_params(parts_of(tower).model)
    asked, target_device = [], convolution.target_device
    monkeypatch.setattr(convolution, "target_device", lambda: asked.append(target_device()) or asked[-1])
    candidates = networks.on_jax(stand_in, infer, params, *inputs)
    assert list(dict.fromkeys(asked)) == [other, host]
    for label, candidate in candidates.items():
        assert candidate()[0].embedding.devices() == {stand_in.labels[label]}


@pytest.mark.parametrize(
    ("visible", "asked"),
    [(None, "--id=0"), ("3,1", "--id=3"), ("GPU-8932f937, GPU-1", "--id=GPU-8932f937"), ("", None)],
)
def test_the_gpu_that_is_read_is_the_first_that_jax_may_see(monkeypatch, visible, asked):
    monkeypatch.setattr(short_run.shutil, "which", lambda name: name)
    monkeypatch.setattr(short_run.subprocess, "Popen", lambda query, **_: query)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    query = short_run.watch_gpu()
    assert asked in query if asked else query is None


def test_cpu_and_gpu_are_told_by_the_phases_of_a_run(monkeypatch):
    class Readings:
        terminate = staticmethod(lambda: None)
        communicate = staticmethod(lambda: (printed.pop(0), None))

    printed = ["0\n", "10\n70\n90\n[N/A]\n40"]  # the first tells of the second before, the last is cut off
    clock = iter((0.0, 10.0, 30.0))
    cpu = iter((0.0, 5.0, 5.0))
    monkeypatch.setattr(short_run.time, "perf_counter", lambda: next(clock))
    monkeypatch.setattr(short_run.os, "times", lambda: SimpleNamespace(user=next(cpu), system=0.0))
    monkeypatch.setattr(short_run.devices, "usable_cores", lambda: 2)
    monkeypatch.setattr(short_run.jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(short_run, "watch_gpu", Readings)
    said = []
    phases = Phases(said.append)
    for text in ("compiling", "part  bytes\ntotal  1 B", "memory  1 B per device", "training", "the rate falls"):
        phases.say(text)
    phases.begin("")
    assert len(said) == 5 and phases.cpu_busy == {"compiling": 0.25, "training": 0.0}
    assert phases.gpu_busy == {"training": pytest.approx(0.8)}
    run = RUN._replace(cpu_busy=phases.cpu_busy, gpu_busy=phases.gpu_busy)
    assert short_run.run_section(run).tables[2].rows == [("compiling", "25%", "-"), ("training", "0%", "80%")]


@pytest.mark.slow
def test_search_and_learner_are_measured_on_one_device_and_on_all(measured_once):
    searched, learned = programs.measure_search(CONFIG, 8, 2), programs.measure_learner(CONFIG, 2)
    assert set(searched.times) == {ONE, ALL, NETWORK_ALONE} and set(learned.times) == {ONE, ALL}
    assert (searched.units, learned.units) == (8 * 4, 2)
    assert learned.memory.argument_size_in_bytes > 0


@pytest.mark.slow
def test_a_short_run_tells_where_its_time_went():
    said = []
    run = short_run.short_run(replace(CONFIG, max_iterations=8), said.append)
    apart, together = {"self-play", "learning"}, {"self-play and learning"}  # as far as so few chunks can tell
    assert set(run.seconds) - {"evaluation", "compilation", "final matches"} in (apart, together)
    phases = {text for text in said if text.startswith(short_run.ANNOUNCE)}
    assert len(phases) == 3 and set(run.cpu_busy) == phases  # to compile, to train, and the final matches
    assert all(0 < share < 2 for share in run.cpu_busy.values())
