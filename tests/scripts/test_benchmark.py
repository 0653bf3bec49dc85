"""The benchmark measures in turn, says what has become slower, and its baseline does the same work as ours."""

import json
import subprocess
import sys
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.command_line import report_errors
from muzero_jax.storage.config import NetworkConfig
from scripts import benchmark
from scripts.benchmarks import measuring, memory, ours, report, straightforward, suites, workloads
from scripts.benchmarks.measuring import Case, Effort, Ratio, Variant

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


def record(median, *, spread=0.0, ratio=1.0, higher_is_better=True):
    return {
        "suite": "search",
        "case": "a case",
        "unit": "calls/s",
        "higher_is_better": higher_is_better,
        "rates": {
            "ours": {"median": median, "spread": spread, "judged": True},
            "theirs": {"median": median, "spread": spread, "judged": False},
        },
        "ratios": [
            {"numerator": "ours", "denominator": "theirs", "aim": None, "judged": higher_is_better}
            | {"median": ratio, "spread": spread}
        ],
    }


def as_report(*records, hardware="a machine"):
    return {"machine": {"hardware": hardware}, "results": list(records)}


# --- measuring --------------------------------------------------------------------------------------------------------


def test_variants_are_called_in_turn_round_after_round():
    calls = []
    variants = {name: Variant(lambda name=name: calls.append(name), 1.0) for name in "AB"}
    rates = measuring.in_turn(variants, Effort(rounds=3, seconds=0.0))
    assert "".join(calls[-6:]) == "ABABAB"
    assert {name: len(samples) for name, samples in rates.items()} == {"A": 3, "B": 3}


def test_slow_programs_get_three_rounds_and_no_more():
    variants = {"slow": Variant(lambda: None, 1.0)}
    assert len(measuring.in_turn(variants, Effort(rounds=9, seconds=0.0, enough=0.0))["slow"]) == 3
    assert len(measuring.in_turn(variants, Effort(rounds=2, seconds=0.0, enough=0.0))["slow"]) == 2


def test_a_short_program_is_called_often_enough_to_be_timed():
    calls = []
    measuring.in_turn({"short": Variant(lambda: calls.append(1), 1.0)}, Effort(rounds=1, seconds=0.01))
    assert len(calls) > 100


def test_a_ratio_is_the_median_of_the_rounds_ratios_not_the_ratio_of_medians(monkeypatch):
    """The machine halves its speed in the second round and both suffer alike: the ratio is 2 throughout."""
    rates = {"ours": [20.0, 10.0, 60.0], "theirs": [10.0, 5.0, 30.0]}
    monkeypatch.setattr(measuring, "in_turn", lambda variants, effort: rates)
    case = Case("search", "a case", "calls/s", dict, (Ratio("ours", "theirs", 1.5),))
    (ratio,) = measuring.measure(case, Effort.quick())["ratios"]
    assert (ratio["median"], ratio["spread"], ratio["aim"]) == (2.0, 0.0, 1.5)


def test_the_spread_is_half_the_interquartile_range_over_the_median():
    assert measuring.summary([8.0, 9.0, 10.0, 11.0, 12.0]) == {"median": 10.0, "spread": 0.1}
    assert measuring.summary([3.0]) == {"median": 3.0, "spread": 0.0}


# --- comparing --------------------------------------------------------------------------------------------------------


def worsened(new, old):
    """What a comparison names."""
    return report.compare(new, old)[1]


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
        patch.setattr(measuring, "in_turn", lambda variants, effort: rates)
        return measuring.measure(case._replace(make=dict), Effort.quick())


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

    assert report.compare(on(1, 1.0), on(2, 2.0)) == (0, [])
    (sentence,) = worsened(on(2, 1.0), on(2, 2.0))
    assert sentence.startswith("search: a case: ours, 2 devices / ours, 1 device: from 2 to 1")


def test_memory_that_grew_is_a_regression_and_memory_that_shrank_is_none():
    small, large = (as_report(record(size, higher_is_better=False)) for size in (100.0, 150.0))
    assert len(worsened(large, small)) == 1
    assert worsened(small, large) == []


def test_a_case_that_only_one_report_has_is_not_compared():
    assert report.compare(as_report(record(1.0)), as_report()) == (0, [])
    assert report.compare(as_report(record(1.0)), as_report(record(1.0) | {"case": "another"})) == (0, [])
    assert report.compare(as_report(record(1.0)), as_report(record(1.0))) == (2, [])  # a rate of ours and a ratio


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.setattr(benchmark, "results", lambda suites, quick: iter([record(80.0)]))
    monkeypatch.setattr(benchmark, "coming", lambda suites, quick: as_report(record(80.0)))


