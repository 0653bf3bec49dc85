"""One learner for several boards: `train.py --env hex --board-sizes 5 7 9 11`.

Each size has its own games, replay buffer and compiled program. The chunks of the sizes alternate and share the weights
and the optimiser, so that the agent does not forget small boards while it learns large ones. In the state of such a
run, `actor` and `replay` are dicts by size; a chunk sees its own entry.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from muzero_jax.algorithm import Algorithm, make_algorithm
from muzero_jax.config.config import Config
from muzero_jax.config.session import Session
from muzero_jax.run import memory, program
from muzero_jax.run.compiled import Init, Program, compile_planned, count
from muzero_jax.run.flops import Flops
from muzero_jax.run.machine import available_memory_bytes, format_bytes
from muzero_jax.types import Metrics, TrainState


def of_board(config: Config, size: int) -> Config:
    """The config for one board size of a run: the same number of random moves per game, random moves before a game in
    proportion to its cells, and in Hex, whose games end when all are full, `td_steps` up to them.

    Boards larger than the run's own `board_size` keep its `td_steps`.
    """
    cells = size**2
    of_config = (config.board_size or size) ** 2
    td_steps = config.targets.td_steps
    exploration = min(1.0, config.self_play.exploration * of_config / cells)
    return replace(
        config,
        board_size=size,
        self_play=replace(
            config.self_play,
            exploration=exploration,
            start_moves=max(1, round(config.self_play.start_moves * cells / of_config)),
        ),
        targets=replace(config.targets, td_steps=min(td_steps, cells) if config.env == "hex" else td_steps),
    )


def name(size: int) -> str:
    """A board's key in the state, and the end of the name of its opening-value accuracy."""
    return f"{size}x{size}"


def turn(config: Config, iteration: int) -> int:
    """The board size of the chunk that begins with this iteration; a size given twice has twice as many chunks."""
    return config.board_sizes[iteration // config.iterations_per_chunk % len(config.board_sizes)]


def own_state(state: TrainState, size: int) -> TrainState:
    """The part of the state that one board's program takes."""
    return state._replace(actor=state.actor[name(size)], replay=state.replay[name(size)])  # type: ignore[index]


def with_own(state: TrainState, size: int, own: TrainState) -> TrainState:
    """The state after a chunk of one board."""
    actor = state.actor | {name(size): own.actor}  # type: ignore
    replay = state.replay | {name(size): own.replay}  # type: ignore
    return own._replace(actor=actor, replay=replay)


def make_init(own: dict[int, Algorithm], seed: int, mesh: Mesh) -> Any:
    """`program.make_init` for all boards; the weights are the first board's, which fit every board."""

    def init() -> TrainState:
        states = {size: program.init(algorithm, seed) for size, algorithm in own.items()}
        actors, buffers = ({name(s): getattr(x, part) for s, x in states.items()} for part in ("actor", "replay"))
        return next(iter(states.values()))._replace(actor=actors, replay=buffers)  # type: ignore[arg-type]

    specs = program.state_specs()
    specs = specs._replace(replay={name(size): specs.replay for size in own})  # type: ignore[arg-type]
    return jax.jit(init, out_shardings=program.placed(specs, mesh))


def compile_sizes(
    config: Config, algorithm: Algorithm, mesh: Mesh, session: Session, say: Callable[[str], None]
) -> tuple[Program, Init]:
    """`compiled.compile_agent` for a run of several boards; `algorithm` is that of the config's `board_size`."""
    others = {size: make_algorithm(of_board(config, size)) for size in config.boards if size != config.board_size}
    own = {size: others.get(size, algorithm) for size in config.boards}
    init = make_init(own, config.seed, mesh)
    progress = program.abstract_progress(config.iterations_per_chunk)
    abstract = init.eval_shape()
    states = {size: own_state(abstract, size) for size in own}
    traced = {size: program.make_chunk(own[size], mesh).trace(states[size], progress) for size in own}
    costs = {size: count(config, of_size) for size, of_size in traced.items()}

    def compile_size(size: int) -> Any:
        found, _ = compile_planned(traced[size], states[size], mesh, session, lambda line: say(f"{name(size)}: {line}"))
        return found

    # A program for a GPU takes about a minute of one core. XLA's compiler for CPUs uses all cores by itself.
    is_cpu = mesh.devices.flat[0].platform == "cpu"
    with ThreadPoolExecutor(1 if is_cpu else len(own)) as pool:
        programs = dict(zip(own, pool.map(compile_size, own), strict=True))

    def advance(state: TrainState, progress: np.ndarray) -> tuple[TrainState, Metrics]:
        size = turn(config, int(state.iteration))
        after, metrics = programs[size](own_state(state, size), progress)
        return with_own(state, size, after), metrics | {"train/board_size": np.full(len(progress), size, np.float32)}

    largest = programs[max(programs)]
    plan = memory.make_plan(abstract, largest, copied_by_saves=is_cpu)
    say(f"memory      {format_bytes(plan.total)} per device for all boards")
    plan.check(available_memory_bytes(len(mesh.local_devices)))
    mean = Flops(*np.mean([costs[size] for size in config.board_sizes], axis=0).tolist())
    return Program(advance=advance, text=largest.as_text, plan=plan, flops=mean), init
