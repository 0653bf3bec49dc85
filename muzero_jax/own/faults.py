"""A fault in somebody's own game, as one sentence: the exception, and the line of their file.

Whoever writes a game gets no traceback through JAX. An exception keeps its type and its message, and names the place in
their own code where it left it.
"""

import functools
import traceback
from collections.abc import Callable
from typing import Any

import jax

from muzero_jax.own import python_file

LONGEST_MESSAGE = 200
"""Characters of an exception's message; a line of JAX's may be longer."""
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
    message = python_file.first_line(error)[:LONGEST_MESSAGE].rstrip(".")
    kind = type(error).__name__ + (f": {message}" if message else "")
    return f"{what} raised {kind} ({_place(error)}); {_remedy(error)}"


def _place(error: BaseException) -> str:
    """The file and the line in their own code, or if the exception never passed there, where it was raised."""
    if place := python_file.own_line(error):
        return f"{place[0]}:{place[1]}"
    raised = traceback.extract_tb(error.__traceback__)[-1]
    return f"{raised.filename}:{raised.lineno}"


def _remedy(error: BaseException) -> str:
    if isinstance(error, python_file.ASKS_FOR_A_VALUE):
        return "rules are compiled, so write jnp.where or jax.lax in place of Python's if, for and while on arrays"
    if isinstance(error, LEAKING):
        return "rules are compiled, so keep no array outside of the state"
    return "correct it there"


LONGEST_VALUE = 80
"""Characters of a value that a sentence shows."""


def shown(value: Any, longest: int = LONGEST_VALUE) -> str:
    """The value as one line of a sentence, without what a terminal would take for an order; cut off where too long."""
    text = " ".join(str(value).split())
    text = "".join(character if character.isprintable() else "?" for character in text[: longest + 1])
    return text if len(text) <= longest else f"{text[:longest]}..."
