"""Flags from a command line by tyro, whose boxes about a mistake become one sentence."""

import io
import re
from contextlib import redirect_stderr
from itertools import groupby
from typing import Any

import tyro

_RULE = re.compile("[─-]+")  # between the paragraphs of a box
_WRONG_VALUE = re.compile(r"Error parsing (?P<flag>--\S+): .*?(?P<value>'[^']*')\]?\.?$")


def read(kind: Any, arguments: list[str], **options: Any) -> Any:
    """The value of the type `kind` that the arguments make, as `tyro.cli`, which takes the options.

    Raises ValueError in one sentence where they make none; SystemExit once help is printed.
    """
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            return tyro.cli(kind, args=arguments, **options)
    except SystemExit as end:
        if not end.code:
            raise
        raise ValueError(_sentence(said.getvalue())) from None


def _sentence(box: str) -> str:
    """The message of a box in a line: its first paragraph, with the values that a flag takes, or the one meant."""
    rows = [line.strip("│ ") for line in box.strip().splitlines() if not line.startswith(("╭", "╰"))]
    if not box.startswith("╭"):  # in ASCII the title is a row, above a rule
        rows = rows[2:]
    paragraphs = [
        " ".join(group) for has_text, group in groupby(rows, lambda row: not _RULE.fullmatch(row)) if has_text
    ]
    sentence, *others = paragraphs or [" ".join(box.split())]
    sentence = sentence.split("  ")[0].rstrip(". ")  # after an empty row come Python's own words
    if wrong := _WRONG_VALUE.fullmatch(sentence):
        usage = next((row for row in rows if row.startswith(f"{wrong['flag']} ")), "")
        takes = usage.removeprefix(wrong["flag"]).strip().removeprefix("{None}|") or "another kind of value"
        sentence = f"{wrong['flag']} takes {takes}, not {wrong['value']}"
    for text in others:
        if (meant := re.match(r"Perhaps you meant: (--\S+)", text)) and meant[1] not in sentence:
            sentence += f" (did you mean {meant[1]}?)"
        elif text.startswith("Available subcommands: "):
            sentence += f" ({text[0].lower()}{text[1:]})"
    return f"{sentence[:1].lower()}{sentence[1:]}; --help shows what there is"
