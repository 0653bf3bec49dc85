"""The documentation builds without a warning, reads without a network, and says what the code says."""

import ast
import html
import os
import re
import shutil
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest

import muzero_jax
from muzero_jax import algorithm as algorithms
from muzero_jax import presets
from muzero_jax.apps.commands.train_flags import Command, all_flags
from muzero_jax.games.catalogue import GAMES
from muzero_jax.run.session import Session
from muzero_jax.storage.validation import validate
from scripts.documentation import api, fill, hooks, reference, tables
from tests.reference.pages import PAGES, ROOT, read

OTHERS = {"--xla_disable_hlo_passes", "--xla_backend_optimization_level", "--logdir", "--no-FLAG", "--GROUP.no-FLAG"}
OTHERS |= {"--xla_gpu_enable_command_buffer", "--xla_gpu_graph_min_graph_size"}
"""Flags of other programs, and examples."""
PINNED_TYRO = re.search(r"^tyro==([\d.]+)", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)[1]


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
    assert not any("<!-- " in text_of(page) for page in site.rglob("*.html"))
    config, commands, interface = (text_of(site / f"{name}.html") for name in ("config", "commands", "api"))
    flags = all_flags(Command(presets.tic_tac_toe(), Session()))
    of_session = {f"--{name.replace('_', '-')}" for name in Session.__dataclass_fields__}
    assert [f.name for f in flags if f.name not in (commands if f.name in of_session else config)] == []
    assert "must lie between 0 and 2^32 - 1" in config and "--search.value-scale 0.4" in config
    for shown in ("--opponent STR", "--anchor", "--time-per-move", "--compare COMPARE", "--board-size INT"):
        assert shown in commands
    assert "run: str | Path," in interface
    assert "reward: Array" in interface and "0 if `action` ended the game" in interface


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="other Pythons lay help out otherwise")
@pytest.mark.skipif(version("tyro") != PINNED_TYRO, reason="other tyros lay help out otherwise")
def test_made_text_is_that_of_the_code_and_of_the_result_files(monkeypatch, capsys):
    """If it is not: python -m scripts.documentation.fill"""
    monkeypatch.setenv("COLUMNS", reference.COLUMNS)
    monkeypatch.chdir(ROOT)
    assert fill.main(["--check"]) == 0, capsys.readouterr().err


def test_made_text_stands_between_its_comments_and_is_made_anew_each_time(monkeypatch):
    monkeypatch.setitem(fill.MADE, "help", lambda words: f"flags of {words}\n")
    page = "Before\n\n<!-- made: help x.py --help -->\n\nold\n\n<!-- end -->\nafter\n"
    filled = fill.filled(page)
    assert filled == page.replace("old", "flags of x.py --help")
    assert fill.filled(filled) == filled == fill.filled(page.replace("\n\nold\n", ""))
    assert hooks._MARKS.sub("", filled) == "Before\n\n\nflags of x.py --help\n\nafter\n"


def test_every_page_that_asks_for_made_text_is_filled():
    asking = {
        str(page.relative_to(ROOT)) for page in PAGES if re.search(r"^<!-- made: ", page.read_text("utf-8"), re.M)
    }
    assert asking == set(fill.PAGES)


def test_the_citation_names_the_version_of_the_package():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {muzero_jax.__version__}\n" in citation and "license: Apache-2.0\n" in citation


def test_the_page_of_games_has_every_game_and_what_is_refused():
    page = (ROOT / "docs/algorithms.md").read_text(encoding="utf-8")
    assert [game for game in GAMES if f"(`{game}`)" not in page] == []
    assert tables.of_game(GAMES["tic_tac_toe"])[3:] == ("accepted", "refused", "known")
    assert tables.of_game(GAMES["hex"])[3:] == ("accepted", "accepted", "up to 5x5")


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
        config = tables.preset(GAMES[game])
        for path, value in fields.items():
            group, _, field = path.rpartition(".")
            changed = replace(getattr(config, group), **{field: value}) if group else value
            config = replace(config, **{group or field: changed})
        is_refused = game == "backgammon" and member in ("tower", "attention")
        with pytest.raises(ValueError, match="needs a board, which") if is_refused else nullcontext():
            algorithms.make(validate(config))


def test_a_long_signature_has_a_line_for_each_argument():
    arguments = ["a: int", "b: str = 'x'", "*rest: int", "long_name: float = 1.0", "**others: dict[str, int]"]
    node = ast.parse(f"def with_many({', '.join(arguments)}) -> tuple[int, str]: pass").body[0]
    lines = [f"    {argument}," for argument in arguments]
    assert api.signature(node) == api.python("with_many(", *lines, ") -> tuple[int, str]")


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
    assert mended("[building/](../muzero_jax/building)", "") == "`muzero_jax/building`"
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
    assert 'href="../your-own-network.html"' in page and "check_model(" in text_of(site / f"notebooks/{path.stem}.html")


def test_the_sites_address_is_the_projects_one_setting(monkeypatch):
    for address, shown in (("", None), ("https://example.org/someone/project", "https://example.org/someone/project")):
        monkeypatch.setattr(hooks, "repository", lambda address=address: address)
        config = hooks.on_config(SimpleNamespace(repo_url=None, edit_uri=None, mdx_configs={}))
        assert config.repo_url == shown
        assert config.mdx_configs["toc"]["slugify"]("What `auto` means: a T4", "-") == "what-auto-means-a-t4"


def test_a_help_text_keeps_the_value_or_the_symbol_that_it_begins_with():
    assert reference.sentence("loop_free: the same trees", "{own,loop_free}") == "loop_free: the same trees."
    assert reference.sentence("alpha: windows", "FLOAT") == "alpha: windows."
    assert reference.sentence("budget: see docs/resume.md", "INT") == "Budget: see [resume.md](resume.md)."


def test_a_docstring_becomes_a_list_of_arguments_and_a_record_keeps_its_comments():
    page = api.members("muzero_jax/types.py Step QTransform")
    assert "# [] float32, signed; 0 where the rules ended the game" in page and "### QTransform" in page
    assert "# [] bool, the episode is over: by the rules" in page  # behind the last field
    shown = api.members("muzero_jax/apps/play/trained_agent.py load")
    assert "**Args**" in shown and "- `num_simulations`: its usual search budget" in shown
    checked = api.members("muzero_jax/apps/check/environment.py check_environment")
    assert "\n- `num_games`: random games to play.\n- `max_moves`: moves" in checked
    assert "__call__(" in api.members("muzero_jax/learning/algorithm.py Update")