def stopped_by(error, after=2):
    """In place of the results: cases 0, 1, ..., then the error."""

    def results(suites, quick):
        yield from (record(80.0) | {"case": f"case {number}"} for number in range(after))
        raise error

    return results


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (ValueError("a case failed"), 2)])
def test_what_stops_the_measuring_costs_no_result_before_it(error, status, monkeypatch, capsys, tmp_path):
    file = tmp_path / "new.json"
    monkeypatch.setattr(benchmark, "results", stopped_by(error))
    assert report_errors(benchmark.main, ["--out", str(file)]) == status
    kept, reason = capsys.readouterr().err.splitlines()
    assert kept == f"cases kept in {file}: 2"
    assert reason in ("interrupted", "error: a case failed")
    assert [r["case"] for r in benchmark.read_report(file)["results"]] == ["case 0", "case 1"]


def test_without_a_file_nothing_is_kept_and_ctrl_c_says_so(monkeypatch, capsys):
    monkeypatch.setattr(benchmark, "results", stopped_by(KeyboardInterrupt()))
    assert report_errors(benchmark.main, []) == 130
    assert capsys.readouterr().err.splitlines() == ["no case is kept, for want of --out", "interrupted"]


def test_an_older_report_stays_until_the_first_case_is_measured(monkeypatch, tmp_path):
    file = tmp_path / "new.json"
    file.write_text("older")
    monkeypatch.setattr(benchmark, "results", stopped_by(KeyboardInterrupt(), after=0))
    assert report_errors(benchmark.main, ["--out", str(file)]) == 130
    assert [path.read_text() for path in tmp_path.iterdir()] == ["older"]


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
    assert printed["machine"]["commit"] == report.commit()
    assert {"jax", "mctx"} <= set(printed["machine"]["versions"])


def test_the_commit_is_that_of_the_clone_and_none_outside_of_one(monkeypatch, tmp_path):
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=report.ROOT)
    assert head.returncode or head.stdout.startswith(str(report.commit()).removesuffix("-dirty"))
    monkeypatch.setattr(report, "ROOT", tmp_path)
    assert report.commit() is None


def test_the_commit_of_a_repository_that_holds_a_copy_of_ours_is_not_told(monkeypatch):
    monkeypatch.setattr(report, "ROOT", report.ROOT / "scripts")
    assert report.commit() is None


def test_the_command_is_told_without_the_folders_of_its_owner(monkeypatch):
    told = ["--out", "/home/me/new/", "--compare=/me/a.json", "../me/b", "~/c", "docs/d.json", "--quick"]
    monkeypatch.setattr(report.sys, "argv", ["/home/me/scripts/benchmark.py", *told])
    command = "python scripts/benchmark.py --out new --compare=a.json b c docs/d.json --quick"
    assert report.machine()["command"] == command


def test_a_regression_is_named_and_the_exit_status_says_so(measured, capsys, tmp_path):
    old = as_report(record(100.0)) | {"machine": report.machine()}
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert benchmark.main(["--suite", "search", "--compare", str(tmp_path / "old.json")]) == benchmark.EXIT_REGRESSION
    shown = capsys.readouterr().err
    assert "regression: search: a case: ours: from 100 to 80" in shown and "2 figures, 1 of them worse" in shown


BASELINES = report.ROOT / "docs/results/benchmark-two-intel-cores"


@pytest.mark.parametrize(
    ("suite", "baseline"),
    [
        ("learner", "search.json"),
        ("memory", "memory.json"),  # of other hardware, so no figure of it travels
        ("learner --quick", "learner.json"),  # whose cases are not the quick ones
        ("all", "nobodys.json"),
    ],
)
def test_nothing_in_common_is_one_sentence_and_status_2_before_anything_is_measured(
    suite, baseline, monkeypatch, capsys, tmp_path
):
    (tmp_path / "nobodys.json").write_text(json.dumps(as_report(record(1.0) | {"case": "another"})))
    monkeypatch.setattr(benchmark, "results", lambda suites, quick: pytest.fail("too late"))
    monkeypatch.setattr(benchmark.devices, "describe_device", lambda: "another machine")
    file = (tmp_path if baseline == "nobodys.json" else BASELINES) / baseline
    assert report_errors(benchmark.main, ["--suite", *suite.split(), "--compare", str(file)]) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith(f"error: nothing of --suite {suite} can be compared with {file}: ")


