"""The benchmark says what has become slower, and its programs and those of its baseline do the work they count."""

import functools
import json
import sys
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
from scripts.benchmarks import baseline, day, ours, plain_pipeline, suites, workloads
from scripts.measuring import machine
from scripts.measuring.timing import Variant
from tests.apps.commands.test_shown_commands import complaint

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


def record(median, *, spread=0.0, aim=2.0, **changed):
    ratio = {"numerator": "ours", "denominator": "theirs", "aim": aim, "median": median, "spread": spread}
    rates = {"ours": {"median": median, "spread": spread}}
    return {"suite": "search", "case": "a case", "unit": "calls/s", "rates": rates, "ratios": [ratio]} | changed


def as_report(*records):
    return {"machine": {"hardware": "a machine"}, "results": list(records)}


# --- comparing --------------------------------------------------------------------------------------------------------


def test_a_promised_ratio_that_fell_by_more_than_a_tenth_beyond_the_spreads_is_named():
    (sentence,) = benchmark.compare(as_report(record(4.0)), as_report(record(5.0)))
    assert sentence == "search: a case: ours / theirs: from 5 to 4, 20% worse"
    assert benchmark.compare(as_report(record(4.6)), as_report(record(5.0))) == []
    assert benchmark.compare(as_report(record(4.0, spread=0.06)), as_report(record(5.0, spread=0.06))) == []


@pytest.mark.parametrize("changed", [{"case": "another"}, {"num_devices": 2}, {"aim": None}])
def test_reports_that_share_no_promised_ratio_are_an_error(changed):
    with pytest.raises(ValueError, match="share no ratio"):
        benchmark.compare(as_report(record(4.0)), as_report(record(4.0, **changed)))


@pytest.mark.parametrize("suite", ["search", "self-play", "learner", "iteration"])
def test_our_own_records_can_be_compared_with(suite, nothing_compiles, monkeypatch):
    old = benchmark.read_report(machine.ROOT / f"docs/results/benchmark-two-intel-cores/{suite}.json")
    monkeypatch.setattr(suites.precision, "has_amx", lambda: True)
    promised = {
        (c.suite, c.name, c.num_devices, r.numerator, r.denominator)
        for c in suites.SUITES[suite](False)
        for r in c.ratios
        if r.aim
    }
    assert promised == set(benchmark.promised(old))


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch):
    """A suite of three cases, whose measuring takes no time."""
    cases = [suites.Case("search", name, "calls/s", dict, ()) for name in ("first", "second", "third")]
    monkeypatch.setitem(suites.SUITES, "search", lambda quick: iter(cases))
    monkeypatch.setattr(suites, "measure", lambda case, effort: record(4.0, case=case.name))


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt(), 130), (ValueError("a case failed"), 2)])
def test_what_stops_the_measuring_costs_no_result_before_it(error, status, measured, monkeypatch, tmp_path):
    def measure(case, effort):
        if case.name == "third":
            raise error
        return record(4.0, case=case.name)

    monkeypatch.setattr(suites, "measure", measure)
    out = tmp_path / "new.json"
    assert report_errors(benchmark.main, ["--suite", "search", "--out", str(out)]) == status
    assert [r["case"] for r in benchmark.read_report(out)["results"]] == ["first", "second"]


