"""The memory plan against sums worked by hand and one compiled program; the meter against memory taken on purpose."""

import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from muzero_jax import algorithm as algorithms
from muzero_jax import presets
from muzero_jax.run import assembly, memory, program
from muzero_jax.run.assembly import assemble
from muzero_jax.run.memory import Meter, Plan
from muzero_jax.storage import run_directory
from tests.reference import tiny_run
from tests.reference.programs import compiled_before
from tests.reference.tiny_run import CONFIG

FRAME = 3 + 2 + 4 * 4 + 9 * 4 + 2
"""Bytes of a frame of tic-tac-toe in the ring: 18 bools are 3 and 9 are 2; 3 floats and an int, 9 floats, two bools."""


def compiled(account):
    return SimpleNamespace(memory_analysis=lambda: account)


def make_plan(program, *, copied_by_saves=False):
    return memory.make_plan(tiny_run.abstract_state(), program, copied_by_saves=copied_by_saves)


# --- the plan ---------------------------------------------------------------------------------------------------------


def test_the_plan_is_the_state_and_what_xla_says_that_the_program_needs_besides():
    """Two devices share 8 games of 32 frames; two counters of the ring are on both."""
    sizes = {"output": 1000, "alias": 900, "temp": 20, "generated_code": 3, "argument": 10**9}
    plan = make_plan(compiled(SimpleNamespace(**{f"{name}_size_in_bytes": size for name, size in sizes.items()})))
    assert list(plan.parts) == ["replay", "games", "parameters", "optimiser", "program"]
    assert plan.parts["replay"] == 8 * 32 * FRAME // 2 + 2 * 4
    assert plan.parts["program"] == 123
    assert plan.total == sum(plan.parts.values())


def test_a_real_program_takes_the_planned_state_as_its_argument_and_gives_it_back_in_place():
    plan, account = make_plan(tiny_run.program()), tiny_run.program().memory_analysis()
    state = plan.total - plan.parts["program"]
    assert abs(state - account.argument_size_in_bytes) < 64  # a few counters and the key
    assert plan.parts["program"] >= account.temp_size_in_bytes > 0
    assert plan.parts["program"] < account.temp_size_in_bytes + state / 2  # results are metrics; the state is reused


def test_a_checkpoint_being_saved_holds_the_state_once_more():
    without = make_plan(compiled(None))
    assert make_plan(compiled(None), copied_by_saves=True).parts == without.parts | {memory.SAVING: without.total}


def test_what_the_process_holds_already_is_part_of_the_plan_on_a_cpu_alone():
    plan = memory.make_plan(tiny_run.abstract_state(), compiled(None), copied_by_saves=False, held=1000)
    assert plan.total == make_plan(compiled(None)).total + 1000
    assert memory.held_by_process([SimpleNamespace(platform="gpu")]) == 0


@pytest.mark.parametrize("saves", [False, True])
def test_a_run_on_a_cpu_plans_that_copy_if_it_saves_before_its_end(saves, monkeypatch):
    ready = compiled_before(tiny_run.program)
    monkeypatch.setattr(assembly, "make_chunk", lambda *arguments, **options: ready)
    said = []
    run = assemble(CONFIG, tiny_run.mesh(), said.append, saves=saves)
    assert (memory.SAVING in run.plan.parts) == saves
    assert said[0].startswith("compiling") and re.match("memory .* per device", said[1]) and len(said) == 2
    assemble(CONFIG, tiny_run.mesh(), said.append, saves=saves, verbose=True)
    assert "total per device" in said[3]


def test_a_backend_without_an_account_plans_the_state_alone():
    assert "program" not in make_plan(compiled(None)).parts


def test_the_plan_says_what_an_optimiser_saves():
    """AdamW keeps two numbers a weight, Muon one of a matrix. Adafactor keeps a row and a column of one this large."""

    def planned(name):
        network = replace(CONFIG.network, width=128)
        config = replace(CONFIG, network=network, optimiser=replace(CONFIG.optimiser, name=name))
        abstract = program.make_init(algorithms.make(config), 0, tiny_run.mesh()).eval_shape()
        return memory.make_plan(abstract, compiled(None), copied_by_saves=False).parts

    adamw, adafactor, muon = map(planned, ("adamw", "adafactor", "muon"))
    assert adamw["optimiser"] == pytest.approx(2 * adamw["parameters"], abs=64)
    assert adafactor["optimiser"] < 0.25 * adamw["optimiser"]
    assert 0.5 * adamw["optimiser"] < muon["optimiser"] < 0.6 * adamw["optimiser"]


