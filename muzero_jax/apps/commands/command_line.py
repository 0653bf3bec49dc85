"""Mistakes of users at every entry point: one sentence on stderr and a non-zero exit, never a traceback."""

import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from muzero_jax.apps.commands import requirements
from muzero_jax.ops.devices import is_out_of_memory

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130
LOWER_SIZES = "lower --self-play.num-envs, --optimiser.batch-size or --optimiser.micro-batch-size"
"""The remedies of `train.py` for a lack of memory."""


def report_errors(
    main: Callable[[list[str]], int], arguments: list[str], when_memory_is_full: str = LOWER_SIZES
) -> int:
    """Runs `main`; a ValueError (a mistake with a remedy) or OSError becomes one sentence and exit status 2.

    Args:
      when_memory_is_full: what to do then, by flags that the command has.
    """
    if signal.getsignal(signal.SIGINT) is requirements.leave:  # from here on it is one line, below
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return main(arguments)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return EXIT_ERROR
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        print(f"error: the device's memory is full; {when_memory_is_full}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        if requirements.is_command:  # a Python that ends in order may crash while XLA's threads still compile
            sys.stdout.flush()
            requirements.leave(signal.SIGINT, None)
        return EXIT_INTERRUPTED


def command(script: str) -> str:
    """A command that works as it is printed, whether or not the virtual environment is active."""
    here = Path("experiments", f"{script}.py")
    file = requirements.ROOT / here
    is_near = here.exists() and file.exists() and here.samefile(file)
    start = [str(here if is_near else file)] if file.exists() else ["-m", "muzero_jax", script]
    return shlex.join([sys.executable, *start])


def ask_command(run_dir: Path) -> str:
    """How to ask the agent of a run what it thinks of a new game."""
    code = (
        f"import jax, muzero_jax; agent = muzero_jax.load({str(run_dir)!r}); "
        "print(agent.analyse(agent.environment.init(jax.random.key(0))))"
    )
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"


def play_command(run_dir: Path) -> str:
    """How to play the agent of a run."""
    return f"{command('play')} --run {shlex.quote(str(run_dir))} --web"
