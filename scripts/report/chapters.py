"""All chapters of the report, in their order, which is also the order of measuring."""

import time
from collections.abc import Iterator

from scripts.benchmarks import plain_pipeline
from scripts.measuring.machine import Machine
from scripts.measuring.markdown import Section
from scripts.measuring.timing import Say
from scripts.report import arrays, networks, programs, short_run
from scripts.report.particles import particles_section
from scripts.report.sizes import Sizes


def measure(machine: Machine, plan: Sizes, write: Say) -> Iterator[Section]:
    """Each chapter after the one on the machine, as soon as it is measured; `write` gets lines of progress."""
    start = time.perf_counter()

    def say(chapter: str) -> Say:
        return lambda text: write(f"[{time.perf_counter() - start:4.0f} s] {chapter}: {text}")

    matrices = arrays.operation_times(machine, arrays.PRODUCT, plan.matrices, plan, say("matrix product"))
    yield arrays.matrix_section(matrices)
    yield arrays.vector_section(machine, plan, say("vector operations"))
    by_name = {
        name: networks.network_times(machine, plan, config, say(f"{name} network, batch"))
        for name, config in plan.networks.items()
    }
    yield networks.network_section(plan, by_name, len(machine.devices))
    precisions = networks.precision_works(machine, plan, say("precision"))
    yield networks.precision_section(machine, precisions)
    yield networks.crossover_section(machine, matrices, by_name)
    measured = list(programs.measure_programs(plan, len(machine.devices), say("programs")))
    yield programs.throughput_section(measured)
    trained = short_run.short_run(plan.run, say("short run"))
    yield short_run.run_section(trained)
    at_work = list(programs.at_work(machine, plan, by_name, measured, trained))
    yield programs.utilisation_section(machine, matrices, precisions[0], at_work)
    yield arrays.transfers_section(machine, plan, say("transfers"))
    yield particles_section(machine, plan, say("particles"))
    game = plain_pipeline.PlainGame(plan.run)
    game.move()
    frame = plain_pipeline.saved_bytes(game.replay, plan.run)
    yield programs.memory_section(machine, measured, frame)  # last: the peak is that of all chapters
