"""The hardware report: equal results before times are compared, figures by hand, and a whole tiny report."""

import re
from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.ops import convolution
from scripts import hardware_report
from scripts.benchmarks import baseline, chapters, suites, workloads
from scripts.benchmarks.chapters import Machine, Sizes
from scripts.measuring import timing
from scripts.measuring.report import Section
from scripts.measuring.timing import Sample
from tests.reference import tiny_run
from tests.scripts.conftest import noise_params

CONFIG = replace(tiny_run.CONFIG, env="hex", board_size=3)
CONFIG = replace(CONFIG, network=replace(CONFIG.network, kind="mlp", width=8, num_bins=2, compute_dtype="float32"))
TINY = Sizes(
    matrices=(4, 8),
    networks={"standard": CONFIG},
    batches=(1, 2),
    precision_matrix=8,
    precision_batch={"mlp": 2},
    transfers=(64, 128),
)
ONCE = timing.Effort(rounds=2, least=2, enough=1.0, seconds=0.0)


@pytest.mark.parametrize("kind", ["mlp", "tower"])
def test_the_plain_network_computes_what_the_library_does(kind):
    config = replace(CONFIG, network=replace(CONFIG.network, kind=kind, num_blocks=2))
    algorithm = workloads.algorithm_of(config)
    params = noise_params(algorithm.model)
    observation, action = chapters.make_inputs(config, 4)
    expected = chapters.both_inferences(algorithm.model)(params, observation, action)
    plain = baseline.plain_model(config, algorithm)
    found = chapters.both_inferences(plain)(params, observation, action)
    for ours, theirs in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=2e-5)
    if kind == "mlp":
        arrays = jax.tree.map(np.asarray, params)
        flat = observation.reshape(4, -1).astype(np.float32)
        logits, reward, *_ = chapters.plain_inference(np, arrays, flat, action)
        np.testing.assert_allclose(logits[:, : algorithm.environment.num_actions], expected[0].policy_logits, atol=2e-5)
        np.testing.assert_allclose(reward, expected[1].reward_logits, atol=2e-5)


@pytest.mark.slow  # half a minute
def test_a_report_holds_every_chapter_and_plot(tmp_path, monkeypatch, quick_params, capsys):
    monkeypatch.setattr(timing, "AMONG_LIBRARIES", ONCE)
    monkeypatch.setattr(timing, "QUICK", ONCE)
    monkeypatch.setattr(chapters, "find_torch", lambda: None)  # not installed
    first_case = next(suites.search(quick=True))
    monkeypatch.setattr(suites, "search", lambda quick: iter([first_case]))
    monkeypatch.setattr(chapters, "choose", lambda quick, accelerator: TINY)
    assert hardware_report.main(["--out", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text()
    chapters_told = (
        "Hardware and versions, Matrix product, The MuZero network by batch size, Precision, Crossover, "
        "Transfers between host and device, Search, Memory"
    )
    assert ", ".join(re.findall(r"^## \d+\. (.*)$", text, re.MULTILINE)) == chapters_told
    assert "no crossover between CPU and accelerator" in text and "PyTorch | not installed" in text
    assert "| ours | " in text
    assert text.splitlines()[-1].startswith("Measured in ")
    for name in re.findall(r"\((report-.*\.png)\)", text):
        assert (tmp_path / name).stat().st_size > 1000
    for line, following in zip(text.splitlines(), text.splitlines()[1:], strict=False):
        if line.startswith("|") and following.startswith("|"):
            assert line.count("|") == following.count("|")
    assert "Precision\n" in capsys.readouterr().out


@pytest.mark.parametrize("out", ["file", "file/folder", "folder/report.md", "there"])
def test_a_report_that_cannot_be_written_is_one_sentence_before_anything_is_measured(
    out, tmp_path, monkeypatch, capsys
):
    (tmp_path / "file").touch()
    (tmp_path / "folder/report.md").mkdir(parents=True)
    (tmp_path / "there").mkdir()
    (tmp_path / "there/report.md").write_text("mine")
    monkeypatch.setattr(chapters, "measure", lambda *arguments: pytest.fail("too late"))
    assert report_errors(hardware_report.main, ["--out", str(tmp_path / out)]) == 2
    assert str(tmp_path / out) in capsys.readouterr().err
    assert (tmp_path / "there/report.md").read_text() == "mine"


def test_what_stops_a_report_costs_no_chapter_before_it(tmp_path, monkeypatch):
    def measure(*arguments):
        yield Section("The first chapter", "", ["a table"])
        raise KeyboardInterrupt

    monkeypatch.setattr(chapters, "measure", measure)
    assert report_errors(hardware_report.main, ["--out", str(tmp_path / "a/new")]) == 130
    text = (tmp_path / "a/new/report.md").read_text()
    assert "## 1. The first chapter\n\na table" in text
    assert text.splitlines()[-1].startswith("Not finished after 0.0 minutes")


def test_an_accelerator_gets_larger_sizes_and_a_quick_report_fewer():
    full, quick, large = (
        chapters.choose(quick=quick, accelerator=accelerator)
        for quick, accelerator in ((False, False), (True, False), (False, True))
    )
    assert large.matrices == (*full.matrices, 8192)
    assert len(full.networks) == 3 and len(quick.networks) == 1 and set(quick.batches) < set(full.batches)
    assert {network.network.kind for network in full.networks.values()} <= set(full.precision_batch)


def test_with_an_accelerator_the_crossover_is_between_it_and_the_cpu():
    pretended = Machine({"JAX GPU": None, "JAX CPU": None})
    times = {
        name: {size: Sample(t, t, t) for size, t in zip((1, 100), row, strict=True)}
        for name, row in {"JAX GPU": (4.0, 4.0), "JAX CPU": (1.0, 100.0), chapters.COPIES: (10.0, 10.0)}.items()
    }
    section = chapters.crossover_section(pretended, {}, {"standard": times})
    assert section.tables[0].splitlines()[2:] == [
        "| standard network (batch) | JAX CPU | JAX GPU | between 1 and 100, near 4 |",
        f"| standard network (batch) | JAX CPU | {chapters.COPIES} | between 1 and 100, near 10 |",
    ]
    assert "no accelerator" not in section.text


def test_every_candidate_is_traced_for_the_device_that_it_runs_on(monkeypatch):
    """A convolution asks for it while it is traced; of one trace for both, the CPU would run the accelerator's."""
    host, other = jax.devices()  # the second in a GPU's place
    stand_in = Machine({"JAX GPU": other, "JAX CPU": host})
    tower = replace(CONFIG, network=replace(CONFIG.network, kind="tower", width=4))
    model = workloads.algorithm_of(tower).model
    inputs = noise_params(model), *chapters.make_inputs(tower, 1)
    asked, target_device = [], convolution.target_device
    monkeypatch.setattr(convolution, "target_device", lambda: asked.append(target_device()) or asked[-1])
    candidates = chapters.on_jax(stand_in, chapters.both_inferences(model), *inputs)
    assert list(dict.fromkeys(asked)) == [other, host]
    for label, candidate in candidates.items():
        assert candidate()[0].embedding.devices() == {stand_in.labels[label]}


def test_a_frame_in_our_replay_is_bits_and_the_policy():
    """Tic-tac-toe: 18 cells and 9 legal actions in 3 and 2 bytes, 9 float32 of policy, 4 numbers, 2 bools."""
    sizes = chapters.frame_bytes(replace(CONFIG, env="tic_tac_toe", board_size=None))
    assert sizes == {"float32 arrays": 4 * (18 + 9 + 9 + 4), "ours": 3 + 2 + 36 + 4 * 4 + 2}
