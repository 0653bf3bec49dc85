"""An agent in a file: whole or refused in one sentence, and those that come with the package can be played."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from muzero_jax.agent import load_agent
from muzero_jax.config import config_file
from muzero_jax.config.config import AGENT_PREFIX, Config
from muzero_jax.config.groups import NetworkConfig
from muzero_jax.storage import agent_file

PARAMS = {"a": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": np.zeros(3, np.float32)}}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.safetensors"
    agent_file.save(path, Config(env="tic_tac_toe"), PARAMS, iteration=7, card="mine.md")
    return path


def test_an_agent_is_read_as_it_was_saved_also_by_other_programs(file):
    """Those have only the safetensors library: names, weights, config as JSON, format version, card."""
    stored = agent_file.read(file)
    assert (stored.config, stored.iteration) == (Config(env="tic_tac_toe"), 7)
    abstract = jax.eval_shape(lambda: jax.tree.map(jax.numpy.asarray, PARAMS))
    read = stored.params(abstract)
    assert jax.tree.structure(read) == jax.tree.structure(PARAMS)
    jax.tree.map(np.testing.assert_array_equal, read, PARAMS)

    with safetensors.safe_open(file, framework="numpy") as opened:
        metadata = opened.metadata()
        np.testing.assert_array_equal(opened.get_tensor("['a']['kernel']"), PARAMS["a"]["kernel"])
    assert (metadata["format"], metadata["format_version"]) == ("muzero_jax agent", "1")
    assert (metadata["name"], metadata["card"], metadata["iteration"]) == ("mine", "mine.md", "7")
    assert json.loads(metadata["config"])["env"] == "tic_tac_toe"


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"format": None}, "holds no agent"),
        ({"format_version": "2"}, "holds no agent of this version"),
    ],
)
def test_a_file_that_holds_no_agent_is_refused(file, changes, problem):
    with safetensors.safe_open(file, framework="numpy") as opened:
        metadata = {name: text for name, text in (opened.metadata() | changes).items() if text is not None}
    safetensors.numpy.save_file(safetensors.numpy.load_file(file), file, metadata)
    with pytest.raises(ValueError, match=f"mine.safetensors {problem}"):
        agent_file.read(file)


def test_weights_of_another_network_are_refused(file):
    kernel, bias = np.zeros((2, 3), np.float32), np.zeros(3, np.float32)
    for other in ({"a": {"kernel": kernel.T, "bias": bias}}, {"a": {"kernel": kernel}}, PARAMS | {"b": bias}):
        with pytest.raises(ValueError, match=r"mine\.safetensors differs .*\['"):
            agent_file.read(file).params(other)


def test_the_users_own_files_are_looked_for_beside_the_agent(tmp_path):
    """Folders of the machine where it was trained mean nothing elsewhere, and are private."""
    network, others = NetworkConfig(file="/home/me/net.py"), {"offline": "/home/me/games", "init_from": "/home/me/run"}
    config = Config(env="/home/me/nim.py", network=network, **others)
    agent_file.save(tmp_path / "x.safetensors", config, PARAMS, iteration=1)
    assert b"/home/me" not in (tmp_path / "x.safetensors").read_bytes()
    (tmp_path / "x.safetensors").rename(tmp_path / "y.safetensors")
    found = agent_file.read(tmp_path / "y.safetensors").config
    assert (found.env, found.network.file) == (str(tmp_path / "nim.py"), str(tmp_path / "net.py"))
    assert replace(found, env="", network=NetworkConfig()) == Config(env="")


def test_names_of_agents_are_resolved_to_files(tmp_path):
    assert agent_file.find("agent:hex_5x5") == agent_file.SHIPPED / "hex_5x5.safetensors"
    assert agent_file.find(f"agent:{tmp_path}/x.safetensors") == tmp_path / "x.safetensors"
    assert agent_file.find(f"{tmp_path}/x.safetensors") == tmp_path / "x.safetensors"
    assert agent_file.find("runs/hex") is None


# --- the agents that come with the package ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", agent_file.shipped())
def test_a_shipped_agent_is_small_has_a_card_and_can_be_loaded(name):
    """Its config and network are those of this version: a change that breaks them needs a new export."""
    agent = load_agent(Path(AGENT_PREFIX + name))
    file = agent_file.SHIPPED / f"{name}.safetensors"
    assert file.stat().st_size <= 5_000_000 and agent.iteration > 0
    assert config_file.from_json(config_file.to_json(agent.config)) == agent.config
    assert f"--agent {name} --web" in file.with_suffix(".md").read_text()
