"""What every test runs under: two CPU devices, and shapes checked on every call of an annotated function."""

import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest
from jaxtyping import install_import_hook

jax.config.update("jax_num_cpu_devices", 2)  # one mesh drives everything, so tests need a mesh of more than one

PACKAGE = Path(__file__).parent.parent / "muzero_jax"
UNCHECKED = {
    "networks",  # Flax rewrites the methods of its modules
    "hex",  # a state is a pgx dataclass, which JAX also rebuilds around leaves that are no arrays
}


def _checked_modules() -> list[str]:
    paths = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py") if path.stem != "__init__"]
    return ["muzero_jax." + ".".join(path.parts) for path in paths if path.stem not in UNCHECKED]


install_import_hook(_checked_modules(), "beartype.beartype")


@pytest.fixture
def strict_rank_promotion():
    """Arrays of different rank must be broadcast explicitly. pgx's Go and chess don't, so it isn't the default."""
    with jax.numpy_rank_promotion("raise"):
        yield
