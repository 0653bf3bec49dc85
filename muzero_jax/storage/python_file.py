"""A function out of a Python file of the user's: their own network, for example.

The file runs as a script would, under a module name that no import can meet, and it may import `muzero_jax`. Every
mistake in it is the user's to mend, so it comes back as one sentence with the file and the line.
"""

import ast
import functools
import inspect
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import machinery, util
from pathlib import Path
from types import ModuleType
from typing import Any


def load_function(path: str | Path, name: str) -> Callable[..., Any]:
    """The function `name` of the Python file `path`; an exception of its own becomes a ValueError in one sentence.

    Raises ValueError in one sentence if there is no such file, it does not import, or has no such function. Calling the
    function raises one for arguments that it does not take.
    """
    path = Path(path)
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
        except Exception as error:
            raise ValueError(f"{name} in {path} failed with {describe(error, path)}; mend it there") from error

    return call


def describe(error: BaseException, path: Path) -> str:
    """The exception in a line: its type, the first line of its message, and the innermost line of `path` it passed."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path]
    if isinstance(error, SyntaxError):
        text, lines = error.msg, [error.lineno]
    else:
        text = next(iter(str(error).strip().splitlines()), "")
    place = f" ({path.name}:{lines[-1]})" if lines else ""
    return f"{type(error).__name__}{': ' if text else ''}{text}{place}"


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
    except (ValueError, SyntaxError):
        return text


def _run(path: Path, name: str) -> ModuleType:
    """The file as a module, run anew at each call."""
    if not path.is_file():
        raise ValueError(f"there is no file {path}; name a Python file that defines {name}")
    loader = machinery.SourceFileLoader(f"file:{path}", str(path))  # whatever its name ends in
    module = util.module_from_spec(util.spec_from_loader(loader.name, loader))  # type: ignore
    sys.modules[loader.name] = module  # where dataclasses look their own module up
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[loader.name]
        raise ValueError(f"{path} does not import: {describe(error, path)}; mend it there") from error
    return module
