"""Tables, and chapters of them, as Markdown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scripts.measuring.timing import Sample


class Table(NamedTuple):
    """Text by row and column; numbers are already formatted, "-" stands where nothing was measured."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


class LinePlot(NamedTuple):
    """Curves over a size, both axes logarithmic; each point is drawn with its spread."""

    name: str  # of the file, without suffix
    title: str
    x_label: str
    y_label: str
    lines: Mapping[str, Mapping[int, Sample]]


class BarPlot(NamedTuple):
    """Horizontal bars, one a name, each labelled with its number."""

    name: str
    title: str
    x_label: str
    bars: Mapping[str, float]


class Section(NamedTuple):
    """One chapter: what was measured and in which unit, the tables, and what follows from the numbers."""

    title: str
    text: str
    tables: Sequence[Table]
    plots: Sequence[LinePlot | BarPlot] = ()
    findings: Sequence[str] = ()  # sentences made from the measured numbers
    headlines: Sequence[str] = ()  # the few of them that the conclusion repeats


def by_size(
    head: str,
    table: Mapping[str, Mapping[Any, Sample]],
    cell: Callable[[Sample | None], str],
    size_name: Callable[[Any], str] = "{:,}".format,
) -> Table:
    """A row for each size, a column for each name."""
    sizes = sorted({size for row in table.values() for size in row})
    rows = [[size_name(size), *(cell(row.get(size)) for row in table.values())] for size in sizes]
    return Table([head, *table], rows)


def table(content: Table) -> str:
    """A Markdown table; the first column is text, the others lean to the right."""
    line = "|---" + "|---:" * (len(content.header) - 1) + "|"
    head, *rows = ("| " + " | ".join(row) + " |" for row in (content.header, *content.rows))
    return "\n".join([head, line, *rows])


def document(title: str, text: str, sections: Sequence[Section], image_prefix: str, end: str) -> str:
    """A whole report: numbered chapters with their plots and findings, a conclusion of headlines, a last line."""
    chapters = [_chapter(content, number, image_prefix) for number, content in enumerate(sections, start=1)]
    headlines = _bullets(headline for content in sections for headline in content.headlines)
    rule = "Made from the tables above by rule; every sentence holds for this machine and this run only."
    return "\n\n".join([f"# {title}", text, *chapters, "## Conclusion", rule, headlines, end]) + "\n"


def _chapter(content: Section, number: int, image_prefix: str) -> str:
    images = [f"![{plot.title}]({image_prefix}-{plot.name}.png)" for plot in content.plots]
    findings = _bullets([*content.headlines, *content.findings])
    parts = [f"## {number}. {content.title}", content.text, *map(table, content.tables), *images, findings]
    return "\n\n".join(part for part in parts if part)


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)
