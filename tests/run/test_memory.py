"""The memory plan against sums worked by hand, and the meter against memory taken on purpose."""

import ctypes
import json
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import MagicMock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.arithmetic import devices
from muzero_jax.learning import replay
from muzero_jax.run import library_tasks, memory, memory_meter, memory_parts
from muzero_jax.run.accounting import Clock
from muzero_jax.run.memory import Plan
from muzero_jax.run.runner import Loop
from muzero_jax.run.session import Session
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG

THREE_TASKS = """\
%product (a: f32[512,128], b: f32[128,128]) -> f32[512,128] {
  %a = f32[512,128]{1,0} parameter(0)
  %b = f32[128,128]{1,0} parameter(1)
  ROOT %dot = f32[512,128]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%body (p: f32[2]) -> f32[2] {
  ROOT %large = f32[512,128]{1,0} fusion(%p, %p), calls=%product, backend_config={"kind":"__ynn_fusion"}
}

ENTRY %main (x: f32[2]) -> f32[2] {
  ROOT %loop = f32[2] while(%x), body=%body, backend_config={"known_trip_count":{"n":"3"}}
}
"""
FRAME = 18 + 9 + 4 * 4 + 9 * 4 + 1  # of tic-tac-toe: 18 + 9 bools, 3 floats and an int, 9 floats, a bool
STORED = 3 + 2 + 4 * 4 + 9 * 4 + 1  # in the ring, where 18 bools are 3 bytes, and 9 are 2
NODE = 16 * 4 + 7 * 4 + 9 * 4 * 4  # the embedding, a node's numbers, four numbers of each edge


@pytest.fixture(scope="module")
def estimate():
    return memory.estimate(CONFIG, tiny_run.parts(), tiny_run.abstract_state(), tiny_run.mesh(), 1e-9)


def one_frame():
    """One transition's abstract shapes."""
    return replay.frame_shapes(tiny_run.abstract_state().replay, tiny_run.parts().environment.observation_shape)


# --- the estimate -----------------------------------------------------------------------------------------------------


def test_the_ring_and_the_trees_are_counted_as_by_hand(estimate):
    """Two devices share 8 games of 32 frames, rollouts of 4 moves and trees of 5 nodes."""
    assert estimate.held["replay"] == 32 * 4 * STORED + 2 * 4  # and two counters
    assert estimate.turns["self-play"] == 8 * (5 * NODE + 4 * FRAME) // 2
    assert estimate.turns["Reanalyze"] == 0


def test_a_checkpoint_being_saved_counts_where_a_chunk_may_follow_a_save():
    def five_minutes(save_every, evaluate_every):
        evaluation = replace(CONFIG.evaluation, interval_minutes=evaluate_every)
        config = replace(CONFIG, minutes=5.0, evaluation=evaluation)
        return memory.estimate(config, tiny_run.parts(), tiny_run.abstract_state(), tiny_run.mesh(), save_every)

    never = five_minutes(save_every=0.0, evaluate_every=0.0)
    assert never == five_minutes(save_every=5.0, evaluate_every=60.0)  # at the end only
    state = sum(never.held.values())
    for plan in (five_minutes(save_every=2.0, evaluate_every=0.0), five_minutes(save_every=5.0, evaluate_every=4.9)):
        assert plan.held == never.held | {"checkpoint being saved": state}
        assert plan.runtime == never.runtime + memory.SAVING_BYTES // 2  # two devices


@pytest.mark.parametrize("save_every, evaluate_every", [(0.0, 0.0), (5.0, 60.0), (2.0, 0.0), (5.0, 4.0), (0.0, 5.0)])
def test_the_loop_saves_before_its_last_chunk_just_where_the_plan_counts_it(save_every, evaluate_every):
    """Five chunks of a minute each, by a clock that only they move."""
    evaluation = replace(CONFIG.evaluation, interval_minutes=evaluate_every)
    config = replace(
        CONFIG,
        minutes=5.0,
        max_iterations=None,
        iterations_per_chunk=1,
        evaluation=evaluation,
    )
    clock, checkpoints = Clock({}), MagicMock()
    others = {name: MagicMock() for name in ("versions", "totals", "profiler", "meter")}
    others["versions"].measure.return_value = others["totals"].add.return_value = {}

    def program(state):
        clock.seconds["train"] += 60.0
        return state, {}

    others |= {"session": Session(checkpoint_minutes=save_every), "reporter": MagicMock(clock=clock)}
    loop = Loop(config=config, program=program, checkpoints=checkpoints, **others)
    _, last, _ = loop.run(tiny_run.abstract_state(), 0)
    saved = [call.args[0] for call in checkpoints.save.call_args_list]
    assert saved[-1] == last == 5
    plan = memory.estimate(config, tiny_run.parts(), tiny_run.abstract_state(), tiny_run.mesh(), save_every)
    assert (len(saved) > 1) == ("checkpoint being saved" in plan.held)


def test_a_batch_counts_only_the_observations_that_are_gathered():
    """8 windows of 7 frames, whose first frame alone brings its 18 bools."""
    assert memory_parts.batch_bytes(CONFIG, one_frame()) == 8 * (18 + 7 * (FRAME - 18))


