"""Sections as Markdown, and their plots as PNG files beside it."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from muzero_jax.storage.files import check_writable, write_whole
from scripts.report.plots import draw
from scripts.report.records import Section, Table

METHOD = (
    "Every time is the median of seven repeats (five where a call takes over a quarter of a second) and, in brackets, "
    "the range of their middle half (interquartile range), after a warm-up that is not counted, each waited for until "
    "its result is there. What a table compares was "
    "measured in turn, repeat by repeat, in one process; ratios are of medians. A difference is called clear only "
    "where the ranges do not touch. `-` means not measured: a library that is not installed, or a size that takes too "
    "long here."
)


def table(content: Table) -> str:
    """A Markdown table; the first column is text, the others lean to the right."""
    head = "| " + " | ".join(content.header) + " |"
    line = "|---" + "|---:" * (len(content.header) - 1) + "|"
    rows = ["| " + " | ".join(row) + " |" for row in content.rows]
    return "\n".join([head, line, *rows])


def section(content: Section, number: int, image_prefix: str) -> str:
    """A chapter with its tables, references to its plots, and what follows from the numbers."""
    images = [f"![{plot.title}]({image_prefix}-{plot.name}.png)" for plot in content.plots]
    parts = [f"## {number}. {content.title}", content.text, *map(table, content.tables), *images]
    findings = "\n".join(f"- {finding}" for finding in [*content.headlines, *content.findings])
    return "\n\n".join(part for part in [*parts, findings] if part)


def conclusion(sections: Sequence[Section]) -> str:
    """What the chapters found most telling, each sentence made from their numbers."""
    text = "Made from the tables above by rule; every sentence holds for this machine and this run only."
    headlines = "\n".join(f"- {headline}" for content in sections for headline in content.headlines)
    return f"## Conclusion\n\n{text}\n\n{headlines}"


def document(sections: Sequence[Section], image_prefix: str, end: str) -> str:
    """The whole report, whose last line is `end`."""
    chapters = [section(content, number, image_prefix) for number, content in enumerate(sections, start=1)]
    return "\n\n".join(["# Hardware report", METHOD, *chapters, conclusion(sections), end]) + "\n"


def prepare(file: Path, overwrite: bool) -> None:
    """Makes the folder of `file`; ValueError if that cannot be written, or would replace a report unasked."""
    existing = [path for path in [file, *file.parent.glob(f"{file.stem}-*.png")] if path.exists()]
    if existing and not overwrite:
        raise ValueError(f"{existing[0]} exists already; choose another --out, or --overwrite replaces it")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"--out {file.parent} cannot be made ({error.strerror}); name another folder") from error
    check_writable(file, "--out")


def free_name(file: Path) -> Path:
    """Beside `file`, where a report goes that was stopped: stopped-<name>, with a number if there is one already."""
    names = itertools.chain(["stopped"], (f"stopped-{number}" for number in itertools.count(2)))
    return next(path for name in names if not (path := file.with_name(f"{name}-{file.name}")).exists())


def write(sections: Sequence[Section], file: Path, end: str) -> None:
    """Writes `file`, whose last line is `end`, and each plot as <stem>-<name>.png beside it."""
    write_whole(file, document(sections, file.stem, end))
    for content in sections:
        for plot in content.plots:
            draw(plot, file.with_name(f"{file.stem}-{plot.name}.png"))
