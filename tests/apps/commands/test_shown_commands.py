"""What pages show can be typed: every command's flags are read by the real command line, and nothing is run."""

import ast
import functools
import importlib
import re
import shlex
import tomllib

import pytest

from muzero_jax import presets
from muzero_jax.apps.commands import evaluate_flags, parser, play, tune
from muzero_jax.games import catalogue
from muzero_jax.run.session import Session
from muzero_jax.storage.config import Config
from scripts import benchmark, export_agent, export_onnx, hardware_report, preview, reproduce
from tests.reference import pages

by_page = pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.name)
by_guide = pytest.mark.parametrize("page", pages.GUIDES, ids=lambda page: page.name)
KNOWN_LINES = (  # what else a block of shell may hold
    r"(python3|\S*python3?) (-m venv|experiments/|scripts/)",
    r"\S*pip install -e \S+( -c constraints\.txt)?$",
    r"onnx/bin/pip install jax2onnx==[\d.]+$",
    r"for \w+ in .*; do$",
    r"done$",
    r"export XLA_FLAGS=",
    r"tensorboard --logdir \S+$",
    r"scripts/\w+\.sh( serve)?$",
    r"scripts/launch/local\.sh \d+ --env \w+ --minutes \d+ --run-dir \S+$",
    r"\.venv/bin/pytest -n 2",  # README's own, which .ci/run runs
    r"(MUZERO_FUZZ_(EXAMPLES|SEED)=\d+ )*\.venv/bin/pytest -m slow -s tests/[\w/.]+( -k \w+)?$",
)


def read_train(words, *others):
    given = parser.split(words, Config, Session, *others)
    for record in others:
        parser.convert(record, {name: given.pop(name) for name in record.__dataclass_fields__ if name in given})
    config, _ = parser.override(presets.tic_tac_toe(), given), parser.convert(Session, given)
    if config.env not in catalogue.GAMES and not (pages.ROOT / config.env).exists():
        raise ValueError(f"there is no game {config.env}")


READERS = {
    "experiments/train.py": read_train,
    "experiments/evaluate.py": lambda words: evaluate_flags.parse(words, ""),
    "experiments/play.py": lambda words: play.check(parser.read(play.Arguments, words)),
    "experiments/tune.py": lambda words: read_train(words, tune.Arguments),
    "scripts/benchmark.py": benchmark.read_arguments,
    "scripts/hardware_report.py": lambda words: parser.read(hardware_report.Arguments, words),
    "scripts/preview.py": preview.read_arguments,
    "scripts/export_agent.py": lambda words: parser.read(export_agent.Arguments, words),
    "scripts/export_onnx.py": lambda words: parser.read(export_onnx.Arguments, words),
    "scripts/reproduce.py": lambda words: parser.read(reproduce.Arguments, words),
}


@functools.cache
def complaint(command):
    """What is wrong with a command, or None; a variable of the shell stands for 1, and `...` for nothing."""
    script, *words = shlex.split(re.sub(r"\$\w+", "1", command).replace(" ...", ""))
    if set(words) & {"--help", "-h"}:
        return None
    try:
        READERS[script](words)
    except (ValueError, SystemExit, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    return None


@by_guide
def test_every_command_that_a_page_shows_has_flags_that_exist(page, capfd):
    found = {f"{page.name}:{line}: {command}": complaint(command) for line, command in pages.commands(page)}
    assert {where: problem for where, problem in found.items() if problem} == {}, capfd.readouterr().err


@by_page
def test_a_block_of_shell_holds_nothing_that_no_test_reads(page):
    lines = [
        (number + offset, line.split("#")[0].strip())
        for number, block in pages.blocks(page, "bash")
        for offset, line in enumerate(block.splitlines())
    ]
    parts = [(number, part.strip()) for number, line in lines for part in line.split("&&") if part.strip()]
    assert [part for part in parts if not any(re.match(known, part[1]) for known in KNOWN_LINES)] == []


@by_guide
def test_a_page_names_only_scripts_and_extras_that_exist(page):
    text = pages.read(page)
    scripts = {name for name in re.findall(r"(?<![\w/])((?:scripts|experiments)/[\w/]+\.(?:py|sh))", text)}
    assert {name for name in scripts if not (pages.ROOT / name).exists()} == set()
    extras = tomllib.loads((pages.ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(re.findall(r"\.\[(\w+)\]", text)) <= set(extras)


@by_page
def test_every_import_in_a_block_of_python_works(page):
    for line, block in pages.blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("muzero_jax"):
                module = importlib.import_module(str(node.module))
                for name in node.names:
                    found = hasattr(module, name.name) or importlib.util.find_spec(f"{node.module}.{name.name}")
                    assert found, f"{page.name}:{line}: {node.module} has no {name.name}"


@pytest.mark.parametrize(
    "command",
    [
        "experiments/train.py --env hexx",
        "experiments/train.py --env hex --search.simulations 4",
        "experiments/evaluate.py match --opponent random",
        "experiments/play.py --run runs/x --web --engine",
        "scripts/benchmark.py --suite everything",
    ],
)
def test_a_wrong_command_is_noticed(command, capfd):
    assert complaint(command)


def test_commands_are_found_in_blocks_sentences_and_over_two_lines(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "Say `python experiments/play.py --run runs/x`.\n\n```bash\nfor n in 1 2; do\n"
        "  .venv/bin/python experiments/train.py --seed $n \\\n    --env hex  # why\ndone\n```\n`scripts/some.py`\n"
    )
    assert [(line, shlex.split(command)) for line, command in pages.commands(page)] == [
        (1, ["experiments/play.py", "--run", "runs/x"]),
        (5, ["experiments/train.py", "--seed", "$n", "--env", "hex"]),
    ]
    assert pages.ROOT / "README.md" in pages.PAGES and len(pages.PAGES) > 30
