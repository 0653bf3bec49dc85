"""An agent in a file: whole or refused in one sentence, and those that come with the package can be played."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
import safetensors
import safetensors.numpy

from muzero_jax import agent as agents
from muzero_jax.storage import agent_file
from muzero_jax.storage import config as configs
from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import NetworkConfig

PARAMS = {"a": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": np.zeros(3, np.float32)}}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.safetensors"
    agent_file.save(path, Config(env="tic_tac_toe"), PARAMS, iteration=7, card="mine.md")
    return path


def rewrite(file, **changes):
    """Writes the file anew with other metadata (None: without it), and with the checksum that such metadata has."""
    with safetensors.safe_open(file, framework="numpy") as opened:
        metadata = {name: text for name, text in (opened.metadata() | changes).items() if text is not None}
    arrays = safetensors.numpy.load_file(file)
    metadata["sha256"] = agent_file._checksum(metadata, arrays)
    safetensors.numpy.save_file(arrays, file, metadata)


def test_what_is_read_is_what_was_saved(file):
    stored = agent_file.read(file)
    assert (stored.config, stored.iteration) == (Config(env="tic_tac_toe"), 7)
    abstract = jax.eval_shape(lambda: jax.tree.map(jax.numpy.asarray, PARAMS))
    read = stored.params(abstract)
    assert jax.tree.structure(read) == jax.tree.structure(PARAMS)
    jax.tree.map(np.testing.assert_array_equal, read, PARAMS)


def test_other_programs_can_read_it(file):
    """By the safetensors library alone: names, weights, config as JSON, format version, card."""
    with safetensors.safe_open(file, framework="numpy") as opened:
        metadata = opened.metadata()
        np.testing.assert_array_equal(opened.get_tensor("['a']['kernel']"), PARAMS["a"]["kernel"])
    assert (metadata["format"], metadata["format_version"]) == ("muzero_jax agent", "1")
    assert (metadata["name"], metadata["card"], metadata["iteration"]) == ("mine", "mine.md", "7")
    assert json.loads(metadata["config"])["env"] == "tic_tac_toe"


@pytest.mark.parametrize("place", [4, 400, -3], ids=["length", "header", "weights"])
def test_a_damaged_file_is_refused(file, place):
    content = bytearray(file.read_bytes())
    content[place] ^= 255
    file.write_bytes(content)
    with pytest.raises(ValueError, match="mine.safetensors is damaged") as raised:
        agent_file.read(file)
    assert "\n" not in str(raised.value)


def test_half_a_file_and_no_agent_at_all_are_refused(file):
    file.write_bytes(file.read_bytes()[:-5])
    with pytest.raises(ValueError, match="is damaged, or no safetensors file"):
        agent_file.read(file)
    safetensors.numpy.save_file(PARAMS["a"], file)
    with pytest.raises(ValueError, match="holds no agent of muzero_jax; scripts/export_agent.py makes one"):
        agent_file.read(file)


@pytest.mark.parametrize("changes", [{"config": None}, {"iteration": None}, {"iteration": "six"}])
def test_an_agent_without_config_or_iteration_is_refused(file, changes):
    rewrite(file, **changes)
    with pytest.raises(ValueError, match="mine.safetensors lacks its config or its iteration; fetch it again"):
        agent_file.read(file)


def test_weights_that_are_not_finite_are_refused(tmp_path):
    path = tmp_path / "diverged.safetensors"
    agent_file.save(path, Config(env="tic_tac_toe"), {"w": np.array([1.0, np.nan], np.float32)}, iteration=7)
    with pytest.raises(ValueError, match="weights that are not finite"):
        agent_file.read(path)


def test_a_newer_format_is_refused(file):
    rewrite(file, format_version="2")
    with pytest.raises(ValueError, match="has format 2, but this muzero_jax reads format 1; update it"):
        agent_file.read(file)


def test_a_config_that_this_version_does_not_know_is_refused(file):
    rewrite(file, config='{"env": "tic_tac_toe", "dreams": 3}')
    with pytest.raises(ValueError, match="cannot be loaded: it has a field 'dreams' .*; update muzero_jax"):
        agent_file.read(file)


@pytest.mark.parametrize(
    "other",
    [
        {"a": {"kernel": np.zeros((2, 4), np.float32), "bias": np.zeros(3, np.float32)}},
        {"a": {"kernel": np.zeros((2, 3), np.float32)}},
        PARAMS | {"b": np.zeros(1, np.float32)},
    ],
    ids=["shape", "too many", "missing"],
)
def test_weights_of_another_network_are_refused(file, other):
    with pytest.raises(ValueError, match=r"another than this version of muzero_jax builds \(in \['"):
        agent_file.read(file).params(other)


def test_files_of_the_users_own_are_looked_for_beside_the_agent(tmp_path):
    """Folders of the machine where it was trained mean nothing elsewhere, and are nobody's business."""
    network, others = NetworkConfig(file="/home/me/net.py"), {"offline": "/home/me/games", "init_from": "/home/me/run"}
    config = Config(env="/home/me/nim.py", network=network, **others)
    agent_file.save(tmp_path / "x.safetensors", config, PARAMS, iteration=1)
    assert b"/home/me" not in (tmp_path / "x.safetensors").read_bytes()
    (tmp_path / "x.safetensors").rename(tmp_path / "y.safetensors")
    found = agent_file.read(tmp_path / "y.safetensors").config
    assert (found.env, found.network.file) == (str(tmp_path / "nim.py"), str(tmp_path / "net.py"))
    assert replace(found, env="", network=NetworkConfig()) == Config(env="")


def test_names_mean_files(tmp_path):
    assert agent_file.find("agent:hex_5x5") == agent_file.SHIPPED / "hex_5x5.safetensors"
    assert agent_file.find(f"agent:{tmp_path}/x.safetensors") == tmp_path / "x.safetensors"
    assert agent_file.find(f"{tmp_path}/x.safetensors") == tmp_path / "x.safetensors"
    assert agent_file.find("runs/hex") is None


# --- the agents that come with the package ----------------------------------------------------------------------------


def test_three_games_can_be_played_at_once():
    assert {"tic_tac_toe", "connect_four", "hex_5x5"} <= set(agent_file.shipped())


@pytest.mark.parametrize("name", agent_file.shipped())
def test_a_shipped_agent_is_small_has_a_card_and_can_be_loaded(name):
    """That its config and network are those of this version: a change that breaks them needs a new export."""
    agent = agents.load_agent(Path(agent_file.PREFIX + name))
    file = agent_file.SHIPPED / f"{name}.safetensors"
    assert file.stat().st_size <= 5_000_000 and agent.iteration > 0
    assert configs.from_json(configs.to_json(agent.config)) == agent.config
    card = file.with_suffix(".md").read_text()
    measures = {"2048": "| mean return |", "backgammon": "| pip-count |", "go_9x9": "| mcts:100 |"}
    strength = measures.get(name, "| mcts:1000 |")
    for part in (f"--agent {name} --web", "experiments/train.py --env", strength, "commit", "Apache-2.0"):
        assert part in card
