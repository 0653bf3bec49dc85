"""The benchmark and the hardware report: figures by hand, and programs and yardsticks that do the work they count."""

import json
from dataclasses import replace

import jax
import numpy as np
import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.storage.config_groups import NetworkConfig
from scripts import benchmark, hardware_report
from scripts.benchmarks import chapters, programs, report, suites, timing
from scripts.benchmarks.python_tree import PythonTree
from scripts.benchmarks.timing import Effort, Variant
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
def test_a_report_is_written_and_not_written_over(tmp_path, monkeypatch):
    """With one of two CPU devices in the place of an accelerator."""
    dtypes_of, (first, second) = chapters.dtypes_of, jax.devices("cpu")[:2]
    monkeypatch.setattr(chapters, "EFFORT", ONCE)
    monkeypatch.setattr(chapters, "find_devices", lambda: {"JAX GPU": first, "JAX CPU": second})
    monkeypatch.setattr(chapters, "dtypes_of", lambda *given, larger: dtypes_of(*given, larger=not larger))
    monkeypatch.setattr(chapters, "networks", lambda: {"a network": replace(TINY, env="hex", board_size=3)})
    first_case = next(suites.search(quick=True))
    monkeypatch.setattr(suites, "search", lambda quick: iter([first_case]))
    assert hardware_report.main(["--quick", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "report.md").read_text().splitlines()[-1].startswith("Measured in ")
    assert report_errors(hardware_report.main, ["--out", str(tmp_path)]) == 2
