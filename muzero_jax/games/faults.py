"""What is wrong in somebody's own game, as one sentence: the exception, and the line of their file.

Whoever writes a game gets no traceback through JAX. An exception keeps its type and its message, and names the place in
their own code where it left it.
"""

import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

LONGEST_MESSAGE = 200
"""Characters of an exception's message; JAX's run over a page."""
OURS = str(Path(__file__).parent.parent)
INSTALLED = "site-packages"

TRACING = (
    jax.errors.ConcretizationTypeError,  # also what `if` and `while` raise
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
LEAKING = (jax.errors.UnexpectedTracerError,)


class Fault(ValueError):
    """A mistake in somebody's own game, told in one sentence."""


def guarded(function: Callable, what: str) -> Callable:
    """`function`, whose exceptions become Faults that say `what` raised them."""

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Fault:
            raise
        except (Exception, SystemExit) as error:
            raise Fault(describe(error, what)) from error

    return call


def describe(error: BaseException, what: str) -> str:
    """The sentence for an exception that `what` raised; a Fault has its own."""
    if isinstance(error, Fault):
        return str(error)
    message = (str(error).strip().splitlines() or [""])[0][:LONGEST_MESSAGE].rstrip(".")
    kind = type(error).__name__ + (f": {message}" if message else "")
    return f"{what} raised {kind} ({_place(error)}); {_remedy(error)}"


def _place(error: BaseException) -> str:
    """The file and the line of the last call that is neither a library's nor ours."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in frames if not f.filename.startswith(OURS) and INSTALLED not in f.filename]
    frame = (theirs or frames)[-1]
    return f"{frame.filename}:{frame.lineno}"


def _remedy(error: BaseException) -> str:
    if isinstance(error, TRACING):
        return "rules are compiled, so write jnp.where or jax.lax in place of Python's if, for and while on arrays"
    if isinstance(error, LEAKING):
        return "rules are compiled, so keep no array outside of the state"
    return "correct it there"
