"""What every test runs under: two CPU devices, and shapes checked on every call of an annotated function."""

import gc
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest
from jax._src.lru_cache import LRUCache
from jaxtyping import install_import_hook

jax.config.update("jax_num_cpu_devices", 2)  # one mesh drives everything, so tests need a mesh of more than one

PACKAGE = Path(__file__).parent.parent / "muzero_jax"
UNCHECKED = {
    "networks.model",  # Flax rewrites the methods of its modules
    "games.hex_rules",  # a state is a pgx dataclass, which JAX also rebuilds around leaves that are no arrays
}


def _checked_modules() -> list[str]:
    paths = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py") if path.stem != "__init__"]
    names = (".".join(path.parts) for path in paths)
    return [f"muzero_jax.{name}" for name in names if name not in UNCHECKED]


install_import_hook(_checked_modules(), "beartype.beartype")


gc.set_threshold(50_000, 20, 20)  # tracing makes many objects and few cycles: looking took a tenth of the time


# The short tests run their programs a few times, so compiling is most of the work: a quarter less of it, in child
# processes too. The slow ones (`-m slow`) measure speed and learn against the clock, so they compile as users do. Set
# before anything imports pgx, which starts the backend, and that reads it; workers of xdist inherit it.
if "-m" not in sys.argv[1:] and "PYTEST_XDIST_WORKER" not in os.environ:
    flags = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
    if jax.__version_info__ < (0, 11):  # later ones know no such flags and would abort
        flags += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    os.environ.setdefault("XLA_FLAGS", flags)


def pytest_configure(config):
    """A program that two tests trace alike is compiled once, and the next run of the tests finds it too."""
    jax.config.update("jax_compilation_cache_dir", str(config.rootpath / ".pytest_cache" / "programs"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    LRUCache.put = _put
    data = tempfile.TemporaryDirectory(prefix="data-")
    config.add_cleanup(data.cleanup)
    os.environ["XDG_DATA_HOME"] = data.name  # what training notes of the user's own files (`own.trust`)


def _put(cache, key, value):
    """Like JAX's own, but files appear whole or not at all, because workers share the folder without a lock."""
    part = cache.path / f"{key}.{os.getpid()}"
    part.write_bytes(value)
    part.replace(cache.path / f"{key}-cache")


@pytest.fixture(scope="session", autouse=True)
def no_curves():
    """A run's curves, which take a second to draw and are drawn at each of its ends, are an empty file.

    `run/test_metrics.py` draws them, and so do runs in processes of their own, such as that of `run/test_killed.py`.
    """
    from muzero_jax.run import charts, metrics  # here, because the import hook must come first

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "plot_curves", lambda run_dir: (Path(run_dir) / metrics.CURVES).touch())
        yield


@pytest.fixture(scope="session", autouse=True)
def no_compilation_cache():
    """What runs in the tests' process leaves the user's cache of programs as it is."""
    from muzero_jax.run import compilation_cache  # here, because the import hook must come first

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation_cache, "enable", lambda: None)
        yield


@pytest.fixture
def strict_rank_promotion():
    """Arrays of different rank must be broadcast explicitly. pgx's Go and chess don't, so it isn't the default."""
    with jax.numpy_rank_promotion("raise"):
        yield


@pytest.fixture(scope="module")
def saved_run(tmp_path_factory):
    """The directory of a run with one checkpoint."""
    from tests.reference import tiny_run  # here, because the import hook must come first

    run_dir = tmp_path_factory.mktemp("runs") / "tiny"
    tiny_run.save(run_dir, tiny_run.make_init()())
    return run_dir
