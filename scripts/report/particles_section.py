"""The particle density pipeline three ways: NumPy, JAX with a transfer every step, JAX as one fused scan."""

from functools import partial

import jax

from scripts.report import particles
from scripts.report.arithmetic_section import Say
from scripts.report.crossover import compare, describe_comparison
from scripts.report.formatting import seconds, three_digits
from scripts.report.machine import Machine
from scripts.report.plan import Plan
from scripts.report.records import BarPlot, Section, Table
from scripts.report.timing import Candidate, Sample, in_time, measure_in_turn

NUMPY, TRANSFERS, FUSED = "NumPy", "JAX, transfer every step", "JAX, one fused scan"


def particles_section(machine: Machine, plan: Plan, say: Say) -> Section:
    """Measures and tells."""
    times: dict[tuple[int, int], dict[str, Sample]] = {}
    for num_particles, num_points in in_time(plan.particles, plan.limits, say):
        say(f"{num_particles:,} particles, grid {num_points}x{num_points}")
        times[num_particles, num_points] = measure_in_turn(_candidates(machine, plan, num_particles, num_points))
    steps = plan.particle_steps
    rows = [
        (
            f"{n:,}",
            f"{g} x {g}",
            *(seconds(_per_step(row[name], steps)) for name in (NUMPY, TRANSFERS, FUSED)),
            f"{row[NUMPY].median / row[FUSED].median:.2f}x",
            f"{row[TRANSFERS].median / row[FUSED].median:.2f}x",
        )
        for (n, g), row in times.items()
    ]
    header = ("particles", "grid", NUMPY, TRANSFERS, FUSED, "NumPy / fused", "transfers / fused")
    (n, g), largest = max(times.items())
    bars = {name: sample.median / steps * 1e3 for name, sample in largest.items()}
    plot = BarPlot("particles", f"{n:,} particles on a {g} x {g} grid", "milliseconds a step", bars)
    return Section(
        "Particle density pipeline", _text(plan), [Table(header, rows)], [plot], (), _headlines(times, steps)
    )


def _text(plan: Plan) -> str:
    p = particles
    return (
        "Overdamped Langevin dynamics in a double well, dX = -grad V(X) dt + sqrt(2 T) dW with V(x, y) = (x^2 - 1)^2 + "
        f"y^2 and T = {p.TEMPERATURE}, by Euler-Maruyama with dt = {p.TIME_STEP}; after every step the Gaussian kernel "
        f"density (bandwidth {p.BANDWIDTH}) of all particles on a grid over [-2, 2]^2, as a product of two matrices "
        f"since the kernel is separable. Time of one step and one density, from runs of {plan.particle_steps} steps; "
        "the same random numbers for all, drawn beforehand. A test holds the three to the same densities, and those to "
        "SciPy's `gaussian_kde`. With transfers, positions and noise go to the device and positions and density come "
        "back every step; the fused scan starts and ends on the device."
    )


def _candidates(machine: Machine, plan: Plan, num_particles: int, num_points: int) -> dict[str, Candidate]:
    positions, noise = particles.start(num_particles, plan.particle_steps)
    axis = particles.grid_axis(num_points)
    on_device = jax.device_put((positions, noise, axis), machine.device)
    return {
        NUMPY: partial(particles.simulate_numpy, positions, noise, axis),
        TRANSFERS: partial(particles.simulate_with_transfers, positions, noise, axis, machine.device),
        FUSED: partial(particles.simulate_fused, *on_device),
    }


def _per_step(sample: Sample, steps: int) -> Sample:
    return Sample(*(value / steps for value in sample))


def _headlines(times: dict[tuple[int, int], dict[str, Sample]], steps: int) -> list[str]:
    works = {f"{n:,} particles on {g} x {g}": row for (n, g), row in times.items()}
    by_name = {name: {work: row[name] for work, row in works.items()} for name in (NUMPY, TRANSFERS, FUSED)}
    headlines = [
        describe_comparison(FUSED, other, "for", compare(by_name[FUSED], by_name[other]))
        for other in (NUMPY, TRANSFERS)
    ]
    costs = [(row[TRANSFERS].median - row[FUSED].median) / steps * 1e3 for row in times.values()]
    extra = f"{three_digits(min(costs))} to {three_digits(max(costs))} ms a step"
    return [*headlines, f"Transfers and separate calls add {extra} to the fused scan of the particles, by medians."]
