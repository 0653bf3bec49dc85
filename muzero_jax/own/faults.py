"""Mistakes in a user's own game, network or algorithm as one sentence: the exception and the line of their code.

The user then sees no traceback through JAX.
"""

import functools
import os
import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax

LONGEST = 80
"""The most characters of a value that an error message shows."""
_INSTALLED = "site-packages"
_NOT_THEIRS = (str(Path(__file__).parent.parent) + os.sep, sysconfig.get_paths()["stdlib"] + os.sep, "<frozen")


class Fault(ValueError):
    """A mistake in a user's own file, with a message of one sentence."""


def guarded(function: Callable, what: str) -> Callable:
    """`function` with its exceptions turned into Faults which say that `what` raised them."""

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except (Exception, SystemExit) as error:
            raise error if isinstance(error, Fault) else Fault(describe(error, what)) from error

    return call


def traced(name: str, function: Callable, *arguments: Any) -> Any:
    """The shapes of `function(*arguments)`; raises Fault, which calls the function `name`, if it cannot be traced."""
    return guarded(jax.eval_shape, name)(lambda *inputs: function(*inputs), *arguments)


def require(what: str, given: Any, kind: str) -> None:
    """Raises Fault if an array is not of this `kind`, which is a dtype and shape such as `float32[3, 9]`."""
    if kind_of(given) != kind:
        raise Fault(f"{what} must be {kind}, but is {kind_of(given)}")


def kind_of(value: Any) -> str:
    """The dtype and shape of an array, else the type's name."""
    if hasattr(value, "dtype"):
        return f"{value.dtype}{list(value.shape)}"
    return "missing" if value is None else f"a {type(value).__name__}"


def describe(error: BaseException, what: str) -> str:
    """The message for an exception that `what` raised; a Fault keeps its own."""
    if isinstance(error, Fault):
        return str(error)
    text = error.msg if isinstance(error, SyntaxError) else first_line(error)
    message = f": {text[:200].rstrip('.')}" if text else ""
    place = _place(error)
    remedy = _remedy(error) or ("correct it there" if place else "correct it")
    return f"{what} raised {type(error).__name__}{message}{place}; {remedy}"


def first_line(error: BaseException) -> str:
    """The first line of an exception's message, because JAX's fill a page."""
    return next(iter(str(error).strip().splitlines()), "")


def _place(error: BaseException) -> str:
    """The file and line of the innermost call in the user's own code, if there is one."""
    if isinstance(error, SyntaxError):
        return f" ({error.filename}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in frames if not f.filename.startswith(_NOT_THEIRS) and _INSTALLED not in f.filename]
    return f" ({theirs[-1].filename}:{theirs[-1].lineno})" if theirs else ""


def _remedy(error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "a file of your own may import installed packages only, not other files beside it"
    if isinstance(error, jax.errors.UnexpectedTracerError):
        return "it is compiled, so return its arrays instead of storing them elsewhere"
    if isinstance(error, (jax.errors.JAXTypeError, jax.errors.JAXIndexError)):  # the code used an array's value
        return "it is compiled, so write jnp.where or jax.lax instead of Python's if, for and while on arrays"
    return ""


def shown(value: Any, longest: int = LONGEST) -> str:
    """The value as one printable line for an error message, without control characters, cut off if too long."""
    text = " ".join(str(value).split())
    text = "".join(character if character.isprintable() else "?" for character in text[: longest + 1])
    return text if len(text) <= longest else f"{text[:longest]}..."
