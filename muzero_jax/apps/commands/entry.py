"""Where every command starts: `muzero-jax train`, `python -m muzero_jax train` and `experiments/train.py`.

Importing pgx starts JAX, and after that neither devices nor JAX's settings can change. They are therefore set here,
from a few flags, before the command's module is imported.
"""

import os
import sys
import traceback
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from muzero_jax.apps.commands.constants import EXIT_ERROR, EXIT_INTERRUPTED, ROOT

COMMANDS = {
    "train": "trains an agent",
    "tune": "searches for better settings",
    "evaluate": "measures trained agents",
    "doctor": "says why a run does not learn",
    "play": "plays against one, or serves it to other programs",
}
EXTRAS = {"optuna": "tune"}
"""Optional packages, and the extra that installs each."""


def start(name: str, arguments: list[str], build: Callable[..., Any] | None = None) -> int:
    """Runs a command; returns its exit status.

    `build(config)` makes an `Algorithm` with your own game, network or algorithm, instead of the config's.
    """
    try:
        from muzero_jax.apps.commands.command_line import REMEDIES, report_errors

        status = report_errors(lambda words: _run(name, words, build), arguments, REMEDIES[name])
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("muzero_jax"):
            raise
        print(f"error: {lacking(error.name or '')}", file=sys.stderr)
        return EXIT_ERROR
    except BaseException:
        if "--distributed" not in arguments:
            raise
        traceback.print_exc()
        status = 1
    if status and "--distributed" in arguments:
        _leave(status)  # else JAX would wait for the other processes
    return status


def _run(name: str, arguments: list[str], build: Callable[..., Any] | None) -> int:
    from muzero_jax.apps.commands import parser, start_jax

    try:
        words = parser.read_words(arguments)
        start_jax.choose(name, words)
        command = import_module(f"muzero_jax.apps.commands.{name}")
        return command.main(words, *([build] if build else []))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        _leave(EXIT_INTERRUPTED)  # Python's normal exit may crash while XLA's threads still compile


def _leave(status: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def lacking(package: str) -> str:
    """The error message for a missing package."""
    extra = f"[{EXTRAS[package]}]" if package in EXTRAS else ""
    environment = ROOT / ".venv" / "bin" / "python"
    if not (ROOT / "pyproject.toml").exists():
        return f"{sys.executable} lacks {package}; install it: {sys.executable} -m pip install {package}"
    install = f"cd {ROOT} && python3 -m venv .venv && .venv/bin/pip install -e '.{extra}' -c constraints.txt"
    return f"{sys.executable} lacks {package}; install all packages once ({install}), then run this with {environment}"


def main() -> None:
    """`muzero-jax COMMAND ...`, or `python -m muzero_jax COMMAND ...`."""
    name, *arguments = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print("muzero-jax COMMAND [flags]\n")
        print("\n".join(f"  {command:<10}{meaning}" for command, meaning in COMMANDS.items()))
        print("\nCOMMAND --help shows the flags.")
        return
    if name not in COMMANDS:
        print(f"error: there is no command {name!r}; choose {', '.join(COMMANDS)}", file=sys.stderr)
        sys.exit(EXIT_ERROR)
    sys.exit(start(name, arguments))
