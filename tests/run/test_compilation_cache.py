"""Compiled programs are kept on disk, and found by the next process."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import jax
import pytest

from muzero_jax.run import compilation_cache

OPTIONS = ("jax_compilation_cache_dir", "jax_compilation_cache_max_size", "jax_persistent_cache_min_compile_time_secs")


@pytest.fixture
def untouched():
    """JAX's options as they were before."""
    before = {name: getattr(jax.config, name) for name in OPTIONS}
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_programs_lie_in_the_users_cache_folder_by_jaxlib_and_machine(untouched, monkeypatch, tmp_path):
    monkeypatch.setattr(compilation_cache.platformdirs, "user_cache_path", lambda name: tmp_path / name)
    folder = compilation_cache.enable()
    assert folder is not None and folder.parent == tmp_path / "muzero_jax" and folder.is_dir()
    assert folder.name.startswith(f"jaxlib-{version('jaxlib')}-")
    assert jax.config.jax_compilation_cache_dir == str(folder)
    assert jax.config.jax_compilation_cache_max_size == compilation_cache.MOST_BYTES
    monkeypatch.setattr(compilation_cache, "machine", lambda: "another processor")
    jax.config.update("jax_compilation_cache_dir", None)
    assert compilation_cache.enable() != folder


def test_a_folder_that_jax_was_given_stays(untouched, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "mine"))
    assert compilation_cache.enable() == tmp_path / "mine"


def test_a_folder_that_cannot_be_made_is_one_line_and_no_end(untouched, monkeypatch, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(compilation_cache.platformdirs, "user_cache_path", lambda name: tmp_path / "file")
    assert compilation_cache.enable() is None
    assert jax.config.jax_compilation_cache_dir is None
    assert "cannot be kept" in capsys.readouterr().err


def test_the_second_process_compiles_nothing_that_the_first_did(tmp_path):
    code = """
import jax, jax.numpy as jnp
from jax._src import monitoring
from muzero_jax.run import compilation_cache
compilation_cache.SHORTEST_SECONDS = 0.0
compilation_cache.enable()
hits = []
monitoring.register_event_listener(lambda event, **_: hits.append(event) if event.endswith("cache_hits") else None)
jax.jit(lambda x: jnp.sort(x) @ x)(jnp.ones(50)).block_until_ready()
print(len(hits))
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    environment |= {"XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    root = Path(__file__).parents[2]
    found = [
        int(
            subprocess.run(
                [sys.executable, "-c", code], env=environment, cwd=root, capture_output=True, check=True
            ).stdout
        )
        for _ in range(2)
    ]
    assert found[0] == 0 and found[1] > 0


def test_a_program_that_a_full_disk_cut_off_is_deleted(untouched, monkeypatch, tmp_path):
    """JAX finds the time of use of every program before it keeps another. A folder of others may have none at all."""
    monkeypatch.setattr(compilation_cache.platformdirs, "user_cache_path", lambda name: tmp_path)
    ours, theirs = compilation_cache.enable(), tmp_path / "theirs"
    assert ours is not None
    theirs.mkdir()
    for folder in (ours, theirs):
        for name in ("whole-cache", "whole-atime", "cut-cache", "new-cache"):
            (folder / name).write_bytes(b"12345678")
        os.utime(folder / "cut-cache", (0, 0))
    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.enable()
    assert not (ours / "cut-cache").exists() and len(list(ours.glob("*-cache"))) == 2
    jax.config.update("jax_compilation_cache_dir", str(theirs))
    compilation_cache.enable()
    assert (theirs / "cut-cache").exists()
