"""What a run will hold in memory, foretold before anything is allocated.

Twice. `estimate` adds up the state and what self-play, learning and matches are known to need, in a second, so that the
hopeless is refused without compiling. `exact` then asks the program, which is compiled from the abstract state.
Self-play, learning and matches take turns, so of what they need while they run only the largest counts.

On a CPU XLA's account is not all: what stands beside it was measured (docs/performance.md has how near the plan comes).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax.sharding import Mesh

from muzero_jax import training
from muzero_jax.arithmetic import devices
from muzero_jax.learning import replay
from muzero_jax.run import library_tasks, memory_parts
from muzero_jax.run.memory_parts import tree_bytes
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import TrainState

MARGIN = 1.25
"""An estimate refuses a run only if it is this many times what is available."""
RUNTIME_BYTES = 31 * 2**20
"""Scratch of the process, which its devices share. This and the next four are of a CPU, fitted to `train.py`'s runs on
Linux with glibc (docs/performance.md)."""
SAVING_BYTES = 13 * 2**20
"""What saves leave there beside."""
RUNTIME_SHARE, RUNTIME_SHARE_BYTES = 0.15, 64 * 2**20
"""With several devices, the share of all else that their threads leave unused as free heap between them. That is small
pieces, which large runs have no more of, so there is a most to it."""
HOLES_SHARE = 0.25
"""Of the tasks in XLA's queue, what small pieces among them keep from being filled again when the tasks are gone."""

QUEUE = "XLA's task queue"
_STATE = ("replay", "games", "parameters", "optimiser")
_FLAGS = {
    "replay": "--replay.replay-length or --self-play.num-envs",
    "checkpoint being saved": "--replay.replay-length or --self-play.num-envs",
    "games": "--self-play.num-envs",
    "parameters": "--network.width",
    "optimiser": "--network.width",
    QUEUE: "--iterations-per-chunk, --optimiser.updates-per-iteration or --devices",
    "self-play": "--self-play.num-envs or --search.num-simulations",
    "Reanalyze": "--replay.reanalyze-fraction or --optimiser.batch-size",
    "learning": "--optimiser.batch-size or --optimiser.micro-batch-size",
    "matches": "--evaluation.final-games or --evaluation.mcts-simulations",
}


class Plan(NamedTuple):
    """Bytes per device, by purpose."""

    held: dict[str, int]  # whatever runs
    turns: dict[str, int]  # while each runs, one after the other
    runtime: int = 0  # what the host's libraries take beside
    runtime_share: float = 0.0  # and for each byte of the above

    @property
    def rows(self) -> dict[str, int]:
        """What is held at the worst time; their sum is the plan's total."""
        busiest = max(self.turns, key=self.turns.__getitem__)
        rows = self.held | {busiest: self.turns[busiest]}
        runtime = self.runtime + min(int(self.runtime_share * sum(rows.values())), RUNTIME_SHARE_BYTES)
        return rows | ({"runtime": runtime} if runtime else {})

    @property
    def total(self) -> int:
        """The peak."""
        return sum(self.rows.values())

    @property
    def flags(self) -> str:
        """What to lower for the largest part."""
        rows = {name: size for name, size in self.rows.items() if name in _FLAGS}
        return _FLAGS[max(rows, key=rows.__getitem__)]


def estimate(config: Config, parts: Parts, state: TrainState, mesh: Mesh, checkpoint_minutes: float) -> Plan:
    """The plan by arithmetic alone, from the abstract state of a run."""
    params = state.learner.params
    leaves = state.replay, state.actor, params, state.learner.optimiser_state
    held = dict(devices.plan_memory(dict(zip(_STATE, leaves, strict=True))))
    runtime, share = 0, 0.0
    if mesh.devices.flat[0].platform == "cpu":
        runtime, share = RUNTIME_BYTES // mesh.size, RUNTIME_SHARE if mesh.size > 1 else 0.0
        if _saves_on_the_way(config, checkpoint_minutes):
            # A save in the background holds on to the state, so the next chunk copies it: it cannot change it in place.
            held |= {"checkpoint being saved": sum(held.values())}
            runtime += SAVING_BYTES // mesh.size
    frame = replay.frame_shapes(state.replay, parts.environment.observation_shape)
    node = memory_parts.node_bytes(config, parts, params)
    windows = mesh.size * training.micro_batch(config, parts.model, config.optimiser.batch_size // mesh.size)
    gradients = 2 if windows < config.optimiser.batch_size else 1  # of one part, and the sum of those before
    learning = memory_parts.learning_bytes(config, parts.model, params, frame, windows=windows)
    turns = {
        "self-play": memory_parts.self_play_bytes(config, node, frame),
        "Reanalyze": memory_parts.reanalyze_bytes(config, node, frame),
        "learning": learning + mesh.size * gradients * tree_bytes(params),
        "matches": memory_parts.match_bytes(config, parts, node),
    }
    return Plan(held, {name: size // mesh.size for name, size in turns.items()}, runtime, share)


def _saves_on_the_way(config: Config, checkpoint_minutes: float) -> bool:
    """Whether the clock may order a save before the last chunk (`runner.Loop`): by itself or after an evaluation.

    Whether it will depends on what else takes the time: compiling, `max_iterations`, the session that is resumed.
    """
    intervals = checkpoint_minutes, config.evaluation.interval_minutes
    return any(0 < minutes < config.minutes for minutes in intervals)


def exact(plan: Plan, program: Any, mesh: Mesh) -> Plan:
    """An estimated plan with what the compiled program needs in place of the parts of it that take turns.

    The program's row bears the name of the part that is estimated to be its largest. XLA counts a device's share:
    results that take no argument's place, temporaries and, on an accelerator, code; what its library takes on a CPU is
    added.
    """
    analysis = program.memory_analysis()
    if analysis is None:  # a backend that doesn't tell
        return plan
    results = analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    needed = results + analysis.temp_size_in_bytes + analysis.generated_code_size_in_bytes
    matches = {"matches": plan.turns["matches"]}
    in_program = [name for name in plan.turns if name not in matches]
    turns = {max(in_program, key=plan.turns.__getitem__): needed} | matches
    waiting = library_tasks.waiting_bytes(program, mesh)
    runtime = plan.runtime + int(HOLES_SHARE * waiting)
    return plan._replace(held=plan.held | ({QUEUE: waiting} if waiting else {}), turns=turns, runtime=runtime)


def refuse_hopeless(estimate: Plan, mesh: Mesh, say: Callable[[str], None]) -> None:
    """Tells an estimate and raises ValueError, naming the flags to lower, if it is far beyond what is available."""
    available = devices.available_memory_bytes(mesh.size)
    if available is not None and estimate.total > MARGIN * available:
        check(estimate, mesh, say)


def check(plan: Plan, mesh: Mesh, say: Callable[[str], None]) -> None:
    """Tells a plan; raises ValueError, naming the flags to lower, if it will not fit."""
    say(devices.format_plan(devices.plan_memory(plan.rows), devices.available_memory_bytes(mesh.size)))
    refuse(plan, mesh)


def refuse(plan: Plan, mesh: Mesh) -> None:
    """Raises ValueError, naming the flags to lower, if a plan that was told will not fit any more."""
    devices.check_plan(plan.total, devices.available_memory_bytes(mesh.size), plan.flags)