def test_of_arrays_that_devices_share_one_devices_part_counts():
    everywhere, split = (NamedSharding(tiny_run.mesh(), PartitionSpec(*spec)) for spec in ((), ("data",)))
    arrays = {
        "w": jax.ShapeDtypeStruct((10, 10), jnp.float32, sharding=everywhere),
        "frames": jax.ShapeDtypeStruct((8, 1000), jnp.bool_, sharding=split),
        "rewards": jax.ShapeDtypeStruct((8, 4), jnp.bfloat16, sharding=split),
        "key": jax.eval_shape(lambda: jax.random.key(0)),
    }
    assert memory.bytes_per_device(arrays) == 400 + 4000 + 4 * 4 * 2 + 8


def test_the_table_tells_the_largest_part_first_and_what_is_available():
    plan = Plan({"parameters": 400, "replay": 4032, "program": 2048})
    lines = [
        "replay              3.9 KiB",
        "program             2.0 KiB",
        "parameters            400 B",
        "total per device    6.3 KiB",
    ]
    assert plan.table(None).splitlines() == lines
    assert plan.table(3 * 2**30).splitlines() == [*lines, "available           3.0 GiB"]


@pytest.mark.parametrize(
    ("parts", "flag"),
    [
        ({"replay": 9, "program": 8, memory.SAVING: 10}, "--replay.replay-length or --self-play.num-envs"),
        ({"replay": 9, "program": 12}, "--optimiser.batch-size, --self-play.num-envs or --search.num-simulations"),
        ({"replay": 1, "parameters": 9, "program": 8}, "--network.width or --network.num-blocks"),
        ({"replay": 1, "optimiser": 9, "program": 8}, "--network.width or --network.num-blocks"),
        ({"parameters": 1, "optimiser": 2, "program": 30}, "--network.width or --network.num-blocks"),
        ({"replay": 1, "games": 9}, "--self-play.num-envs"),
    ],
)
def test_a_run_that_cannot_fit_is_refused_with_the_flags_that_lower_its_largest_part(parts, flag):
    plan = Plan({name: size * 2**29 for name, size in parts.items()})
    sentence = f"^this run needs .* GiB of memory per device but 512.0 MiB are available; lower {flag}$"
    with pytest.raises(ValueError, match=sentence):
        plan.check(2**29)


def test_a_run_is_refused_from_the_first_byte_too_many_and_never_where_memory_is_unknown():
    plan = Plan({"replay": 1000})
    plan.check(1000)
    plan.check(None)
    with pytest.raises(ValueError, match="lower"):
        plan.check(999)


# --- the meter --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not memory._CLEAR.exists(), reason="only Linux lets a process forget its peak")
def test_the_meter_sees_what_the_process_has_held_since_it_was_made_shared_by_its_devices():
    two = jax.devices()[:2]
    np.ones(512 * 2**20, np.uint8)  # before: another matter
    meter, held = Meter(two), memory.held_by_process(two)
    np.ones(128 * 2**20, np.uint8)
    assert meter.peak == pytest.approx(held + 64 * 2**20, abs=8 * 2**20)


@pytest.mark.skipif(not memory._CLEAR.exists(), reason="only Linux lets a process forget its peak")
def test_a_meter_forgets_what_was_before_its_restart_and_what_comes_after_its_stop():
    meter = Meter(jax.devices()[:1])
    np.ones(256 * 2**20, np.uint8)
    before = meter.peak
    meter.restart()
    assert meter.peak < before - 128 * 2**20
    meter.stop()
    stopped = meter.peak
    np.ones(256 * 2**20, np.uint8)
    assert meter.peak == stopped


@pytest.mark.parametrize(("counts", "peak"), [((5, 7), 7), ((5, None), 5), ((None, None), None)])
def test_an_accelerator_counts_for_itself_if_it_can(counts, peak):
    told = [{} if count is None else {"peak_bytes_in_use": count} for count in counts]
    assert (
        Meter([SimpleNamespace(platform="gpu", memory_stats=lambda stats=stats: stats) for stats in told]).peak == peak
    )


def test_a_system_that_cannot_forget_a_peak_measures_none(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_CLEAR", tmp_path / "missing" / "clear_refs")
    assert Meter(jax.devices()[:1]).peak is None


@pytest.mark.slow
@pytest.mark.skipif(not memory._CLEAR.exists(), reason="only Linux lets a process set its peak back")
def test_a_whole_run_holds_about_what_was_planned(tmp_path):
    """The smallest preset comes furthest from its plan: compiling the matches leaves 200 MiB behind."""
    iterations = presets.tic_tac_toe().iterations_to_learn + 60
    flags = f"--env tic_tac_toe --devices 2 --minutes 5 --max-iterations {iterations} --checkpoint-minutes 0.05"
    command = [sys.executable, "-m", "muzero_jax", "train", *flags.split(), "--evaluation.interval-minutes", "0.25"]
    subprocess.run([*command, "--run-dir", str(tmp_path / "run")], check=True, capture_output=True)
    found = run_directory.read_summary(tmp_path / "run")["memory"]
    assert 1 / 2 < found["planned"] / found["peak"] < 1.5
