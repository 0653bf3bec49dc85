"""The benchmark and the hardware report: figures by hand, and programs and yardsticks that do the work they count."""

import json
import re
import sys
from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.storage.config_groups import NetworkConfig
from scripts import benchmark, hardware_report
from scripts.benchmarks import chapters, day, programs, report, suites, timing
from scripts.benchmarks.python_tree import PythonTree
from scripts.benchmarks.timing import Effort, Variant
from tests.apps.commands.test_pages import complaint
from tests.reference import tiny_run
from tests.reference.models import random_params

NETWORK = NetworkConfig(kind="mlp", width=8, num_blocks=0, num_bins=3, compute_dtype="float32")
TINY = programs.learning(programs.playing("tic_tac_toe", NETWORK, 4, 2, rollout_length=2), 4, 1, unroll_steps=1)
ONCE = Effort(rounds=2, seconds=0.0)


@pytest.fixture(autouse=True)
def quick_params(monkeypatch):
    monkeypatch.setattr(programs, "noisy_params", random_params)
    monkeypatch.setattr(timing, "PAUSE_SECONDS", 0.0)


# --- timing and telling -----------------------------------------------------------------------------------------------


def test_variants_run_in_turn_and_the_first_call_of_each_is_not_counted():
    calls = []
    variants = {"a": Variant(lambda: calls.append("a")), "b": Variant(calls.append, prepare=lambda: "b")}
    seconds = timing.in_turn(variants, ONCE)
    assert "".join(calls) == "ab" + 2 * "aabb", "each sample is of calls after as many that wake threads"
    assert {name: len(found) for name, found in seconds.items()} == {"a": 2, "b": 2}


def test_a_round_at_half_the_speed_is_in_both_rates_and_changes_no_ratio(monkeypatch):
    monkeypatch.setattr(timing, "in_turn", lambda *_: {"one": [2.0, 1.0, 4.0], "other": [6.0, 3.0, 12.0]})
    variants = {"one": Variant(print, work=8.0), "other": Variant(print, work=12.0)}
    case = suites.Case("search", "a case", "calls/s", lambda: variants, (suites.Ratio("one", "other", 1.5),))
    found = suites.measure(case, ONCE)
    assert found["rates"]["one"]["samples"] == [4.0, 8.0, 2.0] and found["rates"]["other"]["median"] == 2.0
    assert "| one / other | **2.00x** (0%, aim 1.5) |" in report.rates_table([found])
    assert timing.summarise([8.0, 9.0, 10.0, 11.0, 12.0]) == (10.0, pytest.approx(0.1))


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({1: 1.0, 10: 10.0, 100: 100.0}, {1: 4.0, 10: 4.0, 100: 4.0}, "between 1 and 10, near 4"),  # b meets 4 at 4
        ({1: 1.0, 64: 4.0}, {1: 2.0, 64: 1.0}, "between 1 and 64, near 4"),  # log 2 to -log 4: a third of the way
        ({1: 2.0, 2: 1.0, 4: 1.0, 8: 4.0}, {1: 1.0, 2: 2.0, 4: 4.0, 8: 1.0}, "between 4 and 8, near 5.7"),  # the last
        ({1: 1.0, 2: 1.0}, {1: 2.0, 2: 1.0}, "never, up to 2"),  # a tie is not ahead
        ({2: 5.0, 4: 9.0}, {2: 4.0, 4: 3.0}, "ahead from the smallest, 2"),
    ],
)
def test_the_crossover_of_two_rows_of_times(first, second, found):
    rates = {size: {"a": {"median": 1 / first[size]}, "b": {"median": 1 / second[size]}} for size in first}
    assert report.crossover([{"case": f"{size:,}", "rates": rate} for size, rate in rates.items()], "a", "b") == found


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


def test_what_stops_the_measuring_costs_no_case_before_it_and_a_regression_is_status_1(monkeypatch, tmp_path):
    def measure(case, effort):
        if case.name == "third":
            raise KeyboardInterrupt
        return record(4.0, case=case.name)

    cases = [suites.Case("search", name, "calls/s", dict, ()) for name in ("first", "second", "third")]
    monkeypatch.setitem(suites.SUITES, "search", lambda quick: iter(cases))
    monkeypatch.setattr(suites, "measure", measure)
    out = tmp_path / "new.json"
    assert report_errors(benchmark.main, ["--suite", "search", "--out", str(out)]) == 130
    assert [found["case"] for found in json.loads(out.read_text())["results"]] == ["first", "second"]
    cases.pop()
    out.write_text(json.dumps({"results": [record(5.0, case="second")]}))
    assert benchmark.main(["--suite", "search", "--compare", str(out)]) == benchmark.EXIT_REGRESSION


def test_the_day_shares_its_minutes_among_commands_with_flags_that_exist(monkeypatch, tmp_path):
    asked = {}

    def attempt(command, log, seconds):
        assert complaint(" ".join(command[1:])) is None
        asked[log.stem] = seconds
        return "ended"

    monkeypatch.setattr(day, "attempt", attempt)
    assert benchmark.main(["--suite", "gpu", "--minutes", "28", "--out", str(tmp_path / "day.json")]) == 0
    parts = day.parts(28.0, quick=False)
    assert [part["name"] for part in json.loads((tmp_path / "day.json").read_text())["parts"]] == list(parts)
    assert sum(asked.values()) == 28 * 60 and asked["training"] == 8 * 60
    assert "--minutes 3.000" in parts["training"][1]


def test_a_part_that_takes_too_long_is_stopped_and_one_that_fails_is_named(tmp_path):
    log = tmp_path / "part.txt"
    assert day.attempt([sys.executable, "-c", "import time; time.sleep(60)"], log, 0.5) == "stopped"
    assert day.attempt([sys.executable, "-c", "raise SystemExit(3)"], log, 20) == "failed with status 3"


