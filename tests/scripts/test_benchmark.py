"""The benchmark and the hardware report: a regression is named, and programs do the work that they count."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest

from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.config.config import Config
from muzero_jax.config.groups import NetworkConfig
from muzero_jax.config.session import Session
from scripts import benchmark, hardware_report
from scripts.benchmarks import chapters, day, programs, suites, timing
from scripts.benchmarks.python_tree import PythonTree
from scripts.benchmarks.timing import Effort
from tests.reference.models import random_params

NETWORK = NetworkConfig(kind="mlp", width=8, num_blocks=0, num_bins=3, compute_dtype="float32")
TINY = programs.learning(programs.playing("tic_tac_toe", NETWORK, 4, 2, rollout_length=2), 4, 1, unroll_steps=1)
ONCE = Effort(rounds=2, seconds=0.0)


@pytest.fixture(autouse=True)
def quick_params(monkeypatch):
    monkeypatch.setattr(programs, "noisy_params", random_params)
    monkeypatch.setattr(timing, "PAUSE_SECONDS", 0.0)


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


def test_a_search_covers_every_position_and_the_bare_network_runs_once_a_simulation():
    asked = programs.positions(TINY, 2)
    found = programs.search(TINY, asked).run()
    assert found.action.shape == (4,) and found.tree is None
    assert np.take_along_axis(np.asarray(asked.legal_action_mask), found.action[:, None], axis=-1).all()
    assert programs.bare_network(TINY, asked).run()[1].shape == (2, 4)  # simulations, games


@pytest.mark.slow
def test_the_python_tree_is_our_puct_tree_visit_for_visit():
    config = programs.searching(programs.playing("tic_tac_toe", NETWORK, 6, 24), policy="puct")
    algorithm, roots = make_algorithm(config), programs.positions(config, 3)
    params = random_params(algorithm.model)
    found = jax.jit(algorithm.search())(params, jax.random.key(0), roots)
    search = PythonTree(config, algorithm, params)
    for i in range(6):
        tree = search(np.asarray(roots.observation[i], np.float32), np.asarray(roots.legal_action_mask[i]))
        np.testing.assert_array_equal(tree.visit_counts(), np.round(found.policy[i] * 24), err_msg=f"position {i}")
        assert tree.value == pytest.approx(float(found.value[i]), abs=1e-5)
    variant = programs.python_self_play(config)
    assert variant.run() != variant.run(), "it goes on"


@pytest.mark.slow  # half a minute
def test_a_report_is_written_and_never_overwritten(tmp_path, monkeypatch):
    """One of two CPU devices stands for an accelerator."""
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


@pytest.mark.parametrize("before", [None, Path("older")])
@pytest.mark.parametrize("quick", [False, True])
def test_the_parts_for_a_gpu_take_the_minutes_given_and_their_flags_exist(before, quick):
    parts = day.parts(7.0, quick=quick, before=before)
    assert sum(part.minutes for part in parts.values()) == pytest.approx(7.0)
    for part in parts.values():
        script, *words = shlex.split(part.command.format(out="out"))
        if script == "experiments/train.py":
            minutes = parser.convert(Config, {"minutes": parser.split(words, Config, Session)["minutes"]}).minutes
            assert minutes < part.minutes, "time to compile is left"
        else:
            parser.read(benchmark.Arguments, words)
    assert [name for name, part in parts.items() if part.checkout == before] == ["before"] * bool(before)


def test_before_must_be_a_checkout_and_makes_nothing_otherwise(tmp_path, capsys):
    flags = ["--suite", "gpu", "--out", str(tmp_path / "day.json"), "--before", str(tmp_path / "none")]
    assert report_errors(benchmark.main, flags) == 2 and "is no checkout" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "flags, says",
    [
        (["--minutes", "3"], "--minutes is for --suite gpu"),
        (["--suite", "learner", "--compare", "OLD"], "has no ratio of learner"),
        (["--compare", "NONE"], "has no ratio with an aim"),
    ],
)
def test_flags_without_effect_and_reports_without_a_shared_ratio_are_refused_before_measuring(
    flags, says, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(benchmark, "measure", None)
    files = {"OLD": [record(4.0)], "NONE": []}
    for name, results in files.items():
        (tmp_path / name).write_text(json.dumps({"results": results}))
    words = [str(tmp_path / word) if word in files else word for word in flags]
    assert report_errors(benchmark.main, words) == 2 and says in capsys.readouterr().err
