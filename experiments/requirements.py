"""Ends a command in one sentence where the project's packages are missing: each imports this before any of them.

So this file itself needs the standard library alone.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = (
    "jax jaxlib flax optax mctx chex orbax pgx numpy scipy jaxtyping tyro tensorboardX rich matplotlib filelock "
    "platformdirs safetensors starlette uvicorn"
).split()
"""What `dependencies` in pyproject.toml installs, as it is imported."""

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv" / "bin" / "python"


def sentence(missing, has_environment):
    """What is missing, and what to do about it."""
    if has_environment:
        remedy = f"use the project's environment: {ENVIRONMENT} {' '.join(sys.argv)}"
    else:
        install = f"cd {ROOT} && python3 -m venv .venv && .venv/bin/pip install -e . -c constraints.txt"
        remedy = f"install them once ({install}), then run this with {ENVIRONMENT}"
    others = f" and {len(missing) - 1} more packages" if len(missing) > 1 else ""
    return f"{sys.executable} lacks {missing[0]}{others}; {remedy}"


missing_packages = [name for name in PACKAGES if find_spec(name) is None]
if missing_packages:
    print(f"error: {sentence(missing_packages, ENVIRONMENT.exists())}", file=sys.stderr)
    sys.exit(2)
