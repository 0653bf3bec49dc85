"""The documentation builds without a warning, reads without a network, and has every flag that pages name."""

import html
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import muzero_jax
from muzero_jax import algorithm as algorithms
from muzero_jax import presets
from muzero_jax.apps.commands.parser import flags_of
from muzero_jax.games.catalogue import GAMES
from muzero_jax.run.session import Session
from muzero_jax.storage.validation import validate
from scripts.documentation import hooks
from tests.reference.pages import PAGES, ROOT, read

OTHERS = {"--xla_disable_hlo_passes", "--xla_backend_optimization_level", "--logdir", "--no-FLAG", "--GROUP.no-FLAG"}
OTHERS |= {"--xla_gpu_enable_command_buffer", "--xla_gpu_graph_min_graph_size"}
"""Flags of other programs, and examples."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site; a warning would fail the build."""
    folder = tmp_path_factory.mktemp("site")
    assert find_spec("mkdocs_gen_files") and find_spec("mkdocstrings"), "pip install -e '.[dev]' -c constraints.txt"
    command = [sys.executable, "-m", "mkdocs", "--quiet", "build", "--strict", "--site-dir", str(folder)]
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


def test_pages_of_reference_have_every_flag_and_the_interface_with_its_sources(site):
    config, commands, interface = (text_of(site / f"{name}.html") for name in ("config", "commands", "api"))
    flags = [*flags_of(presets.tic_tac_toe()), *flags_of(Session())]
    of_session = {f"--{name.replace('_', '-')}" for name in Session.__dataclass_fields__}
    assert [f.name for f in flags if f.name not in (commands if f.name in of_session else config)] == []
    assert "at least 0, below 4,294,967,296" in config and "4 (Hex 5x5" in config
    for shown in ("--opponent TEXT", "--anchor", "--time-per-move", "--compare COMPARE", "--target {t4"):
        assert shown in commands
    assert "0 if `action` ended the game" in interface, "a record's source, with its comments"
    assert 'id="muzero_jax.types.Step"' in (site / "api.html").read_text(encoding="utf-8")


def test_the_citation_names_the_version_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {muzero_jax.__version__}\n" in citation and "license: Apache-2.0\n" in citation


def test_the_page_of_games_has_every_game():
    page = (ROOT / "docs/algorithms.md").read_text(encoding="utf-8")
    assert [game for game in GAMES if f"(`{game}`)" not in page] == []


def test_the_glossary_names_code_that_exists():
    rows = re.findall(r"^\| (.*?) \|.*\| `([^`]*)` \|$", read(ROOT / "docs/glossary.md"), flags=re.MULTILINE)
    assert len(rows) > 60
    package = ROOT / "muzero_jax"
    for word, place in rows:
        path, _, name = place.partition(": ") if ".py" in place else ("types.py", "", place)
        assert (package / path).exists(), word
        record, _, field = name.partition(".")
        text = read(package / path)
        assert re.search(rf"^(?:class|def) {record}\b|^{record}\b", text, flags=re.MULTILINE), word
        assert re.search(rf"^    (?:def )?{field}\b", text, flags=re.MULTILINE), word


MEMBERS = {
    "AlphaZero": {"model": "rules"},
    "predicted legal moves": {"model": "learned_legality"},
    "predicted discounts": {"network.predict_discount": True},
    "PUCT": {"search.policy": "puct"},
    "Reanalyze": {"replay.reanalyze_fraction": 0.5},
    "prioritised replay": {"replay.priority_exponent": 0.6},
    "consistency loss": {"optimiser.consistency_weight": 2.0},
    "playout cap": {"self_play.full_search_share": 0.25},
    "offline": {"offline": "runs/x"},
    **{kind: {"network.kind": kind} for kind in ("mlp", "tower", "attention")},
}
"""What docs/algorithms.md calls accepted for every game, but for two networks of backgammon."""


@pytest.mark.slow
@pytest.mark.parametrize("game", GAMES)
def test_what_the_page_of_games_calls_accepted_can_be_built(game):
    for member, fields in MEMBERS.items():
        config = presets.preset(game, 5 if GAMES[game].sizes else None)
        for path, value in fields.items():
            group, _, field = path.rpartition(".")
            changed = replace(getattr(config, group), **{field: value}) if group else value
            config = replace(config, **{group or field: changed})
        is_refused = game == "backgammon" and member in ("tower", "attention")
        with pytest.raises(ValueError, match="needs a board, which") if is_refused else nullcontext():
            algorithms.make(validate(config))


def test_every_flag_that_a_page_names_exists(site):
    known = set(re.findall(r"--[\w.-]+\w", text_of(site / "commands.html") + text_of(site / "config.html"))) | OTHERS
    known |= {f"--no-{name[2:]}" for name in known} | {re.sub(r"\.(?=[\w-]+$)", ".no-", name) for name in known}
    pages = [page for page in PAGES if page.parent == ROOT / "docs" and page.stem not in ("lab-notebook", "commands")]
    texts = {
        p.name: re.sub(r"\b(?:gtp|uci|usi):[^\"`\n]*", "", read(p)) for p in pages
    }  # other programs' flags are theirs
    found = {(page, flag) for page, text in texts.items() for flag in re.findall(r"(?<![\w-])--[a-z][\w.-]*\w", text)}
    assert {(name, flag) for name, flag in found if flag not in known} == set()


def test_a_link_to_code_is_a_name_until_the_project_has_an_address():
    def mended(markdown, address):
        return hooks._LINK.sub(lambda link: hooks.leave(link, ROOT / "docs", address), markdown)

    link, other = "[how](../CONTRIBUTING.md#add-a-game)", "[training.py](../muzero_jax/training.py)"
    assert mended(link, "") == "how (`CONTRIBUTING.md`)" and mended(other, "") == "`muzero_jax/training.py`"
    assert mended("[algorithm/](../muzero_jax/algorithm)", "") == "`muzero_jax/algorithm`"
    address = "https://example.org/someone/project"
    assert mended(link, address) == f"[how]({address}/blob/HEAD/CONTRIBUTING.md#add-a-game)"
    assert mended("[own game](../notebooks/06_your_own_game.ipynb)", "") == "[own game](notebooks/06_your_own_game.md)"
    folder = "results/hardware-two-intel-cores"
    assert mended(f"[Intel]({folder})", "") == f"[Intel]({folder}/README.md)"
    for stays in ("[Resume](resume.md#a-finished-run)", "[here](#there)", "![picture](pictures/search.svg)"):
        assert mended(stays, address) == stays


def test_the_site_shows_every_notebook_with_its_pictures_and_its_links(site):
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        page = (site / "notebooks" / f"{path.stem}.html").read_text(encoding="utf-8")
        assert page.count('src="data:image/') == read(path).count('"image/'), path.stem
    assert 'href="../your-own-network.html"' in page and "muzero_jax.check(" in text_of(
        site / f"notebooks/{path.stem}.html"
    )


def test_the_sites_address_is_the_projects_one_setting(monkeypatch):
    for address, shown in (("", None), ("https://example.org/someone/project", "https://example.org/someone/project")):
        monkeypatch.setattr(hooks, "repository", lambda address=address: address)
        assert hooks.on_config(SimpleNamespace(repo_url=None, edit_uri=None)).repo_url == shown
