"""The benchmark says what has become slower, and its programs and those of its baseline do the work they count."""

import functools
import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.storage.config_groups import NetworkConfig
from scripts import benchmark
from scripts.benchmarks import baseline, cases, ours, plain_pipeline, suites, workloads
from scripts.measuring import machine, timing
from scripts.measuring.timing import Variant

TINY = workloads.whole_iteration(
    workloads.workload(
        "tic_tac_toe",
        NetworkConfig(kind="mlp", width=8, num_blocks=0, num_bins=3),
        num_envs=4,
        num_simulations=2,
        rollout_length=2,
    ),
    batch_size=4,
    updates=1,
)
TINY = replace(TINY, targets=replace(TINY.targets, unroll_steps=1, td_steps=2))  # an unroll takes long to compile


@pytest.fixture(scope="module")
def one_program():
    """Tests share the baseline of a config, so that each of its functions is compiled once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baseline, "Program", functools.cache(baseline.Program))
        yield


def record(median, *, spread=0.0, ratio=1.0):
    return {
        "suite": "search",
        "case": "a case",
        "unit": "calls/s",
        "rates": {
            "ours": {"median": median, "spread": spread, "judged": True},
            "theirs": {"median": median, "spread": spread, "judged": False},
        },
        "ratios": [
            {"numerator": "ours", "denominator": "theirs", "aim": None, "judged": True}
            | {"median": ratio, "spread": spread}
        ],
    }


def as_report(*records, hardware="a machine"):
    return {"machine": {"hardware": hardware}, "results": list(records)}


# --- comparing --------------------------------------------------------------------------------------------------------


def worsened(new, old):
    """What a comparison names."""
    return cases.compare(new, old)[1]


def test_what_fell_by_more_than_a_tenth_is_named():
    (sentence,) = worsened(as_report(record(80.0)), as_report(record(100.0)))
    assert sentence == "search: a case: ours: from 100 to 80, 20% worse (10% allowed)"


def test_a_yardstick_that_became_slower_or_faster_is_no_regression_of_ours():
    new, old = (as_report(measured_case(own, mctx, network)) for own, mctx, network in ((2, 1, 4), (2, 3, 2)))
    assert worsened(new, old) == []  # own / mctx rose, own / network and mctx / network fell
    worse = as_report(measured_case(own=1, mctx=1, network=4))
    assert [sentence.split(": ")[2] for sentence in worsened(worse, new)] == [
        f"{suites.OWN} / {suites.MCTX}",
        suites.OWN,
    ]


def test_an_older_report_that_does_not_say_what_is_judged_is_compared_with():
    old = as_report(record(100.0))
    for figure in (*old["results"][0]["rates"].values(), *old["results"][0]["ratios"]):
        del figure["judged"]
    assert len(worsened(as_report(record(80.0)), old)) == 1


def measured_case(own, mctx, network):
    """The record of the first search case, were its programs as fast as that."""
    (case, *_) = suites.search(True)
    rates = {suites.OWN: [own], suites.LOOP_FREE: [2], suites.MCTX: [mctx], suites.NETWORK: [network]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "rates", lambda variants, effort: rates)
        return cases.measure(case._replace(make=dict), timing.QUICK)


def test_what_fell_within_the_spread_of_both_reports_is_no_regression():
    new, old = as_report(record(80.0, spread=0.06)), as_report(record(100.0, spread=0.06))
    assert worsened(new, old) == []


def test_between_machines_ratios_are_compared_and_rates_are_not():
    new, old = as_report(record(1.0, ratio=1.0)), as_report(record(100.0, ratio=2.0), hardware="another machine")
    (sentence,) = worsened(new, old)
    assert "ours / theirs: from 2 to 1" in sentence


def test_figures_on_all_devices_are_compared_only_with_those_on_as_many():
    def on(count, speedup):
        ratio = record(1.0, ratio=speedup)["ratios"][0] | {"numerator": suites.ALL, "denominator": suites.ONE}
        return as_report(record(1.0) | {"num_devices": count, "ratios": [ratio]}, hardware=f"{count} devices")

    assert cases.compare(on(1, 1.0), on(2, 2.0)) == (0, [])
    (sentence,) = worsened(on(2, 1.0), on(2, 2.0))
    assert sentence.startswith("search: a case: ours, 2 devices / ours, 1 device: from 2 to 1")


def test_a_case_that_only_one_report_has_is_not_compared():
    assert cases.compare(as_report(record(1.0)), as_report()) == (0, [])
    assert cases.compare(as_report(record(1.0)), as_report(record(1.0) | {"case": "another"})) == (0, [])
    assert cases.compare(as_report(record(1.0)), as_report(record(1.0))) == (2, [])  # a rate of ours and a ratio


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch):
    case = SimpleNamespace(number=0)
    monkeypatch.setattr(benchmark, "cases_of", lambda suites, quick: [case])
    monkeypatch.setattr(cases, "outline", lambda case: record(80.0))
    monkeypatch.setattr(cases, "measure", lambda case, effort: record(80.0))


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (ValueError("a case failed"), 2)])
def test_what_stops_the_measuring_costs_no_result_before_it(error, status, monkeypatch, tmp_path):
    def measure(case, effort):
        if case == "third":
            raise error
        return record(80.0) | {"case": case}

    monkeypatch.setattr(benchmark, "cases_of", lambda suites, quick: ["first", "second", "third"])
    monkeypatch.setattr(cases, "measure", measure)
    assert report_errors(benchmark.main, ["--out", str(tmp_path / "new.json")]) == status
    assert [r["case"] for r in benchmark.read_report(tmp_path / "new.json")["results"]] == ["first", "second"]


@pytest.mark.parametrize("name", ["no/such/folder.json", "file/in-a-file.json", "folder"])
def test_a_file_that_cannot_be_written_is_one_sentence_before_anything_is_measured(name, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(benchmark.devices, "configure_devices", lambda: pytest.fail("too late"))
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    assert report_errors(benchmark.main, ["--out", str(tmp_path / name)]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith(f"error: --out {tmp_path / name} ") and "; name a" in sentence


def test_the_report_names_machine_and_versions_and_is_one_json_object(measured, capsys, tmp_path):
    assert benchmark.main(["--suite", "search", "--json", "--out", str(tmp_path / "new.json")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "new.json").read_text())
    assert "CPU" in printed["machine"]["hardware"]
    assert printed["machine"]["commit"] == machine.commit()
    assert {"jax", "mctx"} <= set(printed["machine"]["versions"])


def test_a_regression_is_named_and_the_exit_status_says_so(measured, capsys, tmp_path):
    old = as_report(record(100.0)) | {"machine": machine.describe(["benchmark.py"])}
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert benchmark.main(["--suite", "search", "--compare", str(tmp_path / "old.json")]) == benchmark.EXIT_REGRESSION
    shown = capsys.readouterr().err
    assert "regression: search: a case: ours: from 100 to 80" in shown and "2 figures, 1 of them worse" in shown


BASELINES = machine.ROOT / "docs/results/benchmark-two-intel-cores"


@pytest.mark.parametrize(
    ("suite", "baseline"),
    [
        ("learner", "search.json"),
        ("learner --quick", "learner.json"),  # whose cases are not the quick ones
        ("all", "nobodys.json"),
    ],
)
def test_nothing_in_common_is_one_sentence_and_status_2_before_anything_is_measured(
    suite, baseline, monkeypatch, capsys, tmp_path
):
    (tmp_path / "nobodys.json").write_text(json.dumps(as_report(record(1.0) | {"case": "another"})))
    monkeypatch.setattr(benchmark, "measure", lambda *arguments: pytest.fail("too late"))
    monkeypatch.setattr(benchmark.devices, "describe_device", lambda: "another machine")
    file = (tmp_path if baseline == "nobodys.json" else BASELINES) / baseline
    assert report_errors(benchmark.main, ["--suite", *suite.split(), "--compare", str(file)]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith(f"error: nothing of these suites can be compared with {file}: ")


@pytest.mark.parametrize("suite", ["search", "self-play", "learner", "iteration"])
def test_our_own_reports_are_compared_with_on_such_a_machine(suite, monkeypatch):
    old = benchmark.read_report(BASELINES / f"{suite}.json")
    monkeypatch.setattr(suites.precision, "has_amx", lambda: True)
    outlines = [cases.outline(case) for case in benchmark.cases_of((suite,), False)]
    coming = {"machine": old["machine"], "results": outlines}
    assert {name for name, *_ in cases.shared(coming, old)} == {name for name, *_ in cases.shared(old, old)}


NO_MEDIAN = json.dumps(as_report(record(1.0))).replace("median", "mean")
NO_HARDWARE = json.dumps(as_report(record(1.0)) | {"machine": {}})


NO_RATES = json.dumps(as_report(record(1.0) | {"rates": []}))
ZERO = json.dumps(as_report(record(0.0, spread=0.1)))
DAMAGED = ["no JSON", "[]", '{"results": []}', '{"machine": {}, "results": [{}]}']


@pytest.mark.parametrize("content", [None, *DAMAGED, NO_MEDIAN, NO_HARDWARE, NO_RATES, ZERO])
def test_a_file_that_is_no_report_is_one_sentence_and_status_2(content, capsys, tmp_path):
    file = tmp_path / "old.json"
    if content is not None:
        file.write_text(content)
    assert report_errors(benchmark.main, ["--compare", str(file)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_aims_stand_beside_the_ratios_they_are_for():
    text = cases.table(record(80.0) | {"ratios": [record(1.0)["ratios"][0] | {"aim": 3.0, "median": 2.5}]})
    assert "| ours / theirs | **2.50x** (aim 3) | 0% |" in text


# --- what is measured -------------------------------------------------------------------------------------------------


@pytest.fixture
def nothing_compiles(monkeypatch):
    """Variants that do nothing in place of those that are programs."""

    def variant(*arguments, **keywords):
        return Variant(lambda: None, 1.0)

    programs = tuple(set(suites.PROGRAMS.values()))
    monkeypatch.setattr(plain_pipeline, "self_play", variant)
    names = {
        ours: ("positions", "search", "bare_network", "host_driven_self_play", *programs),
        baseline: programs,
    }
    for module, replaced in names.items():
        for name in replaced:
            monkeypatch.setattr(module, name, variant)


@pytest.mark.parametrize("amx", [False, True])
@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("suite", suites.SUITES)
def test_every_ratio_of_a_case_asks_about_two_of_its_variants(suite, quick, amx, nothing_compiles, monkeypatch):
    monkeypatch.setattr(suites.precision, "has_amx", lambda: amx)
    found = list(suites.SUITES[suite](quick))
    assert found and len({case.name for case in found}) == len(found)
    for case in found:
        variants = set(case.make())
        assert case.suite == suite and cases.asked_about(case.ratios) == variants
        assert (suites.AUTO in variants) == (amx and suites.ALL in variants)


def test_all_devices_are_as_many_as_divide_games_and_batch(nothing_compiles, monkeypatch):
    asked = []
    monkeypatch.setattr(ours, "iteration", lambda config, num_devices: asked.append(num_devices))
    monkeypatch.setattr(jax, "device_count", lambda: 6)
    for case in suites.iteration(False):
        assert "4 of 6" in case.note and "4 of 6" not in case.name and case.num_devices == 4
        case.make()
    assert set(asked) == {1, 4}


@pytest.mark.parametrize("suite", suites.SUITES)
def test_judged_are_ratios_of_ours_to_anything_but_the_bare_network_and_rates_of_ours(
    suite, nothing_compiles, monkeypatch
):
    monkeypatch.setattr(suites.precision, "has_amx", lambda: True)
    for case in suites.SUITES[suite](False):
        judged = {ratio for ratio in case.ratios if ratio.judged}
        no_blame = {suites.NETWORK, suites.OWN}  # may become faster alone, as may float32
        expected = {r for r in case.ratios if r.numerator in case.ours and r.denominator not in no_blame}
        assert judged == expected - {r for r in expected if (r.numerator, r.denominator) == (suites.AUTO, suites.ALL)}
        yardsticks = {suites.MCTX, suites.NETWORK, suites.PLAIN, suites.TREE}
        assert set(case.make()) - case.ours <= yardsticks and case.ours.isdisjoint(yardsticks)


@pytest.mark.parametrize("amx", [False, True])
def test_each_step_of_the_ablation_is_one_from_the_step_before(amx, nothing_compiles, monkeypatch):
    def program(config, num_devices=None):
        return config.self_play.num_envs, num_devices, config.network.compute_dtype

    monkeypatch.setattr(ours, "host_driven_self_play", program)
    monkeypatch.setattr(ours, "self_play", program)
    monkeypatch.setattr(suites.precision, "has_amx", lambda: amx)
    (case,) = suites.ablation(False)
    steps = case.make()
    del steps[suites.TREE]
    expected = {
        suites.ONE_GAME: (1, None, "float32"),
        suites.HOST: (512, None, "float32"),
        suites.ONE: (512, 1, "float32"),
        suites.ALL: (512, 2, "float32"),
    }
    assert steps == expected | ({suites.AUTO: (512, 2, "auto")} if amx else {})
    assert {(r.numerator, r.denominator) for r in case.ratios if r.aim} == {
        (last, suites.TREE) for last in (suites.ALL, *[suites.AUTO] * amx)
    }


def test_noise_moves_every_leaf_by_its_own_draw():
    model = SimpleNamespace(init=lambda key: {"a": jnp.zeros(100), "b": jnp.ones(100)})
    one, other = jax.tree.leaves(workloads.noisy_params(model))
    assert np.std(one) == pytest.approx(0.1, rel=0.3) and np.mean(other) == pytest.approx(1.0, abs=0.1)
    assert (one != other - 1).all()


def test_an_iteration_of_the_baseline_plays_and_changes_its_parameters(one_program, quick_params):
    run, frames = baseline.iteration(TINY)
    (before, _), (after, _) = run(), run()
    assert frames == 8
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after))
    assert any((x != y).any() for x, y in zip(*map(jax.tree.leaves, (before, after)), strict=True))


@pytest.mark.parametrize(
    "program", [baseline.self_play, ours.host_driven_self_play, partial(ours.self_play, num_devices=2)]
)
def test_self_play_goes_on_with_legal_moves(program, one_program, quick_params):
    run, moves = program(TINY)
    first, second = run(), run()
    assert first.action.size == moves == 8
    for played in (first, second):
        assert np.take_along_axis(played.legal_action_mask, played.action[..., None], axis=-1).all()
    assert (first.observation != second.observation).any()  # it goes on from where it was
    assert isinstance(first.action, np.ndarray) == (program is ours.host_driven_self_play)


def test_a_search_call_searches_every_position_and_the_bare_network_is_asked_once_a_simulation(quick_params):
    asked = ours.positions(TINY, 4, 2)
    found = ours.search(TINY, asked).run()
    assert found.action.shape == (4,) and found.tree is None
    assert np.take_along_axis(asked.legal_action_mask, found.action[:, None], axis=-1).all()
    _, scalars = ours.bare_network(TINY, asked).run()
    assert scalars.shape == (2, 4)  # simulations, games


def test_gradient_steps_of_both_programs_change_their_parameters(one_program, quick_params):
    updates = replace(TINY, optimiser=replace(TINY.optimiser, updates_per_iteration=2))
    run, work = ours.learning(updates, 2)
    first, second = [jax.device_get(run()) for _ in range(2)]
    assert work == 2
    assert first["train/parameter_norm"] != second["train/parameter_norm"]
    run, work = baseline.learning(TINY)
    (before, *_), (after, *_) = run(), run()
    assert work == 1
    assert any((x != y).any() for x, y in zip(*map(jax.tree.leaves, (before, after)), strict=True))


@pytest.mark.slow
def test_our_iteration_goes_on_from_where_it_was(quick_params):
    run, frames = ours.iteration(TINY, 2)
    metrics = [run(), run()]
    assert frames == 4 * 8  # four iterations a chunk
    assert [int(m["selfplay/frames"].sum()) for m in metrics] == [32, 32]
    assert all(float(m["train/updates"].sum()) == 4 for m in metrics)
