"""The Python interface as the sources describe it: signatures, docstrings, records with their comments.

The sources are read and not imported, so nothing is compiled, and a record's fields keep the comments that explain
them.
"""

import ast
import inspect
import re
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
        return f"### {node.name}\n\n`{module}`\n\n{python(whole_lines(node, source))}"
    methods = [part for part in node.body if isinstance(part, ast.FunctionDef) and not part.name.startswith("_")]
    shown = [f"{signature(method)}\n\n{prose(method)}" for method in methods]
    return "\n\n".join([f"### {node.name}\n\n`{module}`\n\n{prose(node)}", *shown])


def whole_lines(node: ast.ClassDef, source: str) -> str:
    """A class as it is written, with the comment behind its last field."""
    return "\n".join(source.splitlines()[node.lineno - 1 : node.end_lineno])


def signature(node: ast.FunctionDef) -> str:
    """The first line of a function without `self`; over several lines, an argument each, where it is long."""
    node.args.args = [argument for argument in node.args.args if argument.arg != "self"]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{node.name}({ast.unparse(node.args)}){returns}"
    if len(line) <= WIDTH:
        return python(line)
    body = "".join(f"    {argument},\n" for argument in arguments(node.args))
    return python(f"{node.name}(\n{body}){returns}")


def arguments(args: ast.arguments) -> list[str]:
    """The arguments of a function as text, one by one, with what marks the rest as given by name."""
    plain, named = args.posonlyargs + args.args, args.kwonlyargs
    defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)

    def text(argument: ast.arg, default: ast.expr | None) -> str:
        equals = " = " if argument.annotation else "="
        return ast.unparse(argument) + (equals + ast.unparse(default) if default else "")

    star = [f"*{ast.unparse(args.vararg)}"] if args.vararg else ["*"] if named else []
    rest = [f"**{ast.unparse(args.kwarg)}"] if args.kwarg else []
    first = [text(argument, default) for argument, default in zip(plain, defaults, strict=True)]
    second = [text(argument, default) for argument, default in zip(named, args.kw_defaults, strict=True)]
    return [*first, *star, *second, *rest]


def prose(node: ast.FunctionDef | ast.ClassDef) -> str:
    """A docstring as Markdown; arguments and attributes become lists."""
    text = inspect.cleandoc(ast.get_docstring(node) or "")
    text = re.sub(r"\n*^(Args|Attributes):$", r"\n\n**\1**\n", text, flags=re.MULTILINE)
    text = re.sub(r"^  (\w[\w, ]*): ", r"- `\1`: ", text, flags=re.MULTILINE)
    return re.sub(r"(?<!\*)\*(?!\*)", r"\\*", text)


def python(code: str) -> str:
    """A block of Python."""
    return f"```python\n{code}\n```"
