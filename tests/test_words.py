"""What is written for readers: short sentences, cells that fit on a line, no private codes, no invented address."""

import ast
import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.reference import pages

ROOT = Path(__file__).parent.parent
RECORDS = ("lab-notebook.md", "benchmark.md")
"""Pages for those who look up what was measured, with the names that tables of results have."""
PACKAGES = ("muzero_jax", "experiments", "scripts", "tests")
MAX_WORDS, MAX_CELL, MAX_PAGE = 25, 100, 160
GUIDES = ["README.md", *(f"docs/{p.name}" for p in sorted(ROOT.glob("docs/*.md")) if p.name not in RECORDS)]


def read(path: str) -> str:
    return pages.read(ROOT / path)


def cells(text: str) -> list[str]:
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [cell for row in rows for cell in re.split(r"(?<!\\)\|", row)]


def sentences(text: str) -> list[str]:
    """The sentences of a page's prose and lists: without code blocks, tables and headings; a link is its text."""
    text = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    lines = ["" if re.match(r"\||#|!\[", line) else line for line in text.splitlines()]
    blocks = re.split(r"\n(?=\s*\n)|\n\s*(?:-|\d+\.) ", "\n" + "\n".join(lines))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", block)) for block in blocks)
    return [sentence for block in plain for sentence in re.split(r"(?<=[.?!:;])[*\s]+", block.strip()) if sentence]


def docstrings(path: Path) -> list[str]:
    """Docstrings of modules, classes and functions, and the strings below a field or a constant."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bare = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    return [node.value for node in bare if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def test_the_first_page_is_short():
    assert len(read("README.md").splitlines()) <= 150


@pytest.mark.parametrize("path", GUIDES)
def test_a_guide_is_short(path):
    assert len(re.sub(r"\n{3,}", "\n\n", read(path)).splitlines()) <= MAX_PAGE


def test_a_sentence_ends_and_a_new_one_begins():
    text = "One `a b c` two.\n\n- Three\n  four: five\n- six\n\n```\nno. code\n```\n| no | cells |\n"
    assert sentences(text) == ["One code two.", "Three\n  four:", "five", "six"]


@pytest.mark.parametrize("path", GUIDES)
def test_a_sentence_is_read_once(path):
    assert [" ".join(s.split()) for s in sentences(read(path)) if len(s.split()) >= MAX_WORDS] == []


@pytest.mark.parametrize("path", [*GUIDES, "CONTRIBUTING.md", "CHANGELOG.md", *(f"docs/{name}" for name in RECORDS)])
def test_a_table_cell_fits_on_a_line(path):
    assert [cell for cell in cells(read(path)) if len(cell.strip()) > MAX_CELL] == []


@pytest.mark.parametrize("path", GUIDES)
def test_a_guide_has_no_private_codes(path):
    assert re.findall(r"\bW[123]\b", read(path)) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_docstring_says_what_a_thing_is_first(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert [text for file in files for text in docstrings(file) if re.match(r"(?i)of\b", text)] == []


def test_a_docstring_of_the_package_begins_with_a_noun():
    """Say "The targets of a window", not "What is learned from a window"."""
    files = sorted((ROOT / "muzero_jax").rglob("*.py"))
    assert [(file.name, text) for file in files for text in docstrings(file) if re.match(r"What\b", text)] == []


HOUSE_WORDS = r"(?i)\b(?:ring|movers?|foret(?:old|ells?)|first stones?|verdicts?|true rules|from one side|who err)\b"
"""Words of our own that once stood where the field has one: replay buffer, player to move, predicted ..."""


@pytest.mark.parametrize("path", [path for path in GUIDES if path != "README.md"])
def test_a_guide_has_the_fields_words(path):
    text = re.sub(r"\]\([^)]*\)|the first stone", "", read(path))  # links may lead to old headings; stones are Hex's
    assert re.findall(HOUSE_WORDS, text) == []


def test_links_of_pages_lead_to_files_and_headings():
    broken = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text(encoding="utf-8")):
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append((page.name, target))
    assert broken == []


@pytest.mark.parametrize("package", (*PACKAGES, "examples"))
def test_a_page_that_code_names_exists(package):
    texts = (file.read_text(encoding="utf-8") for file in (ROOT / package).rglob("*.py"))
    named = {page for text in texts for page in re.findall(r"(?<![\w/])docs/[\w/-]+\.md", text)}
    assert {page for page in named if not (ROOT / page).exists()} == set()


def anchors(file: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_page_names_a_public_home_unless_the_project_has_one():
    """The one setting is `project.urls.Repository` in pyproject.toml, absent by default."""
    home = tomllib.loads(read("pyproject.toml"))["project"].get("urls", {}).get("Repository", "")
    texts = [read(path) for path in (*GUIDES, "CONTRIBUTING.md", "mkdocs.yml")]
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        texts += ["".join(cell["source"]) for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]]
    found = {name for text in texts for name in re.findall(r"github(?:\.com)?/([\w.-]+/muzero[\w.-]*)", text)}
    assert {name for name in found if not home.endswith(name)} == set()
