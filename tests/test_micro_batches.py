"""A batch in parts: how large they are, and that their mean is the whole's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax import micro_batches


@pytest.mark.parametrize(
    "batch_size, largest, expected",
    [
        (128, 1000, 128),  # no more than there are
        (128, 128, 128),
        (128, 100, 64),  # a divisor
        (96, 33, 32),
        (7, 6, 1),  # a prime number of windows goes one by one, or whole
        (8, 1, 1),
    ],
)
def test_a_part_is_the_largest_divisor_that_is_allowed(batch_size, largest, expected):
    assert micro_batches.size(batch_size, largest, bytes_per_window=10**9) == expected


def test_a_cpu_is_given_what_its_cache_holds_and_an_accelerator_all(monkeypatch):
    """A layer of 64 channels on 6x7 cells has 10.5 KiB: 36 fit into 384 KiB, and 32 divide 128."""
    assert micro_batches.size(128, None, bytes_per_window=4 * 64 * 42) == 32
    assert micro_batches.size(128, None, bytes_per_window=4 * 64 * 81) == 16
    assert micro_batches.size(256, None, bytes_per_window=4 * 128) == 256  # an MLP's are small
    assert micro_batches.size(8, None, bytes_per_window=10**9) == 1
    monkeypatch.setattr(micro_batches, "target_device", lambda: type("Gpu", (), {"platform": "gpu"}))
    assert micro_batches.size(128, None, bytes_per_window=10**9) == 128


@pytest.mark.parametrize("micro_batch", [1, 3, 6])
def test_the_mean_of_the_parts_is_that_of_the_batch(micro_batch):
    rows = {"x": np.arange(12.0, dtype=np.float32).reshape(6, 2), "y": np.arange(6.0, dtype=np.float32)}

    def gradient(batch):
        return {"sum": jnp.mean(batch["x"] * batch["y"][:, None], axis=0)}, jnp.mean(batch["y"])

    found = jax.jit(lambda batch: micro_batches.mean(gradient, batch, micro_batch))(rows)
    np.testing.assert_allclose(found[0]["sum"], (rows["x"] * rows["y"][:, None]).mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found[1], 2.5, rtol=1e-6)
