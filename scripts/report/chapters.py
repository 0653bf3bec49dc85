"""All chapters of the report, in the order in which they are measured and told."""

import time
from collections.abc import Callable, Iterator

from scripts.report.arithmetic_section import matrix_section, matrix_times, vector_section
from scripts.report.crossover_section import crossover_section
from scripts.report.interference import Interference
from scripts.report.machine import Machine
from scripts.report.network_section import network_section, network_times
from scripts.report.particles_section import particles_section
from scripts.report.plan import Network, Plan
from scripts.report.precision_section import precision_section, precision_works
from scripts.report.records import Section
from scripts.report.run_section import Run, run_section, short_run
from scripts.report.throughput import measure_learner, measure_search
from scripts.report.throughput_section import throughput_section
from scripts.report.timing import Times, in_time
from scripts.report.transfers_section import transfers_section
from scripts.report.utilisation_section import memory_section, utilisation_section

Say = Callable[[str], None]


def progress(write: Callable[[str], None]) -> Callable[[str], Say]:
    """Makes, for a chapter's name, a function that tells how far it has come, with the seconds since the start."""
    start = time.perf_counter()

    def chapter(name: str) -> Say:
        return lambda text: write(f"[{time.perf_counter() - start:4.0f} s] {name}: {text}")

    return chapter


def measure(
    machine: Machine,
    plan: Plan,
    others: Interference,
    write: Callable[[str], None],
    run: Callable[[Plan, Say], Run] = lambda plan, say: short_run(plan.run, say),
) -> Iterator[Section]:
    """Each chapter after the one on the machine, as soon as what it tells is measured.

    `others` watches every stage, `write` gets a line now and then, `run` makes the short run.
    """
    say = progress(write)
    count = len(machine.devices) if plan.all_devices else 1
    networks: dict[Network, Times] = {}
    with others.stage("matrix products"):
        matrices = matrix_times(machine, plan, say("matrix product"))
    yield matrix_section(matrices)
    with others.stage("vector operations"):
        vectors = vector_section(machine, plan, say("vector operations"))
    yield vectors
    for network in plan.networks:
        with others.stage(f"{network.name} network"):
            networks[network] = network_times(machine, plan, network, say(f"{network.name} network, batch"))
    by_name = {network.name: times for network, times in networks.items()}
    yield network_section(plan, by_name, len(machine.devices))
    with others.stage("precision"):
        precisions = precision_works(machine, plan, say("precision"))
    yield precision_section(machine, precisions)
    yield crossover_section(machine, matrices, by_name)
    tell = say("search")
    with others.stage("search"):
        searches = [measure_search(*row, count, tell) for row in in_time(plan.searches, plan.limits, tell)]
    tell = say("gradient steps")
    with others.stage("gradient steps"):
        learners = [measure_learner(row, count, tell) for row in in_time(plan.learners, plan.limits, tell)]
    yield throughput_section(searches, learners)
    with others.stage("short run"):
        trained = run(plan, say("short run"))
    yield run_section(machine, trained)
    yield utilisation_section(machine, matrices, precisions[0], networks, searches, learners, trained)
    with others.stage("transfers"):
        transfers = transfers_section(machine, plan, say("transfers"))
    yield transfers
    with others.stage("particles"):
        particles = particles_section(machine, plan, say("particles"))
    yield particles
    yield memory_section(machine, searches, learners)  # last: the peak is that of all chapters