def test_matches_need_the_trees_of_one_player_at_a_time(estimate):
    """Two games a side at once, and no rollout MCTS among the opponents: one tree of 3 nodes for each game."""
    assert estimate.turns["matches"] == 2 * 3 * NODE // 2


def test_a_products_gradient_keeps_its_input_and_not_the_weights_again():
    weights = jax.ShapeDtypeStruct((3, 2), jnp.float32)
    row = jax.ShapeDtypeStruct((3,), jnp.float32)
    assert memory_parts.residual_bytes(lambda w, x: x @ w, weights, row) == 3 * 4


def test_longer_unrolls_and_larger_batches_need_more_to_learn_and_a_checkpointed_unroll_less():
    def learning(batch_size, unroll_steps, checkpoint_unroll=False, micro_batch=None):
        optimiser = replace(CONFIG.optimiser, batch_size=batch_size, checkpoint_unroll=checkpoint_unroll)
        config = replace(CONFIG, optimiser=optimiser, targets=replace(CONFIG.targets, unroll_steps=unroll_steps))
        params = tiny_run.abstract_state().learner.params
        windows = micro_batch or batch_size
        return memory_parts.learning_bytes(config, tiny_run.parts().model, params, one_frame(), windows=windows)

    assert learning(16, unroll_steps=2) == 2 * learning(8, unroll_steps=2)
    assert learning(8, unroll_steps=8) > 2 * learning(8, unroll_steps=2)
    assert learning(8, unroll_steps=8, checkpoint_unroll=True) < learning(8, unroll_steps=8)
    kept = learning(16, unroll_steps=2) - learning(16, unroll_steps=2, micro_batch=4)
    assert kept == 3 * (learning(8, unroll_steps=2) - learning(8, unroll_steps=2, micro_batch=4))  # 12 windows, and 4


def test_in_parts_learning_needs_one_part_and_the_sum_of_gradients_before(estimate):
    """Each of two devices has 4 windows; in parts of one, it keeps three windows less and one gradient more."""

    def learning(micro_batch):
        config = replace(CONFIG, optimiser=replace(CONFIG.optimiser, micro_batch_size=micro_batch))
        parts, mesh = tiny_run.parts(), tiny_run.mesh()
        return memory.estimate(config, parts, tiny_run.abstract_state(), mesh, 0.0).turns["learning"]

    gradient = memory_parts.tree_bytes(tiny_run.abstract_state().learner.params)
    assert learning(None) == learning(4) == estimate.turns["learning"]
    one_window = learning(2) - learning(1)
    assert learning(4) - learning(2) == 2 * one_window - gradient
    assert one_window > 0


def test_a_node_has_room_for_the_children_that_are_kept():
    """Three slots of 20 bytes, their actions with them, for nine edges of 16; without loops twice these, and a path."""

    def node(**search):
        config = replace(CONFIG, search=replace(CONFIG.search, **search))
        return memory_parts.node_bytes(config, tiny_run.parts(), tiny_run.abstract_state().learner.params)

    assert node() == node(max_children=9) == NODE
    assert node(max_children=3) == NODE - 9 * 16 + 3 * 20
    assert node(engine="loop_free") == NODE + 9 * 16 + 4 * (3 + 16 + 1)


# --- the exact plan ---------------------------------------------------------------------------------------------------


def test_the_exact_plan_is_the_state_and_what_xla_says_that_the_program_needs_beside_it(estimate, monkeypatch):
    monkeypatch.setattr(devices, "schedulable_cores", lambda: 3)  # one for helpers
    analysis = tiny_run.program().memory_analysis()
    exact = memory.exact(estimate, tiny_run.program(), tiny_run.mesh())
    state = sum(exact.held[part] for part in ("replay", "games", "parameters", "optimiser"))
    assert abs(state - analysis.argument_size_in_bytes) < 64  # a few counters and the key
    needed = analysis.temp_size_in_bytes + analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    assert exact.turns["learning"] == needed

    assert exact.held == estimate.held


def test_the_exact_plan_counts_the_tasks_that_the_programs_text_tells_of(estimate, monkeypatch):
    """Three turns of one product."""
    monkeypatch.setattr(devices, "schedulable_cores", lambda: 2)
    program = SimpleNamespace(memory_analysis=tiny_run.program().memory_analysis, as_text=lambda: THREE_TASKS)
    exact = memory.exact(estimate, program, tiny_run.mesh())
    waiting = 3 * library_tasks.TASK_BYTES
    assert exact.held == estimate.held | {memory.QUEUE: waiting}
    assert exact.runtime == estimate.runtime + waiting // 4  # the holes that they leave


def test_a_backend_that_tells_nothing_leaves_the_estimate(estimate):
    class Silent:
        def memory_analysis(self):
            return None

    assert memory.exact(estimate, Silent(), tiny_run.mesh()) == estimate


def test_of_what_takes_turns_only_the_largest_counts():
    plan = Plan({"replay": 100}, {"self-play": 20, "learning": 70, "matches": 30})
    assert plan.rows == {"replay": 100, "learning": 70}
    assert plan.total == 170


