"""Particles in a double well and their density on a grid, computed in four ways that must agree.

Overdamped Langevin dynamics in the plane, dX = -grad V(X) dt + sqrt(2 T) dW with V(x, y) = (x^2 - 1)^2 + y^2, by
Euler-Maruyama: X <- X - grad V(X) dt + sqrt(2 T dt) xi, xi ~ N(0, 1). After every step the Gaussian kernel density of
all N particles, p(g) = sum_i exp(-|g - X_i|^2 / (2 h^2)) / (2 pi h^2 N), is evaluated at the G x G points of a grid
over [-2, 2]^2. The kernel is separable, so p is a product of two matrices [G, N] and [N, G]: 2 G N exponentials and
G^2 N multiplications. SciPy's kernels need not be separable, so it takes G^2 N exponentials. The random numbers are
drawn beforehand and shared, so that all ways compute the same thing.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from scripts.report.machine import Device

TIME_STEP = 0.01
TEMPERATURE = 0.5
BANDWIDTH = 0.15
HALF_WIDTH = 2.0
LARGEST_EXPONENT = 40.0
"""Kernels are cut off at exp(-40) an axis. Smaller ones add nothing to a float32, but are or make denormal numbers, on
which NumPy's products are many times slower, while XLA flushes them to zero: without it the comparison is of that."""


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


def simulate_numpy(positions: np.ndarray, noise: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Final positions [N, 2] and the density after every step [T, G, G], by NumPy."""
    densities = []
    for step_noise in noise:
        positions = move(np, positions, step_noise)
        densities.append(density(np, positions, axis))
    return positions, np.stack(densities)


class _FixedKernels(stats.gaussian_kde):
    """SciPy's estimate with kernels of `BANDWIDTH` along both axes, not in proportion to the data's covariance."""

    def _compute_covariance(self):
        """Sets what SciPy's own does, as far as an evaluation reads it."""
        self.cho_cov = BANDWIDTH * np.eye(self.d)
        self.covariance = BANDWIDTH**2 * np.eye(self.d)


def simulate_scipy(positions: np.ndarray, noise: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same with the density by SciPy, in float64."""
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij")).reshape(2, -1)
    densities = []
    for step_noise in noise:
        positions = move(np, positions, step_noise)
        densities.append(_FixedKernels(positions.T)(grid).reshape(len(axis), len(axis)))
    return positions, np.stack(densities)


def _step(positions, noise, axis):
    positions = move(jnp, positions, noise)
    return positions, density(jnp, positions, axis)


_compiled_step = jax.jit(_step)


def simulate_with_transfers(
    positions: np.ndarray, noise: np.ndarray, axis: np.ndarray, device: Device
) -> tuple[np.ndarray, np.ndarray]:
    """The same by one compiled step a call; everything goes to the device before it and back to the host after it.

    Nothing else would do where a step of the loop is somebody's host code: positions are NumPy arrays between steps.
    """
    densities = []
    for step_noise in noise:
        inputs = jax.device_put((positions, step_noise, axis), device)
        positions, step_density = jax.device_get(_compiled_step(*inputs))
        densities.append(step_density)
    return positions, np.stack(densities)


@jax.jit
def simulate_fused(positions: jax.Array, noise: jax.Array, axis: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The same as one program: a scan over the steps; nothing leaves the device."""
    return jax.lax.scan(lambda x, step_noise: _step(x, step_noise, axis), positions, noise)
