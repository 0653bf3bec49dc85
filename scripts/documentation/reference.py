"""Pages of reference that come from the code: what commands print as help, fields of the config, presets."""

import contextlib
import dataclasses
import inspect
import io
import os
import re
import runpy
import sys
import textwrap
import typing
from typing import Any

from muzero_jax import presets as presets_module
from muzero_jax.apps.commands.train_flags import Command, Flag, all_flags
from muzero_jax.apps.study.tuning import space
from muzero_jax.run.session import Session
from muzero_jax.storage.config import Config
from muzero_jax.storage.fields import COUNTED, FINITE, Constraint

COLUMNS, WIDTH = "100", 118
SYMBOLS = ("alpha", "beta")
SHOWN_PRESETS = {
    "Tic-tac-toe": presets_module.tic_tac_toe,
    "Hex 5x5": lambda: presets_module.hex_any(5),
    "Connect Four": presets_module.connect_four,
    "Othello": presets_module.othello,
    "Go 9x9": presets_module.go_9x9,
}


def help_text(words: str) -> str:
    """What a script of ours prints for its flags of help, as a block of text."""
    script, *arguments = words.split()
    printed, argv = io.StringIO(), sys.argv
    sys.argv, os.environ["COLUMNS"] = [script, *arguments], COLUMNS
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            runpy.run_path(script, run_name="__main__")
    finally:
        sys.argv = argv
    return fenced("\n".join(short for line in printed.getvalue().splitlines() for short in wrapped(line.rstrip())))


def wrapped(line: str) -> list[str]:
    """The line, cut into several if it is longer than a page of ours; tyro cuts all but the description."""
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent) if len(line) > WIDTH else [line]


def config(_: str = "") -> str:
    """Every field of the config: its flag, what it takes, its default, its help."""
    defaults = Config()
    flags = {flag.name: flag for flag in all_flags(Command(defaults, Session()))}
    groups = [
        field.name for field in dataclasses.fields(defaults) if dataclasses.is_dataclass(getattr(defaults, field.name))
    ]
    lines = ["## The run", "", *fields(defaults, "--", flags)]
    for group in groups:
        record = getattr(defaults, group)
        title = group.replace("_", " ").capitalize()
        lines += [
            f"## {title}",
            "",
            str(type(record).__doc__),
            "",
            *fields(record, f"--{group}.".replace("_", "-"), flags),
        ]
    return "\n".join(lines)


def session(_: str = "") -> str:
    """The flags of one call of `train.py`, which are no fields of the config."""
    return "\n".join(fields(Session(), "--", {flag.name: flag for flag in all_flags(Command(Config(), Session()))}))


def presets(_: str = "") -> str:
    """What each preset sets that is not the config's default, with what was measured of it."""
    lines: list[str] = []
    plain = {flag.name: flag.default for flag in all_flags(Command(Config(), Session()))}
    for title, make in SHOWN_PRESETS.items():
        flags = all_flags(Command(make(), Session()))
        changed = [
            f"{flag.name} {shown(flag.default) or '(none)'}" for flag in flags if flag.default != plain[flag.name]
        ]
        lines += [f"### {title}", "", fenced("\n".join(changed)), ""]
    return "\n".join(lines)


def ranges(_: str = "") -> str:
    """A table of the fields that `tune.py` varies on small boards (Hex 4x4), and on towers (chess)."""
    tables = []
    for title, config in (
        ("small boards, here Hex 4x4", presets_module.hex_any(4)),
        ("towers, here chess", presets_module.tower("chess", num_bins=3)),
    ):
        lines = [f"| {title} | preset | from | to | so far |", "|---|---|---|---|---|"]
        for row in space.space(config):
            values = row.values if isinstance(row, space.Choice) else (row.low, row.high)
            own = space.own_values(config, [row])[row.field]
            cells = f"`{row.flag}`", f"{own:.3g}", f"{values[0]:.3g}", f"{values[-1]:.3g}", row.so_far
            lines.append(f"| {' | '.join(cells)} |")
        tables.append("\n".join(lines))
    return "\n\n".join(tables)


def fields(record: Any, prefix: str, flags: dict[str, Flag]) -> list[str]:
    """The fields of one group as a list, which reads the same on GitHub and on the site."""
    hints, lines = typing.get_type_hints(type(record), include_extras=True), []
    for field in dataclasses.fields(record):
        if dataclasses.is_dataclass(getattr(record, field.name)):
            continue
        flag = flags[prefix + field.name.replace("_", "-")]
        demands = [demand.sentence for demand in constraints(hints[field.name]) if demand not in (COUNTED, FINITE)]
        default = f"default `{shown(flag.default)}`" if shown(flag.default) else "empty by default"
        takes = [f"`{flag.value}`" if flag.value else "a switch", *demands, default]
        text = f"- `{flag.name}`: {'; '.join(takes)}. {sentence(flag.sentence, flag.value)}"
        lines += textwrap.wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return [*lines, ""]


def constraints(hint: Any) -> list[Constraint]:
    """What a field's annotation demands, at any depth."""
    inner = [demand for part in typing.get_args(hint) for demand in constraints(part)]
    return [*inner, *(part for part in typing.get_args(hint) if isinstance(part, Constraint))]


def shown(value: Any) -> str:
    """A default as one would type it; a switch is on or off."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def sentence(text: str, values: str = "") -> str:
    """The text with a full stop, and a capital unless it begins with one of the values, or with a symbol of a formula.

    A page that it names becomes a link.
    """
    text = re.sub(r"docs/([\w-]+\.md)", r"[\1](\1)", text.replace("<", "&lt;"))
    name = text.partition(":")[0]
    first = text[:1] if name in (*re.findall(r"\w+", values), *SYMBOLS) else text[:1].upper()
    return f"{first}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


def fenced(text: str) -> str:
    """A block of plain text."""
    return f"```text\n{inspect.cleandoc(text)}\n```"
