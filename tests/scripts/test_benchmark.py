"""The benchmark and the hardware report: figures by hand, and programs and yardsticks that do the work they count."""

import re
from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.storage.config_groups import NetworkConfig
from scripts import benchmark, hardware_report
from scripts.benchmarks import chapters, day, plain, programs, suites, timing
from scripts.benchmarks.timing import Effort
from tests.apps.commands.test_pages import complaint
from tests.reference import tiny_run
from tests.reference.models import random_params

NETWORK = NetworkConfig(kind="mlp", width=8, num_blocks=0, num_bins=3, compute_dtype="float32")
TINY = programs.learning(programs.playing("tic_tac_toe", NETWORK, 4, 2, rollout_length=2), 4, 1, unroll_steps=1)
ONCE = Effort(rounds=2, least=2, enough=1.0, seconds=0.0)


@pytest.fixture(autouse=True)
def quick_params(monkeypatch):
    for module in (programs, chapters):
        monkeypatch.setattr(module, "noisy_params", random_params)


# --- comparing reports ------------------------------------------------------------------------------------------------


def record(median, *, spread=0.0, aim=2.0, **changed):
    ratio = {"numerator": "ours", "denominator": "theirs", "aim": aim, "median": median, "spread": spread}
    rates = {"ours": {"median": median, "spread": spread}}
    return {"suite": "search", "case": "a case", "unit": "calls/s", "rates": rates, "ratios": [ratio]} | changed


def compared(new, old):
    return benchmark.compare(*(benchmark.promised({"results": [record]}) for record in (new, old)))


def test_a_promised_ratio_that_fell_by_more_than_a_tenth_beyond_the_spreads_is_named():
    assert compared(record(4.0), record(5.0)) == ["search: a case: ours / theirs: from 5 to 4"]
    assert compared(record(4.6), record(5.0)) == [] == compared(record(4.0, spread=0.06), record(5.0, spread=0.06))
    with pytest.raises(ValueError, match="share no ratio"):
        compared(record(4.0), record(4.0, num_devices=2))
    assert "| ours / theirs | **2.50x** (aim 3) | 0% |" in benchmark.table(record(2.5, aim=3.0))


def test_every_part_of_an_accelerators_day_is_a_command_with_flags_that_exist():
    commands = [command for _, command in day.parts(quick=False).values()]
    assert [command for command in commands if complaint(command.format(out="x", minutes=1.0))] == []


# --- programs ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def baseline():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(programs, "noisy_params", random_params)
        return programs.Baseline(TINY)


def changed(before, after):
    return any((x != y).any() for x, y in zip(*map(jax.tree.leaves, (before, after)), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("program", ["baseline", "host", "ours"])
def test_self_play_goes_on_with_legal_moves(program, baseline):
    makers = {"host": programs.host_driven_self_play, "ours": lambda config: programs.self_play(config, 2)}
    variant = makers[program](TINY) if program in makers else baseline.self_play()
    first, second = variant.run(), variant.run()
    assert first.action.size == variant.work == 8
    for played in (first, second):
        assert np.take_along_axis(played.legal_action_mask, played.action[..., None], axis=-1).all()
    assert (first.observation != second.observation).any()  # it goes on from where it was


@pytest.mark.slow
@pytest.mark.parametrize(("program", "work"), [("learning", 1), ("iteration", 8)])
def test_the_baseline_changes_its_parameters(program, work, baseline):
    variant = getattr(baseline, program)()
    (before, _), (after, _) = variant.run(), variant.run()
    assert variant.work == work and changed(before, after)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after))


@pytest.mark.slow
def test_our_program_learns_and_plays_as_much_as_it_counts():
    variant = programs.chunk(TINY, 2)
    first, second = (jax.device_get(variant.run()) for _ in range(2))
    assert variant.work == second["selfplay/frames"].sum() and second["train/updates"].sum() == 1
    assert first["train/parameter_norm"] != second["train/parameter_norm"]


