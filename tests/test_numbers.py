"""Every number of README.md and the leaderboard stands in the record that its row or sentence links to.

A row's figures stand in one row of the record, or in the text around it; those of a sentence anywhere in the record. A
link to a heading means the text under it. A figure is right if the record's own rounds to it, and a record's row also
has its number of games: won + drawn + lost. Commands and code are not read, nor are numbers in words.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.reference.pages import ROOT, anchor, read

PAGES = [ROOT / "README.md", ROOT / "docs/leaderboard.md"]
CARDS = sorted((ROOT / "muzero_jax/agents").glob("*.md"))
"""Cards are records. Their rows that quote another record are checked too."""

EXEMPT = {
    r"Python 3\.11": "a version",
    r"Apache-2\.0": "a version",
    r" 2048\b": "a game",
    r"300 lines": "the length of a program",
    r"64 simulations per move": "the protocol, which each record repeats",
    r"95% intervals": "the protocol",
    r"contain 50%": "the middle of the scale, with which two intervals are compared",
    r"\| MCTS 1,000 \| games \|": "the heading of a column",
    r"^\| \d+ (?=\|)|Rows 6 and 7": "labels of rows",
}
"""Patterns of what is not a result, with the reason."""

_N = r"(-?\d+(?:,\d{3})*(?:\.\d+)?(?:e\d+)?)"
_FIGURE = re.compile(rf"(?<!\w)(?:(\d+) ?[-/] ?(\d+) ?[-/] ?(\d+)|\[{_N}, {_N}\]|{_N} of {_N}|(\d+x\d+)|{_N})(?!\w)")
_RECORD = re.compile(r"\]\(([^)#\s]*(?:results/|agents/|other-programs)[^)#\s]*\.md)(?:#([^)\s]*))?\)")


class Claim(NamedTuple):
    """A row of a table, or a part of it between semicolons; or a sentence, with a printed block that follows it."""

    text: str
    records: list[tuple[str, str]]  # linked files, with the heading or ""
    is_row: bool


def claims(page: Path) -> Iterator[Claim]:
    text = re.sub(r"^```(?:bash|python|bibtex)\n.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL)
    for pattern in EXEMPT:
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?=[-|] )", text):
        is_row = block.startswith("|")
        for part in block.split(";") if is_row else re.split(r"(?<=[.?])\s+(?=[A-Z`\[])", block):
            yield Claim(part, _RECORD.findall(block if is_row else part), is_row)


def figures(text: str) -> set[tuple[str, ...]]:
    """The `won - drawn - lost`, intervals, `x of y`, boards and other numbers of a text; not days, HTML and targets."""
    text = re.sub(r"\]\([^)]*\)|<[^>]*>|\b\d+ November\b", "] ", text)
    return {tuple(part for part in found if part) for found in _FIGURE.findall(text)}


def rounds_to(record: tuple[str, ...], figure: tuple[str, ...]) -> bool:
    """Whether a record's figure, rounded to the digits of a page's, is the page's. Boards are equal or not."""
    if len(record) != len(figure) or "x" in record[0] + figure[0]:
        return record == figure
    theirs, ours = ([Decimal(part.replace(",", "")) for part in whole] for whole in (record, figure))
    return all(their.quantize(our) == our for their, our in zip(theirs, ours, strict=True))


def recorded(text: str) -> set[tuple[str, ...]]:
    """The figures of a record, their parts, `low to high` as an interval, and games: won + drawn + lost."""
    whole = figures(text)
    intervals = set(re.findall(rf"(?<!\w){_N}%? to {_N}(?!\w)", text))
    games = {(str(sum(map(int, found))),) for found in whole if len(found) == 3}
    return whole | intervals | games | {(part,) for found in whole for part in found}


def offers(file: Path, heading: str, is_row: bool) -> list[set[tuple[str, ...]]]:
    """What a record says to a claim: the text with each row, or the text with all rows."""
    parts = re.split(r"^#+ ", read(file), flags=re.MULTILINE)
    lines = "\n".join(part for part in parts if heading in ("", anchor(part.split("\n")[0]))).split("\n")
    rows = [recorded(line) for line in lines if line.startswith("|")]
    text = recorded("\n".join(line for line in lines if not line.startswith("|")))
    return [text, *(text | row for row in rows)] if is_row else [text.union(*rows)]


def missing(page: Path, claim: Claim) -> list[tuple[str, ...]]:
    """The figures of a claim that its records do not have; a sentence may name any board."""
    said = {figure for figure in figures(claim.text) if claim.is_row or "x" not in figure[0]}
    records = [offers(page.parent / file, heading, claim.is_row) for file, heading in claim.records]
    pools = (set().union(*chosen) for chosen in product(*records))
    return sorted(min(([f for f in said if not any(rounds_to(r, f) for r in pool)] for pool in pools), key=len))


@pytest.mark.parametrize("page", [*PAGES, *CARDS], ids=lambda page: page.stem)
def test_every_number_is_in_the_record_that_its_row_or_sentence_links_to(page):
    checked = [claim for claim in claims(page) if page in PAGES or (claim.is_row and "results/" in str(claim.records))]
    wrong = [(missing(page, claim), claim.text) for claim in checked]
    assert [(absent, text) for absent, text in wrong if absent] == []


def test_pages_have_numbers_and_each_exemption_is_needed():
    assert sum(len(figures(claim.text)) for page in PAGES for claim in claims(page) if claim.records) > 280
    unused = [p for p in EXEMPT if not any(re.search(p, read(page), flags=re.MULTILINE) for page in PAGES)]
    assert unused == []
