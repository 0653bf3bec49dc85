"""The folder in which compiled programs are kept."""

from importlib.metadata import version
from pathlib import Path

import jax
import pytest
from jax.experimental.compilation_cache import compilation_cache as jax_cache

from muzero_jax.run import compilation_cache

enable = compilation_cache.enable  # which `no_compilation_cache` replaces
OPTIONS = ("jax_compilation_cache_dir", "jax_compilation_cache_max_size", "jax_persistent_cache_min_compile_time_secs")


@pytest.fixture(autouse=True)
def users_folder(monkeypatch, tmp_path):
    """The user's cache folder, while JAX's options are as a user has them."""
    before = {name: getattr(jax.config, name) for name in OPTIONS}
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setattr(compilation_cache.platformdirs, "user_cache_path", lambda name: tmp_path / name)
    yield tmp_path / "muzero_jax"
    for name, value in before.items():
        jax.config.update(name, value)
    jax_cache.reset_cache()


def folder():
    enable()
    return Path(jax.config.jax_compilation_cache_dir)


def test_programs_lie_in_the_users_cache_folder_by_jaxlib_and_machine(users_folder, monkeypatch):
    found = folder()
    assert found.parent == users_folder and found.name.startswith(f"jaxlib-{version('jaxlib')}-")
    monkeypatch.setattr(compilation_cache, "machine", lambda: "another processor")
    jax.config.update("jax_compilation_cache_dir", None)
    assert folder() != found


def test_a_cache_folder_that_the_user_set_is_kept_with_its_limit(tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "mine"))
    before = jax.config.jax_compilation_cache_max_size
    assert folder() == tmp_path / "mine"
    assert jax.config.jax_compilation_cache_max_size == before != compilation_cache.MOST_BYTES
