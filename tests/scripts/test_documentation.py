"""The documentation builds without a warning, reads without a network, and has every flag that pages name."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from muzero_jax import presets
from muzero_jax.apps.commands.parser import flags_of
from muzero_jax.config.session import Session
from tests.reference.pages import PAGES, ROOT, read

OTHERS = {"--xla_disable_hlo_passes", "--xla_backend_optimization_level", "--logdir", "--no-FLAG", "--GROUP.no-FLAG"}
OTHERS |= {"--xla_gpu_enable_command_buffer", "--xla_gpu_graph_min_graph_size", "--presets", "--targets", "--previews"}
"""Flags of other programs and of scripts, and examples."""


def build(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    """Runs the command that users and CI run, with this Python's mkdocs, and builds the site into a folder."""
    environment = os.environ | {
        "VIRTUAL_ENV": sys.prefix,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    command = ["bash", str(ROOT / "scripts/docs.sh"), "build", "--site-dir", str(folder), *flags]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning fails the build."""
    folder = tmp_path_factory.mktemp("site")
    built = build(folder)
    assert built.returncode == 0, built.stderr + built.stdout
    return folder


@pytest.mark.parametrize(
    "text, warning",
    [
        ("[A page](index.md)", None),
        ("[A page](nowhere.md)", "nowhere.md"),
        ("[0.031, 0.052] [points](index.md)", "points"),  # read as a reference to a heading, and shown as it stands
    ],
)
def test_a_warning_fails_the_build(tmp_path, text, warning):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(f"# A site\n\n{text}\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: A site\nplugins: [autorefs]\n")
    built = build(tmp_path / "site", "--config-file", str(tmp_path / "mkdocs.yml"))
    assert (built.returncode, warning is None or warning in built.stderr) == (0 if warning is None else 1, True)


def text_of(page: Path) -> str:
    """What a reader sees of a built page."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_no_page_needs_a_network_and_notebooks_have_their_pictures(site):
    pages = {str(page.relative_to(site)): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    needs = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="((?:https?:)?//[^"]*)"')
    assert len(pages) > 30 and [(name, found) for name, page in pages.items() for found in needs.findall(page)] == []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        assert pages[f"notebooks/{path.stem}.html"].count('src="data:image/') == read(path).count('"image/'), path.stem


def test_formulas_are_rendered_records_lead_back_and_notebooks_can_be_downloaded(site):
    pages = {str(page.relative_to(site)): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    assert pages["search-free.html"].count("<math") > 5
    assert [name for name, page in pages.items() if "arithmatex" in page] == []
    inside = {name: page for name, page in pages.items() if name.startswith(("results/", "agents/"))}
    assert len(inside) > 30
    back = {"results": "records.html", "agents": "leaderboard.html"}
    assert [name for name, page in inside.items() if f'{back[name.split("/")[0]]}">←' not in page] == []
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert (site / "notebooks" / path.name).read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


def test_the_reference_pages_list_every_flag_and_show_the_source_of_the_interface(site):
    config, commands, interface = (text_of(site / f"{name}.html") for name in ("config", "commands", "api-records"))
    flags = [*flags_of(presets.tic_tac_toe()), *flags_of(Session())]
    of_session = {f"--{name.replace('_', '-')}" for name in Session.__dataclass_fields__}
    assert [f.name for f in flags if f.name not in (commands if f.name in of_session else config)] == []
    assert "4 (Hex 5x5" in config and "--opponent TEXT" in commands
    assert "0 if `action` ended the game" in interface, "a record's source, with its comments"


def test_every_flag_that_a_page_names_exists(site):
    known = set(re.findall(r"--[\w.-]+\w", text_of(site / "commands.html") + text_of(site / "config.html"))) | OTHERS
    known |= {f"--no-{name[2:]}" for name in known} | {re.sub(r"\.(?=[\w-]+$)", ".no-", name) for name in known}
    pages = [page for page in PAGES if page.parent == ROOT / "docs" and page.stem not in ("lab-notebook", "commands")]
    texts = {p.name: re.sub(r"\b(?:gtp|uci|usi):[^\"`\n]*", "", read(p)) for p in pages}
    found = {(page, flag) for page, text in texts.items() for flag in re.findall(r"(?<![\w-])--[a-z][\w.-]*\w", text)}
    assert {(name, flag) for name, flag in found if flag not in known} == set()
