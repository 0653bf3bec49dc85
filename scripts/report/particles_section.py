"""The particle density pipeline: NumPy, SciPy where it is fast enough, JAX with transfers, JAX as one fused scan."""

from functools import partial

import jax

from scripts.report import particles
from scripts.report.arithmetic_section import Say
from scripts.report.crossover import compare, describe_comparison
from scripts.report.formatting import seconds, three_digits
from scripts.report.machine import Machine
from scripts.report.plan import Plan
from scripts.report.records import BarPlot, Section, Table
from scripts.report.timing import Candidate, Sample, expected_seconds, in_time, measure_in_turn

NUMPY, SCIPY, TRANSFERS, FUSED = "NumPy", "SciPy", "JAX, transfer every step", "JAX, one fused scan"
WAYS = (NUMPY, SCIPY, TRANSFERS, FUSED)
Times = dict[tuple[int, int], dict[str, Sample]]
"""By particles and grid points a side, and by way."""


def particles_section(machine: Machine, plan: Plan, say: Say) -> Section:
    """Measures and tells."""
    times = _times(machine, plan, say)
    rows = [
        (
            f"{n:,}",
            f"{g} x {g}",
            *(seconds(row.get(name)) for name in WAYS),
            f"{row[NUMPY].median / row[FUSED].median:.2f}x",
            f"{row[TRANSFERS].median / row[FUSED].median:.2f}x",
        )
        for (n, g), row in times.items()
    ]
    header = ("particles", "grid", *WAYS, "NumPy / fused", "transfers / fused")
    (n, g), largest = max(times.items())
    bars = {name: sample.median * 1e3 for name, sample in largest.items()}
    plot = BarPlot("particles", f"{n:,} particles on a {g} x {g} grid", "milliseconds a step", bars)
    return Section("Particle density pipeline", _text(plan), [Table(header, rows)], [plot], (), _headlines(times))


def _times(machine: Machine, plan: Plan, say: Say) -> Times:
    """Seconds of one step. SciPy has none where a call is expected to take longer than the plan's limit."""
    times: Times = {}
    of_scipy: dict[int, Sample] = {}  # by its number of exponentials
    for num_particles, num_points in in_time(plan.particles, plan.limits, say):
        say(f"{num_particles:,} particles, grid {num_points}x{num_points}")
        candidates = _candidates(machine, plan, num_particles, num_points)
        exponentials = num_particles * num_points**2
        if expected_seconds(of_scipy, exponentials, float) > plan.limits.call_seconds:
            del candidates[SCIPY]
        measured = measure_in_turn(candidates)
        row = {name: _per_step(s, 1 if name == SCIPY else plan.particle_steps) for name, s in measured.items()}
        times[num_particles, num_points] = row
        if SCIPY in row:
            of_scipy[exponentials] = row[SCIPY]
    return times


def _text(plan: Plan) -> str:
    p = particles
    return (
        "Overdamped Langevin dynamics in a double well, dX = -grad V(X) dt + sqrt(2 T) dW with V(x, y) = (x^2 - 1)^2 + "
        f"y^2 and T = {p.TEMPERATURE}, by Euler-Maruyama with dt = {p.TIME_STEP}; after every step the Gaussian kernel "
        f"density (bandwidth {p.BANDWIDTH}) of all particles on a grid over [-2, 2]^2, as a product of two matrices "
        f"since the kernel is separable. Time of one step and one density, from runs of {plan.particle_steps} steps; "
        "the same random numbers for all, drawn beforehand. A test holds all ways to the same densities. SciPy's is by "
        "`gaussian_kde`, told this bandwidth, which takes an exponential for every particle at every point; from runs "
        f"of one step, where that is not expected to take over {plan.limits.call_seconds:g} s. With transfers, "
        "positions and noise go to the device and positions and density come back every step; the fused scan starts "
        "and ends on the device."
    )


def _candidates(machine: Machine, plan: Plan, num_particles: int, num_points: int) -> dict[str, Candidate]:
    positions, noise = particles.start(num_particles, plan.particle_steps)
    axis = particles.grid_axis(num_points)
    on_device = jax.device_put((positions, noise, axis), machine.device)
    return {
        NUMPY: partial(particles.simulate_numpy, positions, noise, axis),
        SCIPY: partial(particles.simulate_scipy, positions, noise[:1], axis),
        TRANSFERS: partial(particles.simulate_with_transfers, positions, noise, axis, machine.device),
        FUSED: partial(particles.simulate_fused, *on_device),
    }


def _per_step(sample: Sample, steps: int) -> Sample:
    return Sample(*(value / steps for value in sample))


def _headlines(times: Times) -> list[str]:
    works = {f"{n:,} particles on {g} x {g}": row for (n, g), row in times.items()}
    by_name = {name: {work: row[name] for work, row in works.items() if name in row} for name in WAYS}
    headlines = [
        describe_comparison(FUSED, other, "for", compare(by_name[FUSED], by_name[other])) for other in WAYS[:-1]
    ]
    costs = [(row[TRANSFERS].median - row[FUSED].median) * 1e3 for row in times.values()]
    extra = f"{three_digits(min(costs))} to {three_digits(max(costs))} ms a step"
    return [*headlines, f"Transfers and separate calls add {extra} to the fused scan of the particles, by medians."]
