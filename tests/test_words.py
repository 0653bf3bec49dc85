"""What a person reads: the field's words, and live links."""

import ast
import json
import re
from pathlib import Path

import pytest

from tests.reference import pages
from tests.reference.pages import ROOT

HISTORY = "lab-notebook.md"
CODE = ("muzero_jax", "scripts", "experiments", "examples")

SAY = {
    "winning-move accuracy": r"wins kept|positions kept|keeps? (?:\S+ ){0,9}won|winning moves (?:are )?played",
    "opening-value accuracy": r"openings right|verdicts?",
    "canonical observations": r"from one side|ColourSwap",
    "ground-truth model": r"true rules|(?<!unless.)the game itself|plan\w* (?:with|by) the rules",
    "replay buffer": r"(?<!has.a.)rings?(?! of N)",
    "known chance outcomes": r"told outcomes?|told what chance",
    "exploratory returns": r"players who err",
    "included agents": r"in the box",
    "predicted discount": r"foretold|foretells?",
    "FLOPs": r"[\d.]+e\d+ operations|\| operations \||(?:and|by|over|times the|twice the) operations|by computation",
    "launch-bound, memory-bound or compute-bound": r"binds?(?! 127)|waits? for memory",
    "update priorities, write back": r"(?<![`:])revis(?:es?|ed|ing)|several notes|\*\*noted",
    "sample": r"draws? (?:\w+ ){0,3}\W?windows?|windows? (?:\w+ )?(?:are|is|were) (?:\w+ )?drawn|windows drawn",
}
"""One concept, one name, the field's: what to say, and a pattern of what not to write. A space is any white space."""


def texts():
    """All that a person reads, as (where, first line, text): pages, pictures, notebooks, help, errors, docstrings."""
    documents = [*pages.PAGES, *ROOT.glob("muzero_jax/agents/*.md"), *ROOT.glob("docs/**/*.svg")]
    for path in sorted(path for path in documents if path.name != HISTORY):
        yield path, 1, re.sub(r"\]\([^)]*\)", "]", pages.read(path))  # links may lead to old headings
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        for number, cell in enumerate(json.loads(pages.read(path))["cells"], 1):
            yield f"{path}, cell {number}", 1, re.sub(r"\]\([^)]*\)", "]", "".join(cell["source"]))
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(pages.read(path))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path, node.lineno, node.value


@pytest.fixture(scope="module")
def read_by_people():
    return list(texts())


@pytest.mark.parametrize("term", SAY)
def test_a_concept_has_one_name(read_by_people, term):
    pattern = re.compile(rf"(?i)(?<!\w)(?:{SAY[term]})(?!\w)".replace(" ", r"\s+"))
    found = [
        f"{where}:{line + text[: hit.start()].count(chr(10))}: say {term!r} instead of {hit[0]!r}"
        for where, line, text in read_by_people
        for hit in pattern.finditer(text)
    ]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def test_links_of_pages_lead_to_files_and_headings():
    broken = []
    for page in [*pages.PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", pages.read(page)):
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append((page.name, target))
    assert broken == []


def anchors(file: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", pages.read(file), flags=re.MULTILINE)
    return {pages.anchor(heading) for heading in headings}


@pytest.mark.parametrize("package", (*CODE, "tests"))
def test_pages_named_in_code_exist(package):
    texts = (pages.read(file) for file in (ROOT / package).rglob("*.py"))
    named = {page for text in texts for page in re.findall(r"(?<![\w/])docs/[\w/-]+\.md", text)}
    assert {page for page in named if not (ROOT / page).exists()} == set()
