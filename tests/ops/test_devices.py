"""Devices: how many there are, how much memory they have, and what happens if they are missing."""

import os
import subprocess
import sys
from types import SimpleNamespace

import jax
import pytest

from muzero_jax import presets
from muzero_jax.ops import devices, precision
from muzero_jax.ops.devices import METAL, device_kind
from muzero_jax.run import machine
from muzero_jax.run.machine import (
    _cgroup_cpu_quota,
    _cgroup_memory_free,
    _start_backend,
    available_memory_bytes,
    configure_devices,
    describe_device,
)


def test_a_containers_cpu_and_memory_limits_are_read_if_it_has_any(tmp_path):
    """Memory is its limit less its use, of which the cache of files that nobody reads any more is given back."""
    (tmp_path / "memory.stat").write_text("anon 150\nactive_file 50\ninactive_file 200\n")
    for quota, limit, cores, free in (("max", "max", None, None), ("150000", "1000", 1.5, 800)):
        (tmp_path / "cpu.max").write_text(f"{quota} 100000\n")
        (tmp_path / "memory.max").write_text(f"{limit}\n")
        (tmp_path / "memory.current").write_text("400\n")
        assert (_cgroup_cpu_quota(tmp_path), _cgroup_memory_free(tmp_path)) == (cores, free)


def test_a_missing_kind_of_device_prints_one_line_and_the_cpu_is_used(capsys):
    assert configure_devices(2, "gpu") == 2
    assert capsys.readouterr().err == "JAX finds no GPU on this machine; the CPU is used instead\n"
    assert configure_devices(2, "cpu") == configure_devices(2, "auto") == 2
    assert capsys.readouterr().err == ""


def test_importing_starts_no_backend_and_the_cpu_becomes_as_many_devices_as_asked():
    program = (
        "import jax; import muzero_jax; muzero_jax.train\n"
        "from muzero_jax.run.machine import configure_devices, describe_device\n"
        "print(configure_devices(3), len(jax.devices()), describe_device())"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert result.stdout.startswith("3 3 3 CPU devices (")


BROKEN_PLUGIN = """
from jax._src import xla_bridge

def broken():
    raise RuntimeError("Outdated driver found.\\nInstalled version: 535")

xla_bridge.register_backend_factory("broken", broken, priority=400, fail_quietly=False)
"""
NO_NVIDIA_DEVICE = """
from jax._src import hardware_utils

hardware_utils.has_visible_nvidia_gpu = lambda: False
"""


@pytest.mark.parametrize(
    ("machine", "platforms", "reason"),
    [(BROKEN_PLUGIN, "", "Unable to initialize backend 'broken'"), (NO_NVIDIA_DEVICE, "cuda", "there is no device")],
    ids=["broken plugin", "no NVIDIA device"],
)
def test_an_accelerator_that_does_not_start_prints_one_line_and_the_cpu_is_used(machine, platforms, reason):
    program = machine + (
        "import jax; from muzero_jax.run.machine import configure_devices\n"
        "print(configure_devices(3, 'gpu'), len(jax.devices()), jax.jit(lambda x: x + 1)(1).device.platform)"
    )
    environment = os.environ | {"JAX_PLATFORMS": platforms}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (result.stdout, result.returncode) == ("3 3 cpu\n", 0), result.stderr
    assert result.stderr.startswith(f"JAX could not start an accelerator, so the CPU is used: {reason}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "told", "available", "kind"),
    [
        ("gpu", {"bytes_limit": 16 * 2**30}, 16 * 2**30, "small GPU"),
        ("rocm", None, 10 * 2**30, "large GPU"),
        (METAL, None, 10 * 2**30, "small GPU"),
    ],
)
def test_a_device_without_memory_statistics_is_given_the_hosts_memory(monkeypatch, name, told, available, kind):
    """An Apple GPU shares it, so its kind follows from all there is, however much is free."""
    monkeypatch.setattr(jax, "devices", lambda: [SimpleNamespace(platform=name, memory_stats=lambda: told)])
    monkeypatch.setattr(machine, "_mem_available", lambda: 10 * 2**30)
    monkeypatch.setattr(machine, "_cgroup_memory_free", lambda root: None)
    monkeypatch.setattr(devices, "physical_memory_bytes", lambda: 16 * 2**30)
    assert (available_memory_bytes(), device_kind()) == (available, kind)


def test_an_apple_gpu_is_an_accelerator_in_float32_that_searches_in_passes(monkeypatch):
    """A run of its preset; the plugin itself runs on a Mac only."""
    gpu = SimpleNamespace(platform=METAL, memory_stats=lambda: None, client=None, device_kind="Apple M4")
    monkeypatch.setattr(jax, "devices", lambda: [gpu])
    monkeypatch.setattr(devices, "physical_memory_bytes", lambda: 16 * 2**30)
    config = presets.preset("hex", 5)
    assert (config.search.engine, config.self_play.num_envs) == ("passes", 2048)
    assert precision.resolve("auto").compute_dtype == "float32"
    assert describe_device(1) == "Apple M4 (mps)"


@pytest.mark.parametrize(
    ("processor", "plugin", "is_said"), [("arm64", None, True), ("arm64", "", False), ("x86_64", None, False)]
)
def test_a_mac_without_the_plugin_is_told_of_it(monkeypatch, capsys, processor, plugin, is_said):
    monkeypatch.setattr(machine.platform, "system", lambda: "Darwin")
    monkeypatch.setattr(machine.platform, "machine", lambda: processor)
    monkeypatch.setattr(machine, "find_spec", lambda name: plugin)
    _start_backend("auto")
    assert ("metal" in capsys.readouterr().err) == is_said


def test_devices_already_in_use_are_kept_and_more_are_refused():
    jax.devices()
    assert configure_devices() == 2
    assert configure_devices(1) == 1
    with pytest.raises(ValueError, match="^--devices 5 .* at most 2$"):
        configure_devices(5)


def test_host_memory_is_shared_equally_by_cpu_devices(monkeypatch):
    monkeypatch.setattr(machine, "_mem_available", lambda: 1000)
    monkeypatch.setattr(machine, "_cgroup_memory_free", lambda root: 600)
    assert available_memory_bytes() == 600
    assert available_memory_bytes(2) == 300
