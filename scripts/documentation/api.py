"""The Python interface as the sources describe it: signatures, docstrings, records with their comments.

The sources are read and not imported, so nothing is compiled, and a record's fields keep the comments that explain
them.
"""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 100
"""The longest signature on one line."""


def members(words: str) -> str:
    """A module's named functions, classes and records: `muzero_jax/types.py Transition Model`."""
    path, *names = words.split()
    source = (ROOT / path).read_text(encoding="utf-8")
    found = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    module = path.removesuffix(".py").replace("/", ".")
    return "\n\n".join(member(found[name], module, source) for name in names)


def member(node: ast.FunctionDef | ast.ClassDef, module: str, source: str) -> str:
    """One name under a heading; a record is shown as it is written."""
    if isinstance(node, ast.FunctionDef):
        return f"### {node.name}\n\n`{module}`\n\n{signature(node)}\n\n{prose(node)}"
    if any(isinstance(base, ast.Name) and base.id == "NamedTuple" for base in node.bases):
        lines = source.splitlines()[node.lineno - 1 : node.end_lineno]  # with the comment behind the last field
        return f"### {node.name}\n\n`{module}`\n\n{python(*lines)}"
    methods = [part for part in node.body if isinstance(part, ast.FunctionDef) and is_shown(part)]
    shown = [f"{signature(method)}\n\n{prose(method)}" for method in methods]
    return "\n\n".join([f"### {node.name}\n\n`{module}`\n\n{prose(node)}", *shown])


def is_shown(method: ast.FunctionDef) -> bool:
    """Whether a class's page has a method: those for users, and the call that makes an object a function."""
    return not method.name.startswith("_") or method.name == "__call__"


def signature(node: ast.FunctionDef) -> str:
    """The first line of a function without `self`; over several lines, an argument each, where it is long."""
    for arguments in (node.args.posonlyargs, node.args.args):
        arguments[:] = [argument for argument in arguments if argument.arg != "self"]
    arguments, returns = ast.unparse(node.args), f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{node.name}({arguments}){returns}"
    if len(line) <= WIDTH:
        return python(line)
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--config", "format.quote-style='preserve'", "-"]
    code = f"def {node.name}({arguments},){returns}: ..."
    laid_out = subprocess.run(command, input=code, capture_output=True, text=True, check=True).stdout
    return python(laid_out.strip().removeprefix("def ").removesuffix(": ..."))


def prose(node: ast.FunctionDef | ast.ClassDef) -> str:
    """A docstring as Markdown; arguments and attributes become lists."""
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    if isinstance(node, ast.FunctionDef) and "Args:" in text:  # several short arguments may share a line
        names = "|".join(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))
        text = re.sub(rf"(?<=\.)\s+({names}): ", r"\n  \1: ", text)
    text = re.sub(r"\n*^(Args|Attributes|Returns):$", r"\n\n**\1**\n", text, flags=re.MULTILINE)
    text = re.sub(r"^  (\w[\w, ]*): ", r"- `\1`: ", text, flags=re.MULTILINE)
    return re.sub(r"(?<!\*)\*(?!\*)", r"\\*", text)


def python(*lines: str) -> str:
    """A block of Python."""
    return "\n".join(["```python", *lines, "```"])