# --- programs ---------------------------------------------------------------------------------------------------------


def changed(before, after):
    return any((x != y).any() for x, y in zip(*map(jax.tree.leaves, (before, after)), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "work"),
    [
        (lambda: programs.baseline("self-play", TINY), 8),
        (lambda: programs.host_driven_self_play(TINY), 4),
        (lambda: programs.self_play(TINY, 2), 8),
    ],
)
def test_self_play_goes_on_with_legal_moves(program, work):
    variant = program()
    first, second = variant.run(), variant.run()
    assert first.action.size == variant.work == work
    for played in (first, second):
        assert np.take_along_axis(played.legal_action_mask, played.action[..., None], axis=-1).all()
    assert (first.observation != second.observation).any()  # it goes on from where it was


@pytest.mark.slow
@pytest.mark.parametrize(("suite", "work"), [("learner", 1), ("iteration", 8)])
def test_the_baseline_changes_its_parameters(suite, work):
    variant = programs.baseline(suite, TINY)
    (before, _), (after, _) = variant.run(), variant.run()
    assert variant.work == work and changed(before, after)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after))


@pytest.mark.slow
def test_our_program_learns_and_plays_as_much_as_it_counts():
    variant = programs.chunk(TINY, 2)
    first, second = (jax.device_get(variant.run()) for _ in range(2))
    assert variant.work == second["selfplay/frames"].sum() and second["train/updates"].sum() == 1
    assert first["train/parameter_norm"] != second["train/parameter_norm"]


def test_a_search_call_searches_every_position_and_the_bare_network_is_asked_once_a_simulation():
    asked = programs.positions(TINY, 2)
    found = programs.search(TINY, asked).run()
    assert found.action.shape == (4,) and found.tree is None
    assert np.take_along_axis(np.asarray(asked.legal_action_mask), found.action[:, None], axis=-1).all()
    assert programs.bare_network(TINY, asked).run()[1].shape == (2, 4)  # simulations, games


def test_the_baselines_network_is_ours_with_xlas_convolutions():
    config = replace(TINY, env="hex", board_size=3, network=replace(NETWORK, kind="tower", num_blocks=1))
    model = algorithms.make(config).model
    params, observation = random_params(model), np.ones((4, 3, 3, 4), bool)
    calls = [jax.jit(m.initial_inference) for m in (model, programs.with_xla_convolutions(model))]
    texts = [call.lower(params, observation).as_text() for call in calls]
    assert ["convolution" in text for text in texts] == [False, True]
    ours, theirs = (call(params, observation) for call in calls)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=2e-5), ours, theirs)


@pytest.mark.slow
def test_the_python_tree_is_our_puct_tree_visit_for_visit():
    config = programs.searching(programs.playing("tic_tac_toe", NETWORK, 6, 24), policy="puct")
    algorithm, roots = algorithms.make(config), programs.positions(config, 3)
    params = random_params(algorithm.model)
    found = jax.jit(algorithm.search())(params, jax.random.key(0), roots)
    search = PythonTree(config, algorithm, params)
    for i in range(6):
        tree = search(np.asarray(roots.observation[i], np.float32), np.asarray(roots.legal_action_mask[i]))
        np.testing.assert_array_equal(tree.visit_counts(), np.round(found.policy[i] * 24), err_msg=f"position {i}")
        assert tree.value == pytest.approx(float(found.value[i]), abs=1e-5)
    variant = programs.python_self_play(config)
    assert variant.run() != variant.run(), "it goes on"


# --- the hardware report ----------------------------------------------------------------------------------------------


def test_a_frame_in_our_replay_is_bits_and_the_policy():
    """Tic-tac-toe: 18 cells and 9 legal actions in 3 and 2 bytes, 9 float32 of policy, 4 numbers, 2 bools."""
    assert chapters.frame_bytes(tiny_run.CONFIG) == (4 * (18 + 9 + 9 + 4), 3 + 2 + 36 + 4 * 4 + 2)


@pytest.mark.slow  # half a minute
def test_a_report_has_every_chapter_and_plot_and_is_not_written_over(tmp_path, monkeypatch):
    """With one of two CPU devices in the place of an accelerator."""
    dtypes_of, (first, second) = chapters.dtypes_of, jax.devices("cpu")[:2]
    monkeypatch.setattr(chapters, "EFFORT", ONCE)
    monkeypatch.setattr(chapters, "find_devices", lambda: {"JAX GPU": first, "JAX CPU": second})
    monkeypatch.setattr(chapters, "dtypes_of", lambda *given, larger: dtypes_of(*given, larger=not larger))
    monkeypatch.setattr(chapters, "networks", lambda: {"a network": replace(TINY, env="hex", board_size=3)})
    first_case = next(suites.search(quick=True))
    monkeypatch.setattr(suites, "search", lambda quick: iter([first_case]))
    assert hardware_report.main(["--quick", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text()
    assert ", ".join(re.findall(r"^## \d+\. (.*)$", text, re.MULTILINE)) == (
        "Hardware and versions, Matrix product, The MuZero network by batch size, Precision, Crossover, "
        "Transfers between host and device, Search, Memory"
    )
    assert len(re.findall(r"^\| (?:matrix product \(n\)|a network) \| JAX CPU \| JAX GPU \|", text, re.MULTILINE)) == 2
    assert "| a network | JAX CPU | JAX with copies | " in text and text.splitlines()[-1].startswith("Measured in ")
    plots = re.findall(r"\((report-.*\.png)\)", text)
    assert len(plots) == 3 and all((tmp_path / name).stat().st_size > 1000 for name in plots)
    assert report_errors(hardware_report.main, ["--out", str(tmp_path)]) == 2
