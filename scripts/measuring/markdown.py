"""Tables, and chapters of them, as Markdown."""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from scripts.measuring.timing import Sample, Times
from scripts.measuring.words import against_all, seconds, sizes_of, spread, winners


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


class Compared(NamedTuple):
    """Times of several ways to do a work of growing size, or several works: tables, a plot, and sentences."""

    name: str  # of the work, with which sentences begin
    times: Times
    where: str  # before sizes in sentences: "at n ="
    head: str  # over the sizes
    unit: str  # of work a second
    work: Callable[[Any], float]  # of a size
    shows: str = "rate"  # in tables: "rate", "time" or both
    plot: str = ""  # the name of its file, if there is one
    size_name: Callable[[Any], str] = "{:,}".format

    def rates(self) -> Times:
        """The same table as work a second."""
        return {name: {n: s.rate(self.work(n)) for n, s in row.items()} for name, row in self.times.items()}

    def tables(self) -> list[Table]:
        """Those that are shown, a row for each size and a column for each way."""
        shown = {"time": (self.times, seconds), self.unit: (self.rates(), spread)}
        chosen = [unit for unit in shown if ("time" if unit == "time" else "rate") in self.shows]
        return [self._table(f"{self.head} ({unit})", *shown[unit]) for unit in chosen]

    def _table(self, head: str, rows: Times, cell: Callable[[Sample | None], str]) -> Table:
        sizes = [[self.size_name(n), *(cell(row.get(n)) for row in rows.values())] for n in sizes_of(rows)]
        return Table([head, *rows], sizes)

    def section(self, title: str, text: str, *others: "Compared", headlines: Sequence[str] = ()) -> Section:
        """A chapter of this and others: who is fastest where, and the first way against each other one."""
        every = (self, *others)
        return Section(
            title,
            text,
            [table for c in every for table in c.tables()],
            [LinePlot(c.plot, f"{title}: {c.name}", c.head, c.unit, c.rates()) for c in every if c.plot],
            [f"{c.name}: {sentence}" for c in every for sentence in against_all(c.times, c.where)],
            [*(f"{c.name}, {winners(c.times, c.where)}" for c in every), *headlines],
        )


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
    return "\n\n".join([f"# {title}", _fill(text), *chapters, "## Conclusion", rule, headlines, _fill(end)]) + "\n"


def _chapter(content: Section, number: int, image_prefix: str) -> str:
    images = [f"![{plot.title}]({image_prefix}-{plot.name}.png)" for plot in content.plots]
    findings = _bullets([*content.headlines, *content.findings])
    parts = [f"## {number}. {content.title}", _fill(content.text), *map(table, content.tables), *images, findings]
    return "\n\n".join(part for part in parts if part)


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(_fill(f"- {sentence}", "  ") for sentence in sentences)


def _fill(paragraph: str, indent: str = "") -> str:
    """The paragraph in lines of at most 120 columns, those after the first indented."""
    return textwrap.fill(paragraph, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
