"""How a command starts, from `experiments/train.py` or by `python -m muzero_jax train`.

The command's own module is imported last, so that a missing package is one sentence and Ctrl-C is silent until then.
"""

import sys
from importlib import import_module

from muzero_jax.apps.commands import requirements  # noqa: F401  # first: it ends the command if packages are missing

COMMANDS = {
    "train": "trains an agent",
    "tune": "searches for better settings",
    "evaluate": "measures trained agents",
    "play": "plays against one, or serves it to other programs",
}


def start(name: str, arguments: list[str]) -> int:
    """Runs a command; returns its exit status."""
    return import_module(f"muzero_jax.apps.commands.{name}").run(arguments)


def main() -> None:
    """`python -m muzero_jax COMMAND ...`."""
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print("python -m muzero_jax COMMAND [flags]\n")
        print("\n".join(f"  {command:<10}{meaning}" for command, meaning in COMMANDS.items()))
        print("\nCOMMAND --help shows the flags.")
        return
    if name not in COMMANDS:
        print(f"error: there is no command {name!r}; choose {', '.join(COMMANDS)}", file=sys.stderr)
        sys.exit(2)
    sys.argv[0] = f"python -m muzero_jax {name}"  # what --help and messages call it
    sys.exit(start(name, arguments))
