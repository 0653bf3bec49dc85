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
from muzero_jax.run.session import Session
from tests.reference.pages import PAGES, ROOT, read

OTHERS = {"--xla_disable_hlo_passes", "--xla_backend_optimization_level", "--logdir", "--no-FLAG", "--GROUP.no-FLAG"}
OTHERS |= {"--xla_gpu_enable_command_buffer", "--xla_gpu_graph_min_graph_size"}
"""Flags of other programs, and examples."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning would fail the build."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert built.returncode == 0, built.stderr + built.stdout
    return folder


def text_of(page: Path) -> str:
    """What a reader sees of a built page."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_no_page_needs_a_network_and_notebooks_have_their_pictures(site):
    pages = {str(page.relative_to(site)): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    needs = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="((?:https?:)?//[^"]*)"')
    assert len(pages) > 30 and [(name, found) for name, page in pages.items() for found in needs.findall(page)] == []
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        assert pages[f"notebooks/{path.stem}.html"].count('src="data:image/') == read(path).count('"image/'), path.stem


def test_the_reference_pages_list_every_flag_and_show_the_source_of_the_interface(site):
    config, commands, interface = (text_of(site / f"{name}.html") for name in ("config", "commands", "api"))
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
