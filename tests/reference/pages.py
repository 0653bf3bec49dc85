"""What the pages of README and docs/ show: their commands, their code, and the metrics that they explain."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GUIDES = [page for page in PAGES if "results" not in page.parts and page.stem != "lab-notebook"]
"""Records and the notebook are history: they keep the commands of their day."""
_COMMAND = re.compile(r"(?<![\w/.-])(?:experiments|scripts)/\w+\.py((?:[ \t]+(?:\"[^\"\n]*\"|[^\"`|;&#\n])*)?)")


def read(page: Path) -> str:
    """A page's text."""
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str = r"\w*") -> Iterator[tuple[int, str]]:
    """Blocks of code in a language, each with the line that it begins on; continued lines are joined."""
    text = read(page)
    for found in re.finditer(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, found.start()) + 2, re.sub(r"\\\n\s*", " ", found[1])


def commands(page: Path) -> Iterator[tuple[int, str]]:
    """Every command of ours with flags, in blocks and in the middle of a sentence, with its line."""
    text = re.sub(r"\\\n\s*|<!--.*?-->", lambda gap: " " * len(gap[0]), read(page))  # as long as before: lines count
    for found in _COMMAND.finditer(text):
        if found[1].strip():
            yield read(page).count("\n", 0, found.start()) + 1, found[0].strip()


def anchor(heading: str) -> str:
    """The name that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
