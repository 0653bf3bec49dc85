"""The dtype that `--network.compute-dtype auto` chooses on each device."""

from types import SimpleNamespace

import jax
import pytest

from muzero_jax.ops import devices, precision
from muzero_jax.ops.devices import has_amx


@pytest.mark.parametrize(
    "platform, compute_capability, dtype",
    [
        ("tpu", None, "bfloat16"),
        ("gpu", "9.0", "bfloat16"),  # H200
        ("gpu", "10.0", "bfloat16"),  # as a number: as text it comes before 8
        ("gpu", "8.0", "bfloat16"),  # A100
        ("gpu", "7.5", "float32"),  # T4
        ("gpu", "gfx90a", "float32"),  # ROCm
        ("cpu", None, "float32"),
        ("METAL", None, "float32"),
    ],
)
def test_auto_is_bfloat16_where_there_are_units_for_it_and_float32_elsewhere(platform, compute_capability, dtype):
    assert precision.choose(platform, compute_capability).compute_dtype == dtype


def test_only_a_cpu_with_amx_multiplies_bfloat16_and_computes_float32():
    assert precision.choose("cpu", None, amx=True).compute_dtype == "bfloat16_products"
    assert precision.choose("METAL", None, amx=True).compute_dtype == "float32"
    assert precision.choose("gpu", "9.0", amx=True).compute_dtype == "bfloat16"


@pytest.mark.parametrize(
    "flags, jaxlib, units",
    [
        ("fpu avx512f amx_bf16 amx_tile", "0.10.2", True),
        ("fpu avx512f amx_bf16 amx_tile", "0.8.3", False),  # its products of bfloat16 are slower than of float32
        ("fpu avx512f avx512_bf16", "0.10.2", False),
        ("", "0.10.2", False),  # macOS
    ],
)
def test_amx_is_known_by_its_flag_and_used_from_jaxlib_0_9_on(monkeypatch, flags, jaxlib, units):
    monkeypatch.setattr(devices, "cpu_field", lambda name: {"flags": flags}[name])
    monkeypatch.setattr(devices, "version", lambda package: jaxlib)
    assert has_amx() == units


@pytest.mark.parametrize("amx, chosen", [(True, "bfloat16_products"), (False, "float32")])
def test_auto_follows_the_device_that_programs_are_compiled_for(monkeypatch, amx, chosen):
    monkeypatch.setattr(precision, "has_amx", lambda: amx)
    assert precision.resolve("auto").compute_dtype == chosen
    cpu = jax.devices()[1]
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(platform="gpu", compute_capability="9.0")])
    assert precision.resolve("auto").compute_dtype == "bfloat16"
    with jax.default_device(cpu):
        assert precision.resolve("auto").compute_dtype == chosen


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "bfloat16_products", "float16"])
def test_a_dtype_that_is_asked_for_is_taken_and_only_float16_scales_the_loss(dtype):
    chosen = precision.resolve(dtype)
    assert chosen.compute_dtype == dtype
    assert chosen.scales_loss == (dtype == "float16")
