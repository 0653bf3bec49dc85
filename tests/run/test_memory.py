"""The memory plan against sums worked by hand and one compiled program."""

from types import SimpleNamespace

import pytest

from muzero_jax.run import memory
from muzero_jax.run.memory import Plan
from tests.reference import tiny_run

FRAME = 3 + 2 + 4 * 4 + 9 * 4 + 2
"""Bytes of a stored frame of tic-tac-toe: 18 bools are 3 and 9 are 2; 3 floats and an int, 9 floats, two bools."""


def make_plan(program, *, copied_by_saves=False):
    return memory.make_plan(tiny_run.abstract_state(), program, copied_by_saves=copied_by_saves)


def test_the_plan_is_the_state_plus_what_xla_reports_for_the_program():
    """Two devices share 8 games of 32 frames; two counters of the buffer are on both. A save holds the state again."""
    sizes = {"output": 1000, "alias": 900, "temp": 20, "generated_code": 3, "argument": 10**9}
    account = SimpleNamespace(**{f"{name}_size_in_bytes": size for name, size in sizes.items()})
    compiled = SimpleNamespace(memory_analysis=lambda: account)
    plan = make_plan(compiled)
    assert list(plan.parts) == ["replay", "games", "parameters", "optimiser", "program"]
    assert plan.parts["replay"] == 8 * 32 * FRAME // 2 + 2 * 4 and plan.parts["program"] == 123
    copy = make_plan(compiled, copied_by_saves=True).total - plan.total
    assert copy == plan.total - 123 == sum(plan.parts.values()) - 123


@pytest.mark.usefixtures("unbroken")  # which compiles the program
def test_a_compiled_program_takes_the_planned_state_and_returns_it_in_place():
    plan, account = make_plan(tiny_run.program()), tiny_run.program().memory_analysis()
    state = plan.total - plan.parts["program"]
    assert abs(state - account.argument_size_in_bytes) < 64  # a few counters and the key
    assert plan.parts["program"] >= account.temp_size_in_bytes > 0
    assert plan.parts["program"] < account.temp_size_in_bytes + state / 2  # results are metrics; the state is reused


@pytest.mark.parametrize(
    ("parts", "flag"),
    [
        ({"replay": 9, "program": 8, memory.SAVING: 10}, "--replay.replay-length or --self-play.num-envs"),
        ({"replay": 9, "program": 12}, "--optimiser.batch-size, --self-play.num-envs or --search.num-simulations"),
        ({"replay": 1, "optimiser": 9, "program": 8}, "--network.width or --network.num-blocks"),
    ],
)
def test_a_run_that_cannot_fit_is_refused_with_the_flags_that_lower_its_largest_part(parts, flag):
    """From the first byte too many, and never where memory is unknown."""
    plan = Plan(parts)
    plan.check(plan.total)
    plan.check(None)
    with pytest.raises(ValueError, match=f"lower {flag}$"):
        plan.check(plan.total - 1)