@pytest.mark.parametrize("suite", benchmark.SUITES)
def test_our_own_reports_are_compared_with_on_such_a_machine(suite, monkeypatch):
    old = benchmark.read_report(BASELINES / f"{suite}.json")
    monkeypatch.setattr(benchmark.devices, "describe_device", lambda: old["machine"]["hardware"])
    monkeypatch.setattr(suites.precision, "has_amx", lambda: True)
    coming = benchmark.coming((suite,), False)
    assert {name for name, *_ in report.shared(coming, old)} == {name for name, *_ in report.shared(old, old)}


def test_figures_that_turn_out_to_be_missing_are_no_silent_success(measured, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(benchmark, "results", lambda suites, quick: iter([record(80.0) | {"rates": {}, "ratios": []}]))
    (tmp_path / "old.json").write_text(json.dumps(as_report(record(80.0))))
    assert report_errors(benchmark.main, ["--json", "--compare", str(tmp_path / "old.json")]) == 2
    assert "error: nothing was compared with " in capsys.readouterr().err


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
    text = report.table([record(80.0) | {"ratios": [record(1.0)["ratios"][0] | {"aim": 3.0, "median": 2.5}]}])
    assert "| ours / theirs | **2.50x** (aim 3) | 0% |" in text


# --- what is measured -------------------------------------------------------------------------------------------------


@pytest.fixture
def nothing_compiles(monkeypatch):
    """Variants that do nothing in place of those that are programs."""

    def variant(*arguments, **keywords):
        return Variant(lambda: None, 1.0)

    programs = tuple(suites.PROGRAMS.values())
    names = {
        ours: ("Positions", "search_call", "bare_network", "host_driven_self_play", *programs),
        straightforward: programs,
    }
    for module, replaced in names.items():
        for name in replaced:
            monkeypatch.setattr(module, name, variant)


@pytest.mark.parametrize("amx", [False, True])
@pytest.mark.parametrize("suite", suites.SUITES)
@pytest.mark.parametrize("quick", [True, False])
def test_every_ratio_of_a_case_asks_about_two_of_its_variants(suite, quick, amx, nothing_compiles, monkeypatch):
    monkeypatch.setattr(suites.precision, "has_amx", lambda: amx)
    cases = list(suites.SUITES[suite](quick))
    assert cases and len({case.name for case in cases}) == len(cases)
    for case in cases:
        variants = set(case.make())
        asked = {name for ratio in case.ratios for name in (ratio.numerator, ratio.denominator)}
        assert case.suite == suite and asked == variants
        assert (suites.AUTO in variants) == (amx and suites.ALL in variants)


def test_all_devices_are_as_many_as_divide_games_and_batch(nothing_compiles, monkeypatch):
    asked = []
    monkeypatch.setattr(ours, "iteration", lambda config, num_devices: asked.append(num_devices))
    monkeypatch.setattr(jax, "device_count", lambda: 6)
    for case in suites.iteration(False):
        assert "4 of 6" in case.note and "4 of 6" not in case.name and case.num_devices == 4
        case.make()
    assert set(asked) == {1, 4}
    monkeypatch.setattr(memory, "run_apart", lambda case, num_devices: {memory.PLANNED: 1})
    names = [measure()["case"] for _, measure in memory.records(quick=False)]
    assert names[:2] == ["tic-tac-toe preset, 1 device", "tic-tac-toe preset, 4 devices"]


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
        assert set(case.make()) - case.ours <= {suites.MCTX, suites.NETWORK, suites.PLAIN}
        assert case.ours.isdisjoint({suites.MCTX, suites.NETWORK, suites.PLAIN})


@pytest.mark.parametrize("config", [workloads.w1(), workloads.w2(), workloads.hex_tower()], ids=lambda c: c.env)
def test_the_straightforward_network_has_the_size_of_ours(config):
    """It encodes the action its own way; all else is the same."""
    parts, program = workloads.parts_of(config), straightforward.Program(config)
    theirs = jax.eval_shape(program.init)
    own = {k: v for k, v in jax.eval_shape(parts.model.init, jax.random.key(0)).items() if k != "decoder"}
    assert number_of(theirs) == pytest.approx(number_of(own), rel=0.15)


def number_of(params):
    return sum(leaf.size for leaf in jax.tree.leaves(params))


def test_noise_moves_every_leaf_by_its_own_draw():
    one, other = jax.tree.leaves(workloads.with_noise({"a": jnp.zeros(100), "b": jnp.zeros(100)}, jax.random.key(0)))
    assert np.std(one) == pytest.approx(0.1, rel=0.3)
    assert (one != other).all()


@pytest.fixture(scope="module")
def straightforward_iteration():
    return straightforward.iteration(TINY)


def test_an_iteration_of_the_straightforward_program_changes_its_parameters(straightforward_iteration):
    run, frames = straightforward_iteration
    (before, _), (after, _) = run(), run()
    assert frames == 8
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after))
    assert any((x != y).any() for x, y in zip(*map(jax.tree.leaves, (before, after)), strict=True))