@pytest.mark.parametrize("name", ["no/such/folder.json", "folder"])
def test_a_file_that_cannot_be_written_is_an_error_before_anything_is_measured(name, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(benchmark.devices, "configure_devices", lambda: pytest.fail("too late"))
    (tmp_path / "folder").mkdir()
    assert report_errors(benchmark.main, ["--out", str(tmp_path / name)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ") and f"--out {tmp_path}" in said or "--out folder.json" in said


def test_the_report_names_machine_and_versions_and_is_one_json_object(measured, capsys, tmp_path):
    assert benchmark.main(["--suite", "search", "--json", "--out", str(tmp_path / "new.json")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "new.json").read_text())
    assert "CPU" in printed["machine"]["hardware"] and printed["machine"]["commit"] == machine.commit()
    assert {"jax", "mctx"} <= set(printed["machine"]["versions"])


def test_a_regression_is_named_and_the_exit_status_says_so(measured, capsys, tmp_path):
    (tmp_path / "old.json").write_text(json.dumps(as_report(record(5.0, case="second"))))
    flags = ["--suite", "search", "--compare", str(tmp_path / "old.json")]
    assert benchmark.main(flags) == benchmark.EXIT_REGRESSION
    assert "regression: search: second: ours / theirs: from 5 to 4" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, "no JSON", "[]", '{"results": [{}]}', json.dumps(as_report(record(0.0)))])
def test_a_file_that_is_no_report_is_one_sentence_and_status_2(content, capsys, tmp_path):
    file = tmp_path / "old.json"
    if content is not None:
        file.write_text(content)
    assert report_errors(benchmark.main, ["--compare", str(file)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_aims_stand_beside_the_ratios_they_are_for():
    assert "| ours / theirs | **2.50x** (aim 3) | 0% |" in benchmark.table(record(2.5, aim=3.0))


# --- suite gpu --------------------------------------------------------------------------------------------------------


@pytest.fixture
def attempted(monkeypatch):
    """What parts were run for at most how long; each takes a second of a clock of its own, and trains fast."""
    asked, clock = [], [0.0]

    def attempt(command, log, seconds):
        asked.append((log.stem, seconds))
        clock[0] += 1.0
        return "ended"

    monkeypatch.setattr(day, "attempt", attempt)
    monkeypatch.setattr(day, "describe_machine", lambda: {"hardware": "Tesla T4"})
    monkeypatch.setattr(day.time, "monotonic", lambda: clock[0])
    return asked


def test_the_day_shares_its_minutes_and_keeps_what_every_part_found(attempted, tmp_path, capsys):
    out = tmp_path / "day.json"
    assert benchmark.main(["--suite", "gpu", "--out", str(out)]) == 0
    parts, seconds = day.parts(quick=False), dict(attempted)
    assert [part["name"] for part in json.loads(out.read_text())["parts"]] == [part.name for part in parts]
    shares = [part.share for part in parts]
    assert seconds["games-x-1"] == pytest.approx((25 * 60 - day.ENDING) * shares[0] / sum(shares))
    assert seconds["hardware"] == pytest.approx(25 * 60 - day.ENDING - (len(parts) - 1)), "what is left over"
    assert 700 < seconds["training"] < 900


def test_a_part_without_time_is_left_out_and_the_record_says_so(attempted, tmp_path):
    found = day.measure(tmp_path / "day.json", 1.0, quick=True, say=lambda text: None)["parts"]
    assert [part["outcome"] for part in found] == ["left out: too little time"] * len(found) and not attempted
    found = day.measure(tmp_path / "longer.json", 2.0, quick=True, say=lambda text: None)["parts"]
    assert found[0]["outcome"] == "ended" and attempted[0] == ("games-x-1", day.LEAST)


def test_every_part_of_the_day_is_a_command_with_flags_that_exist():
    commands = (part.command.format(out="there", minutes=1.0) for part in day.parts(quick=False))
    assert {command: complaint(command) for command in commands if complaint(command)} == {}


def test_a_part_that_takes_too_long_is_stopped_and_one_that_fails_is_named(tmp_path):
    log = tmp_path / "part.txt"
    assert day.attempt([sys.executable, "-c", "import time; time.sleep(60)"], log, 0.5) == "stopped"
    failing = [sys.executable, "-c", "import sys; print('so'); sys.exit(3)"]
    assert day.attempt(failing, log, 20) == "failed with status 3" and log.read_text() == "so\n"


def test_a_trainings_figures_are_those_of_chunks_that_learned(tmp_path):
    """A training that was stopped while it compiled leaves nothing, or a line that is half written."""
    run = tmp_path / "training"
    assert day.read(run) == "nothing; see training.txt"
    run.mkdir()
    rows = [(0.0, 9000.0), (5.0, 100.0), (5.0, 300.0), (5.0, 200.0)]
    lines = [{"train/updates_per_second": u, "selfplay/frames_per_second": f} for u, f in rows]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run / "summary.json").write_text(json.dumps({"strength": {"random": {"score": 0.75}}}))
    assert day.read(run) == "200 frames/s, 75% against random"
    (run / "metrics.jsonl").write_text('{"train/updates_per_sec')
    assert day.read(run) == "nothing that can be read (JSONDecodeError); see training.txt"


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
        assert case.suite == suite and {v for ratio in case.ratios for v in ratio[:2]} == variants
        assert (suites.AUTO in variants) == (amx and suites.ALL in variants)


def test_all_devices_are_as_many_as_divide_games_and_batch(nothing_compiles, monkeypatch):
    asked = []
    monkeypatch.setattr(ours, "iteration", lambda config, num_devices: asked.append(num_devices))
    monkeypatch.setattr(jax, "device_count", lambda: 6)
    for case in suites.iteration(False):
        assert "4 of 6" in case.note and "4 of 6" not in case.name and case.num_devices == 4
        case.make()
    assert set(asked) == {1, 4}


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
