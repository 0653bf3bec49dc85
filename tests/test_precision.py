"""What `--network.compute-dtype auto` means where."""

from types import SimpleNamespace

import jax
import pytest

from muzero_jax import precision


@pytest.mark.parametrize(
    "platform, compute_capability, dtype",
    [
        ("tpu", None, "bfloat16"),
        ("gpu", "9.0", "bfloat16"),  # H200
        ("gpu", "10.0", "bfloat16"),  # as a number: as text it comes before 8
        ("gpu", "8.0", "bfloat16"),  # A100
        ("gpu", "7.5", "float32"),  # T4
        ("gpu", "6.1", "float32"),
        ("gpu", "gfx90a", "float32"),  # ROCm
        ("gpu", None, "float32"),
        ("cpu", None, "float32"),
        ("METAL", None, "float32"),
        ("neuron", "9.0", "float32"),
    ],
)
def test_auto_is_bfloat16_where_there_are_units_for_it_and_float32_elsewhere(platform, compute_capability, dtype):
    chosen = precision.choose(platform, compute_capability)
    assert chosen.dtype == dtype
    assert chosen.reason and "\n" not in chosen.reason


def test_a_gpu_without_bfloat16_units_is_told_of_float16():
    assert "7.5" in precision.choose("gpu", "7.5").reason
    assert "--network.compute-dtype float16" in precision.choose("gpu", "7.5").reason


def test_auto_asks_the_first_device():
    assert jax.devices()[0].platform == "cpu"
    assert precision.resolve("auto") == precision.choose("cpu", None)


def test_auto_asks_the_cpu_beside_an_accelerator_where_programs_are_made_for_it(monkeypatch):
    cpu = jax.devices()[1]
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(platform="gpu", compute_capability="9.0")])
    assert precision.resolve("auto").dtype == "bfloat16"
    with jax.default_device(cpu):
        assert precision.resolve("auto").dtype == "float32"


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_dtype_that_is_asked_for_is_taken_and_only_float16_scales_the_loss(dtype):
    chosen = precision.resolve(dtype)
    assert chosen.dtype == dtype and "network.compute_dtype" in chosen.reason
    assert chosen.scales_loss == (dtype == "float16")