def test_on_a_cpu_the_runtime_takes_its_own_and_a_share_of_the_rest():
    plan = Plan({"replay": 100}, {"self-play": 20, "learning": 70}, runtime=1, runtime_share=0.5)
    assert plan.rows == {"replay": 100, "learning": 70, "runtime": 86}
    assert plan.total == 256


@pytest.mark.parametrize(
    "held, turns, flag",
    [
        ({"replay": 9}, {"learning": 8}, "--replay.replay-length"),
        ({"replay": 9}, {"learning": 12, "matches": 3}, "--optimiser.batch-size"),
        ({"replay": 9}, {"self-play": 12, "matches": 3}, "--search.num-simulations"),
        ({"replay": 9}, {"self-play": 12, "matches": 30}, "--evaluation.final-games"),
        ({"replay": 1, "parameters": 9}, {"self-play": 8}, "--network.width"),
        ({"replay": 1, memory.QUEUE: 9}, {"self-play": 8}, "--iterations-per-chunk"),
    ],
)
def test_the_largest_part_decides_which_flag_to_lower(held, turns, flag):
    assert flag in Plan(held, turns, runtime=50).flags


def test_an_exact_plan_is_refused_at_the_last_byte_and_an_estimate_only_far_beyond(monkeypatch):
    plan, mesh, told = Plan({"replay": 1000}, {"learning": 0}), tiny_run.mesh(), []
    available = [1000]
    monkeypatch.setattr(devices, "available_memory_bytes", lambda num_devices=1: available[0])
    memory.check(plan, mesh, told.append)
    available[0] = 999
    with pytest.raises(ValueError, match="lower --replay.replay-length or --self-play.num-envs"):
        memory.check(plan, mesh, told.append)
    assert len(told) == 2 and "available" in told[0]
    with pytest.raises(ValueError, match="lower --replay.replay-length or --self-play.num-envs"):
        memory.refuse(plan, mesh)
    memory.refuse_hopeless(plan, mesh, told.append)
    assert len(told) == 2
    available[0] = 700
    with pytest.raises(ValueError, match="lower --replay"):
        memory.refuse_hopeless(plan, mesh, told.append)


# --- the meter --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(memory_meter.set_back() is None, reason="only Linux lets a process set its peak back")
def test_the_meter_sees_what_a_chunk_takes_and_gives_back_before_it_ends():
    meter = memory_meter.MemoryMeter(tiny_run.mesh())
    assert meter.peak is None
    np.ones(256 * 2**20, np.uint8)  # between chunks: another matter
    taken = 64 * 2**20
    with meter.chunk():
        np.ones(taken, np.uint8)
    with meter.chunk():
        pass
    assert meter.peak == pytest.approx(taken / 2, rel=0.15)  # two devices share it


@pytest.mark.skipif(memory_meter.set_back() is None, reason="only Linux lets a process set its peak back")
def test_free_heap_is_given_back_between_chunks_in_a_hundredth_of_the_time(monkeypatch):
    now, given_back = 0.0, []

    def give_back():
        nonlocal now
        given_back.append(now)
        now += 0.035

    meter = memory_meter.MemoryMeter(tiny_run.mesh())
    monkeypatch.setattr(memory_meter, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(memory_meter, "give_back", give_back)
    for _ in range(9):
        with meter.chunk():
            now += 1
    assert given_back == pytest.approx([1, 5.035, 9.07])


MAPPED_BLOCKS = """
import ctypes, json
from muzero_jax.run import memory_meter

class MallInfo(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

glibc = ctypes.CDLL(None)
glibc.mallinfo2.restype = MallInfo
glibc.malloc.restype, glibc.malloc.argtypes, glibc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

def mapped(number):
    before = glibc.mallinfo2().hblks
    blocks = [glibc.malloc(16 * 2**20) for _ in range(number)]
    taken = glibc.mallinfo2().hblks - before
    for block in blocks:
        glibc.free(block)
    return json.dumps({"mapped": taken, "kept": glibc.mallinfo2().hblks - before})

glibc.mallopt(-3, 32 * 2**20)  # as glibc itself would have it once so large a block was freed
print(mapped(4))
memory_meter.keep_large_blocks_apart()
print(mapped(12))
"""


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="glibc since 2.33 tells how many blocks are mapped apart",
)
@pytest.mark.parametrize("own_setting", [False, True])
def test_large_blocks_stay_out_of_the_heap_and_are_gone_when_freed(own_setting):
    tunables = {"GLIBC_TUNABLES": "glibc.malloc.mmap_threshold=33554432"} if own_setting else {}
    command, environment = [sys.executable, "-c", MAPPED_BLOCKS], os.environ | tunables
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    left_alone, apart = map(json.loads, done.stdout.splitlines())
    assert left_alone == {"mapped": 0, "kept": 0}
    assert apart["kept"] == 0
    assert apart["mapped"] == 0 if own_setting else apart["mapped"] >= 8  # free heap may hold four of the twelve