def test_self_play_driven_from_python_brings_every_move_to_the_host():
    moves = ours.host_driven_self_play(TINY).run()
    assert isinstance(moves.action, np.ndarray) and moves.action.shape == (2, 4)
    assert moves.legal_action_mask[np.indices((2, 4))[0], np.indices((2, 4))[1], moves.action].all()


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
def test_the_straightforward_programs_self_play_makes_legal_moves(policy):
    run, moves = straightforward.self_play(workloads.with_engine(TINY, "mctx", policy))
    first, second = run(), run()
    assert first.action.size == moves == 8
    for played in (first, second):
        assert np.take_along_axis(played.legal_action_mask, played.action[..., None], axis=-1).all()
    assert (first.observation != second.observation).any()  # it goes on from where it was


def test_a_search_call_searches_every_position_and_the_bare_network_is_asked_once_a_simulation():
    positions = ours.Positions(workloads.parts_of(TINY), 4, 2)
    found = ours.search_call(workloads.with_engine(TINY, "own", "gumbel"), positions).run()
    assert found.action.shape == (4,) and found.tree is None
    assert np.take_along_axis(positions.legal_action_mask, found.action[:, None], axis=-1).all()
    _, scalars = ours.bare_network(TINY, positions).run()
    assert scalars.shape == (2, 4)  # simulations, games


def test_gradient_steps_of_both_programs_change_their_parameters():
    updates = replace(TINY, optimiser=replace(TINY.optimiser, updates_per_iteration=2))
    run, count = ours.learning(updates, 2)
    (first, second), work = [jax.device_get(run()) for _ in range(2)], count
    assert work == 2
    assert first["train/parameter_norm"] != second["train/parameter_norm"]
    run, work = straightforward.learning(TINY)
    (before, *_), (after, *_) = run(), run()
    assert work == 1
    assert any((x != y).any() for x, y in zip(*map(jax.tree.leaves, (before, after)), strict=True))


def test_our_iteration_goes_on_from_where_it_was():
    run, frames = ours.iteration(TINY, 2)
    metrics = [run(), run()]
    assert frames == 4 * 8  # four iterations a chunk
    assert [int(m["selfplay/frames"].sum()) for m in metrics] == [32, 32]
    assert all(float(m["train/updates"].sum()) == 4 for m in metrics)


def test_the_memory_suites_runs_are_whole_ones_that_end_once_they_have_learned():
    config = memory.short_run(TINY)
    assert config.max_iterations - TINY.iterations_to_learn == memory.ITERATIONS
    assert 0 < config.evaluation.interval_minutes < TINY.evaluation.interval_minutes
    assert 0 < memory.SESSION.checkpoint_minutes < config.evaluation.interval_minutes
    changed = ("minutes", "max_iterations", "evaluation")
    same = {name: getattr(TINY, name) for name in changed}
    assert replace(config, **same) == TINY


@pytest.mark.parametrize(
    ("child", "reason"),
    [
        ("import sys; sys.exit('error: this run needs more; lower a flag')", "this run needs more; lower a flag"),
        ("import jax; jax.eval_shape(lambda: 1 / 0)", "ZeroDivisionError: division by zero"),
        ("import os; os._exit(9)", "exit status 9"),
    ],
)
def test_a_memory_run_that_fails_is_one_sentence_with_its_last_word(child, reason, monkeypatch):
    run = memory.subprocess.run
    monkeypatch.setattr(memory.subprocess, "run", lambda command, **how: run([command[0], "-c", child], **how))
    with pytest.raises(ValueError) as caught:
        memory.run_apart("Hex 5x5 preset", 2)
    assert str(caught.value) == f"the run that measures memory failed (Hex 5x5 preset, 2 devices): {reason}"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process held at its peak")
def test_a_memory_run_in_a_process_of_its_own_is_planned_and_measured():
    found = memory.run_apart("tic-tac-toe preset", 2)
    assert 0 < found[memory.PLANNED] < found[memory.MEASURED]  # so small a run is mostly what XLA's libraries take


def test_the_memory_suite_sets_the_plan_beside_what_was_held_where_that_can_be_measured():
    found = {memory.PLANNED: 6 * 2**20}
    ratios = memory.figures(found | {memory.MEASURED: 4 * 2**20})["ratios"]
    assert [(r["numerator"], r["median"]) for r in ratios] == [(memory.PLANNED, 1.5)]
    assert memory.figures(found)["ratios"] == []
