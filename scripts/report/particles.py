"""Particles in a double well and their density on a grid, computed in four ways that must agree.

Overdamped Langevin dynamics in the plane, dX = -grad V(X) dt + sqrt(2 T) dW with V(x, y) = (x^2 - 1)^2 + y^2 and
T = 0.5, by Euler-Maruyama with dt = 0.01. After every step the Gaussian kernel density (bandwidth 0.15) of all N
particles is evaluated at the G x G points of a grid over [-2, 2]^2. The kernel is separable, so the density is a
product of two matrices [G, N] and [N, G]; SciPy's `gaussian_kde` takes an exponential for every particle at every
point. The random numbers are drawn beforehand and shared.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from scripts.measuring.machine import Device, Machine
from scripts.measuring.markdown import BarPlot, Compared, Section
from scripts.measuring.timing import Candidate, Say, sweep
from scripts.measuring.words import three_digits
from scripts.report.sizes import Sizes

TIME_STEP, TEMPERATURE, BANDWIDTH, HALF_WIDTH = 0.01, 0.5, 0.15, 2.0
LARGEST_EXPONENT = 40.0
"""Kernels are cut off at exp(-40) an axis. Smaller ones add nothing to a float32, but are or make denormal numbers, on
which NumPy's products are many times slower, while XLA flushes them to zero: without it the comparison is of that."""
FUSED, NUMPY, SCIPY, TRANSFERS = "JAX, one fused scan", "NumPy", "SciPy", "JAX, transfer every step"


def grid_axis(num_points: int) -> np.ndarray:
    """The grid's coordinates along either axis [G]."""
    return np.linspace(-HALF_WIDTH, HALF_WIDTH, num_points, dtype=np.float32)


def start(num_particles: int, num_steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions [N, 2], scattered normally about the saddle, and the noise of every step [T, N, 2], float32."""
    generator = np.random.default_rng(0)
    positions = 0.5 * generator.standard_normal((num_particles, 2), dtype=np.float32)
    return positions, generator.standard_normal((num_steps, num_particles, 2), dtype=np.float32)


def move(library: Any, positions: Any, noise: Any) -> Any:
    """One Euler-Maruyama step of positions [N, 2]; `library` is numpy or jax.numpy."""
    x, y = positions[:, 0], positions[:, 1]
    gradient = library.stack([4 * x * (x * x - 1), 2 * y], axis=1)
    return positions - TIME_STEP * gradient + np.float32(np.sqrt(2 * TEMPERATURE * TIME_STEP)) * noise


def density(library: Any, positions: Any, axis: Any) -> Any:
    """The kernel density [G, G] (x, y) of positions [N, 2] on the grid with coordinates `axis` [G] along both axes."""
    scale = np.float32(1 / (BANDWIDTH * np.sqrt(2)))

    def kernel(coordinate):
        distance = scale * (axis[:, None] - coordinate[None, :])
        return library.exp(-library.minimum(distance * distance, np.float32(LARGEST_EXPONENT)))

    total = kernel(positions[:, 0]) @ kernel(positions[:, 1]).T
    return total * np.float32(1 / (2 * np.pi * BANDWIDTH**2 * positions.shape[0]))


class _FixedKernels(stats.gaussian_kde):
    """SciPy's estimate with kernels of `BANDWIDTH` along both axes, not in proportion to the data's covariance."""

    def _compute_covariance(self):
        """Sets what SciPy's own does, as far as an evaluation reads it."""
        self.cho_cov = BANDWIDTH * np.eye(self.d)
        self.covariance = BANDWIDTH**2 * np.eye(self.d)


def scipy_density(positions: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """`density` by SciPy, in float64."""
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij")).reshape(2, -1)
    return _FixedKernels(positions.T)(grid).reshape(len(axis), len(axis))


def step(library: Any, density: Callable, positions: Any, noise: Any, axis: Any) -> tuple[Any, Any]:
    """The next positions and their density."""
    positions = move(library, positions, noise)
    return positions, density(positions, axis)


_jax_step = partial(step, jnp, partial(density, jnp))
_compiled_step = jax.jit(_jax_step)


def step_with_transfers(device: Device, *inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A compiled step, before which everything goes to the device and after which everything comes back.

    Nothing else would do where a step of the loop is somebody's host code.
    """
    return jax.device_get(_compiled_step(*jax.device_put(inputs, device)))


def simulate(step: Callable, positions: np.ndarray, noise: np.ndarray, axis: np.ndarray) -> tuple[Any, np.ndarray]:
    """Final positions [N, 2] and the density after every step [T, G, G], step by step."""
    densities = []
    for step_noise in noise:
        positions, step_density = step(positions, step_noise, axis)
        densities.append(step_density)
    return positions, np.stack(densities)


@jax.jit
def simulate_fused(positions: jax.Array, noise: jax.Array, axis: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The same as one program: a scan over the steps; nothing leaves the device."""
    return jax.lax.scan(lambda x, step_noise: _jax_step(x, step_noise, axis), positions, noise)


def ways(device: Device, num_steps: int, size: tuple[int, int]) -> dict[str, Candidate]:
    """All four, for a number of particles and of grid points a side; SciPy's is of one step."""
    (positions, noise), axis = start(size[0], num_steps), grid_axis(size[1])
    return {
        FUSED: partial(simulate_fused, *jax.device_put((positions, noise, axis), device)),
        NUMPY: partial(simulate, partial(step, np, partial(density, np)), positions, noise, axis),
        SCIPY: partial(simulate, partial(step, np, scipy_density), positions, noise[:1], axis),
        TRANSFERS: partial(simulate, partial(step_with_transfers, device), positions, noise, axis),
    }


def particles_section(machine: Machine, plan: Sizes, say: Say) -> Section:
    """The chapter on particles, measured here."""
    candidates, work = partial(ways, machine.device, plan.particle_steps), lambda size: size[0] * size[1] ** 2
    calls = sweep(plan.particles, candidates, work=work, limits=plan.limits, say=say)
    times = {
        way: {size: sample.times(1 if way == SCIPY else 1 / plan.particle_steps) for size, sample in row.items()}
        for way, row in calls.items()
    }
    last = max(times[FUSED])
    bars = {way: row[last].median * 1e3 for way, row in times.items() if last in row}
    costs = [1e3 * (times[TRANSFERS][size].median - fused.median) for size, fused in times[FUSED].items()]
    extra = f"{three_digits(min(costs))} to {three_digits(max(costs))} ms a step"
    text = (
        f"{__doc__}\nTime of one step and one density, from runs of {plan.particle_steps} steps (SciPy: one). With "
        "transfers, positions and noise go to the device and positions and density come back every step; the fused "
        "scan starts and ends on the device. A test holds all ways to the same densities."
    )
    named = {way: {_name(size): sample for size, sample in row.items()} for way, row in times.items()}
    compared = Compared("Particles", named, "for", "particles", "steps/s", lambda name: 1.0, "time", size_name=str)
    headlines = [f"Transfers and separate calls add {extra} to the fused scan of the particles, by medians."]
    section = compared.section("Particle density pipeline", text, headlines=headlines)
    return section._replace(plots=[BarPlot("particles", _name(last), "milliseconds a step", bars)])


def _name(size: tuple[int, int]) -> str:
    return f"{size[0]:,} particles on {size[1]} x {size[1]}"
