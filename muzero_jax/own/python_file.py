"""Loads a Python file of the user: their own game, network or algorithm.

The file gets a module name that no import can have. It may import `muzero_jax` and installed packages, but no files
next to it, because `trust` checks this file only. A mistake in it is raised as a `Fault`.
"""

import ast
import linecache
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from muzero_jax.own.faults import Fault, guarded

SUFFIX = ".py"
SOURCES: dict[str, bytes] = {}
"""The text of each file that runs in this process, by its path; a file may have been edited since."""


def is_path(name: str) -> bool:
    """Whether a name is a Python file's path."""
    return name.endswith(SUFFIX)


def load(path: str | Path) -> ModuleType:
    """Runs the Python file `path`, at each call again, and returns it as a module. Raises Fault if that fails."""
    path = Path(path)
    return guarded(_run, f"importing {path}")(path, read(path))


def load_function(path: str | Path, name: str) -> Callable[..., Any]:
    """The function `name` of the Python file `path`, which `load` runs; the function's exceptions become Faults.

    Raises Fault if there is no such file, if it fails to run, or if it has no such function.
    """
    function = getattr(load(path), name, None)
    if not callable(function):
        raise Fault(f"{path} defines no function {name}; define it there")
    return guarded(function, f"{name} of {path}")


def source_that_ran(path: str | Path) -> bytes:
    """The text of this file that this process runs; the file's present text if it did not run."""
    return SOURCES.get(str(path)) or read(Path(path))


def read(path: Path) -> bytes:
    """The text of a Python file; Fault if it is not one or cannot be read."""
    if not is_path(str(path)):
        raise Fault(f"{path} is no Python file (.py); name one")
    try:
        return path.read_bytes()
    except OSError as error:
        raise Fault(f"cannot read {path} ({error.strerror}); put your Python file there, or name another") from error


def read_options(texts: Sequence[str]) -> dict[str, Any]:
    """Keyword arguments from `name=value` texts; a value is a Python literal if it reads as one, else text."""
    options: dict[str, Any] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name in options:
            raise ValueError(f"the option {name} is given twice; leave one of them out")
        options[name] = _literal(value)
    return options


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):  # all that `literal_eval` names
        return text


def _run(path: Path, source: bytes) -> ModuleType:
    module = ModuleType(f"file:{path}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses look up their module here
    linecache.checkcache(str(path))
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    SOURCES[str(path)] = source
    return module
