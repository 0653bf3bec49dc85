"""The documentation builds without a warning, reads without a network, and says what the code says."""

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from muzero_jax import presets
from muzero_jax.commands.train_flags import Command, all_flags
from muzero_jax.run.session import Session
from scripts.documentation import api, hooks, rooms
from tests.reference.pages import PAGES, ROOT, read
from tests.test_architecture import KNOWS

OTHERS = {"--xla_disable_hlo_passes", "--xla_backend_optimization_level", "--logdir", "--no-FLAG", "--GROUP.no-FLAG"}
"""Flags of other programs, and examples."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning would fail the build."""
    folder = tmp_path_factory.mktemp("site")
    mkdocs = shutil.which("mkdocs", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    assert mkdocs, "pip install -e '.[dev]' -c constraints.txt"
    command = [mkdocs, "--quiet", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert built.returncode == 0, built.stderr + built.stdout
    return folder


def text_of(page: Path) -> str:
    """What a reader sees of a built page."""
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


def test_no_page_needs_a_network(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    needs = re.compile(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="((?:https?:)?//[^"]*)"')
    assert {found for page in pages for found in needs.findall(page.read_text(encoding="utf-8"))} == set()


def test_what_pages_ask_of_the_code_is_there(site):
    assert not any("<!-- made:" in page.read_text(encoding="utf-8") for page in site.rglob("*.html"))
    config, commands, interface = (text_of(site / f"{name}.html") for name in ("config", "commands", "api"))
    flags = all_flags(Command(presets.tic_tac_toe(), Session()))
    assert [flag.name for flag in flags if flag.name not in commands] == []
    of_session = {f"--{name.replace('_', '-')}" for name in Session.__dataclass_fields__}
    assert [flag.name for flag in flags if flag.name not in config and flag.name not in of_session] == []
    assert "must lie between 0 and 2^32 - 1" in config and "--search.value-scale 0.4" in config
    for shown in ("--opponent STR", "--anchor", "--time-per-move", "--compare COMPARE", "--board-size INT"):
        assert shown in commands
    assert "load(run: str | Path" in interface
    assert "reward: Array" in interface and "0 if `action` ended the game" in interface


def test_every_flag_that_a_page_names_exists(site):
    known = set(re.findall(r"--[\w.-]+\w", text_of(site / "commands.html") + text_of(site / "config.html"))) | OTHERS
    known |= {f"--no-{name[2:]}" for name in known} | {re.sub(r"\.(?=[\w-]+$)", ".no-", name) for name in known}
    pages = [page for page in PAGES if page.parent == ROOT / "docs" and page.stem not in ("lab-notebook", "commands")]
    found = {(p.name, flag) for p in pages for flag in re.findall(r"(?<![\w-])--[a-z][\w.-]*\w", read(p))}
    assert {(name, flag) for name, flag in found if flag not in known} == set()


def test_a_link_to_code_is_a_name_until_the_project_has_an_address():
    def mended(markdown, address):
        return hooks._LINK.sub(lambda link: hooks.leave(link, ROOT / "docs", address), markdown)

    link, other = "[how](../CONTRIBUTING.md#add-a-game)", "[training.py](../muzero_jax/training.py)"
    assert mended(link, "") == "how (`CONTRIBUTING.md`)" and mended(other, "") == "`muzero_jax/training.py`"
    assert mended("[building/](../muzero_jax/building)", "") == "`muzero_jax/building`"
    address = "https://example.org/someone/project"
    assert mended(link, address) == f"[how]({address}/blob/HEAD/CONTRIBUTING.md#add-a-game)"
    folder = "results/hardware-two-intel-cores"
    assert mended(f"[Intel]({folder})", "") == f"[Intel]({folder}/README.md)"
    for stays in ("[Resume](resume.md#a-finished-run)", "[here](#there)", "![picture](pictures/search.svg)"):
        assert mended(stays, address) == stays


def test_the_sites_address_is_the_projects_one_setting(monkeypatch):
    for address, shown in (("", None), ("https://example.org/someone/project", "https://example.org/someone/project")):
        monkeypatch.setattr(hooks, "repository", lambda address=address: address)
        config = hooks.on_config(SimpleNamespace(repo_url=None, edit_uri=None, mdx_configs={}))
        assert config.repo_url == shown
        assert config.mdx_configs["toc"]["slugify"]("What `auto` means: a T4", "-") == "what-auto-means-a-t4"


def test_a_docstring_becomes_a_list_of_arguments_and_a_record_keeps_its_comments():
    page = api.members("muzero_jax/types.py Step QTransform")
    assert "# [] float32, signed; 0 where the rules ended the game" in page and "### QTransform" in page
    assert "# [] bool, the episode is over: by the rules" in page  # behind the last field
    shown = api.members("muzero_jax/play/trained_agent.py load")
    assert "**Args**" in shown and "- `num_simulations`: its usual search budget" in shown


def test_the_design_page_has_the_table_of_rooms_that_the_tests_hold():
    rows = re.findall(r"^\| `(\w+)/?` \|[^|]*\|([^|]*)\|$", read(ROOT / "docs/design.md"), flags=re.MULTILINE)
    assert {room: set(re.findall(r"\w+", knows)) for room, knows in rows} == KNOWS


def test_the_picture_of_the_rooms_is_that_of_the_imports():
    """If it is not: python -m scripts.documentation.rooms"""
    knows = rooms.read_imports()
    assert knows == KNOWS
    assert rooms.draw(knows) == rooms.PICTURE.read_text(encoding="utf-8")
    assert ("training", "learning") in rooms.arrows(knows) and ("training", "types") not in rooms.arrows(knows)


def test_the_script_says_what_it_can_do(tmp_path):
    result = subprocess.run([ROOT / "scripts/docs.sh", "publish"], capture_output=True, text=True)
    assert result.returncode == 2 and "scripts/docs.sh serve" in result.stderr