@pytest.mark.slow
def test_a_search_call_searches_every_position_and_the_bare_network_is_asked_once_a_simulation():
    asked = programs.positions(TINY, 2)
    found = programs.search(TINY, asked).run()
    assert found.action.shape == (4,) and found.tree is None
    assert np.take_along_axis(asked.legal_action_mask, found.action[:, None], axis=-1).all()
    assert programs.bare_network(TINY, asked).run()[1].shape == (2, 4)  # simulations, games


@pytest.mark.parametrize("kind", ["mlp", "tower"])
def test_the_plain_network_computes_what_the_library_does(kind):
    config = replace(TINY, env="hex", board_size=3, network=replace(NETWORK, kind=kind, num_blocks=2))
    algorithm = algorithms.make(config)
    params, inputs = random_params(algorithm.model), chapters.make_inputs(config, 4)
    expected = chapters.both_inferences(algorithm.model)(params, *inputs)
    found = chapters.both_inferences(plain.model(config, algorithm))(params, *inputs)
    jax.tree.map(lambda ours, theirs: np.testing.assert_allclose(ours, theirs, atol=2e-5), expected, found)
    if kind == "mlp":
        arrays, flat = jax.tree.map(np.asarray, params), inputs[0].reshape(4, -1).astype(np.float32)
        logits, reward, *_ = chapters.plain_inference(arrays, flat, inputs[1])
        np.testing.assert_allclose(logits[:, : algorithm.environment.num_actions], expected[0].policy_logits, atol=2e-5)
        np.testing.assert_allclose(reward, expected[1].reward_logits, atol=2e-5)


def test_the_python_tree_is_our_puct_tree_visit_for_visit():
    config = programs.searching(programs.playing("tic_tac_toe", NETWORK, 6, 24), policy="puct")
    algorithm, roots = algorithms.make(config), programs.positions(config, 3)
    params = random_params(algorithm.model)
    found = jax.jit(algorithm.search())(params, jax.random.key(0), roots)
    search = plain.PlainSearch(config, algorithm, params)
    for i in range(6):
        tree = search(np.asarray(roots.observation[i], np.float32), np.asarray(roots.legal_action_mask[i]))
        np.testing.assert_array_equal(tree.visit_counts(), np.round(found.policy[i] * 24), err_msg=f"position {i}")
        assert tree.value == pytest.approx(float(found.value[i]), abs=1e-5)
    variant = programs.plain_self_play(config)
    assert variant.run() != variant.run(), "it goes on"


# --- the hardware report ----------------------------------------------------------------------------------------------


def test_a_frame_in_our_replay_is_bits_and_the_policy():
    """Tic-tac-toe: 18 cells and 9 legal actions in 3 and 2 bytes, 9 float32 of policy, 4 numbers, 2 bools."""
    sizes = chapters.frame_bytes(tiny_run.CONFIG)
    assert sizes == {"float32 arrays": 4 * (18 + 9 + 9 + 4), "ours": 3 + 2 + 36 + 4 * 4 + 2}


@pytest.mark.slow  # half a minute
def test_a_report_has_every_chapter_and_plot_and_is_not_written_over(tmp_path, monkeypatch):
    tiny = replace(TINY, env="hex", board_size=3)
    sizes = chapters.Sizes((4, 8), {"standard": tiny}, (1, 2), 8, {"mlp": 2}, (64, 128))
    monkeypatch.setattr(timing, "AMONG_LIBRARIES", ONCE)
    monkeypatch.setattr(timing, "QUICK", ONCE)
    monkeypatch.setattr(chapters, "choose", lambda **_: sizes)
    first_case = next(suites.search(quick=True))
    monkeypatch.setattr(suites, "search", lambda quick: iter([first_case]))
    assert hardware_report.main(["--out", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text()
    assert ", ".join(re.findall(r"^## \d+\. (.*)$", text, re.MULTILINE)) == (
        "Hardware and versions, Matrix product, The MuZero network by batch size, Precision, Crossover, "
        "Transfers between host and device, Search, Memory"
    )
    assert text.splitlines()[-1].startswith("Measured in ")
    plots = re.findall(r"\((report-.*\.png)\)", text)
    assert len(plots) == 3 and all((tmp_path / name).stat().st_size > 1000 for name in plots)
    assert report_errors(hardware_report.main, ["--out", str(tmp_path)]) == 2
