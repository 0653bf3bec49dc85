"""What is written for readers: the field's words, live links, no private codes, no invented address."""

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
GUIDES = ["README.md", *(f"docs/{p.name}" for p in sorted(ROOT.glob("docs/*.md")) if p.name not in RECORDS)]


def read(path: str) -> str:
    return pages.read(ROOT / path)


@pytest.mark.parametrize("path", GUIDES)
def test_a_guide_has_no_private_codes(path):
    assert re.findall(r"\bW[123]\b", read(path)) == []


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
