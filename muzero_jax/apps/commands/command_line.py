"""Turns users' mistakes into one line on stderr and a non-zero exit status, without a traceback."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from muzero_jax.apps.commands.constants import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_UNFINISHED, ROOT
from muzero_jax.run import processes
from muzero_jax.run.machine import is_out_of_memory

LOWER_SIZES = "lower --self-play.num-envs, --optimiser.batch-size or --optimiser.micro-batch-size"
LOWER_SEARCH = "lower --num-simulations, or use --device cpu"
REMEDIES = {
    "train": LOWER_SIZES,
    "tune": LOWER_SIZES,
    "evaluate": LOWER_SEARCH,
    "play": LOWER_SEARCH,
    "doctor": "use --device cpu",
}
"""What each command advises when a device's memory is full."""


def report_errors(
    main: Callable[[list[str]], int], arguments: list[str], when_memory_is_full: str = LOWER_SIZES
) -> int:
    """Runs `main`; prints a ValueError (a mistake with its remedy) or OSError as one line and returns status 2.

    Args:
      when_memory_is_full: advice for that case, with flags that the command has.
    """
    try:
        return main(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except (ValueError, OSError, RuntimeError) as error:
        if "--distributed" in arguments and processes.is_loss(error):
            print(
                "error: another process ended or hangs; to continue, run the same commands with --resume-if-any",
                file=sys.stderr,
            )
            return EXIT_UNFINISHED
        if isinstance(error, RuntimeError):
            if not is_out_of_memory(error):
                raise
            error = ValueError(f"the device's memory is full; {when_memory_is_full}")
        print(f"error: {error}", file=sys.stderr)
        return EXIT_ERROR


def command(script: str) -> str:
    """A shell command that starts `script`, whether or not the virtual environment is active."""
    here = Path("experiments", f"{script}.py")
    file = ROOT / here
    is_near = here.exists() and file.exists() and here.samefile(file)
    start = [str(here if is_near else file)] if file.exists() else ["-m", "muzero_jax", script]
    return shlex.join([sys.executable, *start])
