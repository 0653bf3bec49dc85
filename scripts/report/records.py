"""What a chapter of the report consists of, before anybody decides how it looks."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scripts.report.timing import Sample


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
