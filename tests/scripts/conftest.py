"""Parameters of noise alone, which NumPy draws: compiling a network's own initialisation takes seconds."""

import jax
import numpy as np
import pytest

from scripts.benchmarks import chapters, workloads


def noise_params(model):
    generator = np.random.default_rng(0)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    return jax.tree.map(lambda leaf: 0.3 * generator.standard_normal(leaf.shape, np.float32), shapes)


@pytest.fixture
def quick_params(monkeypatch):
    for module in (workloads, chapters):
        monkeypatch.setattr(module, "noisy_params", noise_params)
