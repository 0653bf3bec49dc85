"""A Python file of the user's: their own game, network or algorithm.

The file runs under a module name that no import can meet. It may import `muzero_jax` and what is installed, but nothing
that lies beside it: `trust` looks at this one file. Every mistake in it is the user's to mend, so it comes back as one
sentence with the file and the line.
"""

import ast
import functools
import inspect
import linecache
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import jax

SUFFIX = ".py"
ASKS_FOR_A_VALUE = (
    jax.errors.ConcretizationTypeError,  # also what `if` and `while` raise
    jax.errors.NonConcreteBooleanIndexError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
)
"""The errors that JAX raises where code that it compiles asks what an array holds."""
_INSTALLED = "site-packages"
_NOT_THEIRS = (str(Path(__file__).parent.parent) + os.sep, sysconfig.get_paths()["stdlib"] + os.sep, "<frozen")


def is_path(name: str) -> bool:
    """Whether a name is a Python file's path."""
    return name.endswith(SUFFIX)


def load_function(path: str | Path, name: str) -> Callable[..., Any]:
    """The function `name` of the Python file `path`; an exception of its own becomes a ValueError in one sentence.

    Raises ValueError in one sentence if there is no such file, it does not import, or has no such function. Calling the
    function raises one for arguments that it does not take.
    """
    path = Path(path)
    if not is_path(str(path)):
        raise ValueError(f"{path} is no Python file (.py), and is not run")
    function = getattr(_run(path, name), name, None)
    if not callable(function):
        raise ValueError(f"{path} has no function {name}; define it there")
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            signature.bind(*arguments, **options)
        except TypeError as error:
            raise ValueError(f"{name} in {path} does not fit: {error}; it is {name}{signature}") from None
        try:
            return function(*arguments, **options)
        except (Exception, SystemExit) as error:
            raise ValueError(f"{name} in {path} failed with {describe(error)}; mend it there") from error

    return call


def describe(error: BaseException) -> str:
    """The exception in a line: its type, the first line of its message, and the line of the user's that it passed."""
    text = error.msg if isinstance(error, SyntaxError) else first_line(error)
    place = own_line(error)
    return f"{type(error).__name__}{': ' if text else ''}{text}" + (f" ({place[0].name}:{place[1]})" if place else "")


def first_line(error: BaseException) -> str:
    """The first line of an exception's message; JAX's run over a page."""
    return next(iter(str(error).strip().splitlines()), "")


def own_line(error: BaseException) -> tuple[Path, int] | None:
    """The file and the line of the innermost call that is neither ours nor a library's; None if there is none."""
    if isinstance(error, SyntaxError):
        return Path(str(error.filename)), error.lineno or 0
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [f for f in frames if not f.filename.startswith(_NOT_THEIRS) and _INSTALLED not in f.filename]
    return (Path(theirs[-1].filename), theirs[-1].lineno or 0) if theirs else None


def read_options(texts: Sequence[str]) -> dict[str, Any]:
    """Keyword arguments from `name=value` texts: a value is a Python literal where it can be read as one, else text."""
    options: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name in options:
            raise ValueError(f"the option {name} is given twice; leave one of them out")
        options[name] = _read(value)
    return options


def _read(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # all that `literal_eval` names
        return text


def _run(path: Path, name: str) -> ModuleType:
    """The file as a module, run anew at each call."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}; name a Python file that defines {name}")
    try:
        return run(path, path.read_bytes())
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path} does not import: {describe(error)}; mend it there") from error


def run(path: Path, source: str | bytes) -> ModuleType:
    """The module that the `source` of the file `path` makes; whatever it raises comes through."""
    module = ModuleType(f"file:{path}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # where dataclasses look their own module up
    linecache.checkcache(str(path))
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module
