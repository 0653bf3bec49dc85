"""Every way by which a run or an agent from a stranger comes in: its Python files leave no mark until trusted."""

import shutil
from dataclasses import replace

import pytest

import muzero_jax
from muzero_jax.apps.commands import evaluate, play, train
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.config import config_file
from muzero_jax.config.groups import NetworkConfig
from muzero_jax.storage import agent_file
from scripts import export_agent, export_onnx
from tests.reference import tiny_run


def load(words):
    """`muzero_jax.load`, as a command."""
    muzero_jax.load(words[0], trust_code="--trust-code" in words)


NEW = "--env tic_tac_toe --network.width 16 --frames 1 --run-dir DIR/new"
LOADERS = {
    "match": (evaluate.main, "match --run WHAT"),
    "opponent": (evaluate.main, "match --run OWN --opponent WHAT"),
    "tournament": (evaluate.main, "tournament WHAT random"),
    "play": (play.main, "--run WHAT --tree DIR/tree.svg"),
    "load": (load, "WHAT"),
    "export": (export_agent.main, "WHAT --out DIR/out.safetensors"),
    "onnx": (export_onnx.main, "WHAT --out DIR/onnx"),
    "init-from": (train.main, f"{NEW} --init-from WHAT"),
    "seeds": (train.main, f"{NEW} --seeds 2 --overwrite --init-from WHAT"),
    "resume": (train.main, "--resume --run-dir WHAT"),
    "offline": (train.main, "--offline WHAT --run-dir DIR/new"),
    "config": (train.main, "--config WHAT/config.json --run-dir DIR/new"),
}
"""Commands that load the agent, the games or the settings of a run."""
OF_AN_AGENT = "match", "play", "load", "init-from"
"""Those that load an agent from a file as well."""
MADE_BY_A_STRANGER = "network", "game"


@pytest.fixture
def mark(tmp_path):
    """What exists once a stranger's file has run."""
    return tmp_path / "mark"


@pytest.fixture
def code(tmp_path, mark):
    """A stranger's Python file, which is neither a game nor a network."""
    file = tmp_path / "strong.py"
    file.write_text(f"open({str(mark)!r}, 'w').close()\n")
    return file


@pytest.fixture(params=MADE_BY_A_STRANGER)
def config(request, code):
    """The config of a run with a game or a network in the stranger's file."""
    if request.param == "game":
        return replace(tiny_run.CONFIG, env=str(code))
    return replace(tiny_run.CONFIG, network=NetworkConfig(file=str(code)))


@pytest.fixture
def run(saved_run, tmp_path, config):
    """The stranger's run."""
    shutil.copytree(saved_run, tmp_path / "run")
    config_file.save(config, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def agent(tmp_path, config):
    """The stranger's agent, with the Python file beside it."""
    agent_file.save(tmp_path / "strong.safetensors", config, tiny_run.make_init()().learner.params, iteration=1)
    return tmp_path / "strong.safetensors"


def refusal(main, text, capsys, **places):
    """The error message of a command that refuses; words of `text` stand for places."""
    for word, place in places.items():
        text = text.replace(word, str(place))
    assert report_errors(main, text.split()) == EXIT_ERROR
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("error: "), error
    return error


@pytest.mark.parametrize("way", LOADERS)
def test_no_command_runs_the_code_of_a_strangers_run(way, run, config, saved_run, code, mark, tmp_path, capsys):
    if way == "offline" and config.network.file:
        pytest.skip("games alone are read, and the network is the new run's own")
    error = refusal(*LOADERS[way], capsys, WHAT=run, OWN=saved_run, DIR=tmp_path)
    assert f"would run the Python file {code}" in error and "read it, then add --trust-code" in error
    assert not mark.exists()
    assert not list((tmp_path / "new").glob("*/config.json")), "and no run begins"


@pytest.mark.parametrize(
    "way, source", [*((way, "agent") for way in OF_AN_AGENT), ("resume", "run"), ("config", "run")]
)
def test_code_is_run_once_it_is_trusted(way, source, run, agent, code, mark, tmp_path, capsys):
    main, text = LOADERS[way]
    places = {"WHAT": run if source == "run" else f"agent:{agent}", "DIR": tmp_path}
    assert f"would run the Python file {code}" in refusal(main, text, capsys, **places)
    assert not mark.exists()
    refusal(main, f"{text} --trust-code", capsys, **places)  # for what is in the file, once it has run
    assert mark.exists()
