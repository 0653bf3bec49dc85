"""The check before any package is imported: one sentence if packages are missing, and a silent Ctrl-C.

So this file itself needs the standard library alone.
"""

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

PACKAGES = (
    "jax jaxlib flax optax mctx chex orbax pgx numpy scipy jaxtyping tyro tensorboardX rich matplotlib filelock "
    "platformdirs safetensors starlette uvicorn"
).split()
"""The packages of `dependencies` in pyproject.toml, by the names that imports use."""

ROOT = Path(__file__).resolve().parents[3]
"""The repository; of an installed package the folder that it lies in."""
ENVIRONMENT = ROOT / ".venv" / "bin" / "python"


def sentence(missing, has_environment):
    """The missing packages, and what to do about it."""
    if has_environment:
        remedy = f"use the project's environment: {ENVIRONMENT} {' '.join(sys.argv)}"
    elif not (ROOT / "pyproject.toml").exists():
        remedy = f"install them: {sys.executable} -m pip install {' '.join(missing)}"
    else:
        install = f"cd {ROOT} && python3 -m venv .venv && .venv/bin/pip install -e . -c constraints.txt"
        remedy = f"install them once ({install}), then run this with {ENVIRONMENT}"
    others = f" and {len(missing) - 1} more packages" if len(missing) > 1 else ""
    return f"{sys.executable} lacks {missing[0]}{others}; {remedy}"


def leave(signum, frame):
    """Ctrl-C while packages are imported: nothing has begun, and a traceback would tell of the imports alone."""
    os._exit(128 + signum)


main_file = getattr(sys.modules["__main__"], "__file__", None)  # whoever imports a command keeps his own Ctrl-C
is_command = main_file is not None and (
    Path(main_file).resolve().parent == ROOT / "experiments" or Path(main_file).parent.name == "muzero_jax"
)
if is_command and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, leave)

missing_packages = [name for name in PACKAGES if find_spec(name) is None]
if missing_packages:
    print(f"error: {sentence(missing_packages, ENVIRONMENT.exists())}", file=sys.stderr)
    sys.exit(2)
