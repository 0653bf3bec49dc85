"""Which Python files may run: those that the user named, trusts, or trained with as they are now."""

import numpy as np
import pytest

from muzero_jax.own import python_file, trust
from muzero_jax.own.trust import Trust
from muzero_jax.storage import agent_file
from muzero_jax.storage import config as configs
from muzero_jax.storage.config import Config
from muzero_jax.storage.config_groups import NetworkConfig


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "net.py"
    path.write_text("1")
    return path


def test_a_file_that_only_data_names_is_refused_with_what_to_do(file):
    with pytest.raises(ValueError, match=r"^x\.json would run the Python file .*net\.py, .*; read it, then add --tr"):
        trust.check([str(file)], "x.json", Trust())


def test_the_user_may_name_the_very_file_or_trust_all(file, tmp_path, monkeypatch):
    trust.check([str(file)], "x.json", Trust(all_code=True))
    monkeypatch.chdir(tmp_path)
    trust.check([str(file)], "x.json", Trust(named=frozenset({"./net.py"})))
    with pytest.raises(ValueError, match=r"net\.py"):
        trust.check([str(file)], "x.json", Trust(named=frozenset({str(tmp_path / "other.py")})))


def test_a_file_is_ones_own_once_trained_with_until_it_changes(file):
    assert trust.note([str(file)]) is None
    trust.check([str(file)], "x.json", Trust())
    file.write_text("2")
    with pytest.raises(ValueError, match=r"net\.py has changed since you trained with it, and x\.json would run it;"):
        trust.check([str(file)], "x.json", Trust())
    trust.check([str(file)], "x.json", Trust(all_code=True))
    file.write_text("1")
    trust.check([str(file)], "x.json", Trust())


def test_the_same_text_elsewhere_is_not_ones_own(file, tmp_path):
    """What lies beside it may differ: a file finds its neighbours by its own path."""
    trust.note([str(file)])
    (tmp_path / "copy.py").write_text(file.read_text())
    with pytest.raises(ValueError, match=r"copy\.py, with which you never trained"):
        trust.check([str(tmp_path / "copy.py")], "x.json", Trust())


def test_a_link_is_what_it_points_to(file, tmp_path):
    (tmp_path / "link.py").symlink_to(file)
    with pytest.raises(ValueError, match=r"net\.py, with which you never trained"):
        trust.check([str(tmp_path / "link.py")], "x.json", Trust())
    trust.note([str(tmp_path / "link.py")])
    trust.check([str(file)], "x.json", Trust())


def test_what_stands_for_a_record_given_in_python_is_no_way_around(tmp_path, monkeypatch):
    """Only an algorithm may be called so; as a network's file it is one that is no Python file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / configs.IN_PYTHON).write_text("raise SystemExit")
    config = Config(env="tic_tac_toe", network=NetworkConfig(file=configs.IN_PYTHON))
    assert config.own_files == (configs.IN_PYTHON,)
    with pytest.raises(ValueError, match="names in Python as code, but it is no Python file"):
        trust.check(config.own_files, "x.json", Trust(all_code=True))
    with pytest.raises(ValueError, match="is no Python file"):
        python_file.load_function(configs.IN_PYTHON, "make_model")


def test_what_is_no_python_file_never_runs(tmp_path):
    (tmp_path / "card.md").write_text("# import os")
    with pytest.raises(ValueError, match=r"names .*card\.md as code, but it is no Python file \(\.py\)"):
        trust.check([str(tmp_path / "card.md")], "x.json", Trust(all_code=True))


def test_a_missing_file_is_left_to_whoever_loads_it(tmp_path):
    trust.check([str(tmp_path / "gone.py")], "x.json", Trust())


def test_where_nothing_can_be_noted_a_sentence_says_so(file, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(file))
    assert "cannot be noted as yours (Not a directory); commands that load this run" in (trust.note([str(file)]) or "")


def test_a_config_is_loaded_only_with_code_that_may_run(file, tmp_path):
    config = Config(env=str(file), network=NetworkConfig(file=str(file)))
    assert config.own_files == (str(file), str(file)) and Config().own_files == ()
    configs.save(config, tmp_path)
    assert configs.inspect(tmp_path) == config
    with pytest.raises(ValueError, match=r"config\.json would run the Python file"):
        configs.load(tmp_path)
    assert configs.load(tmp_path, Trust(all_code=True)) == config


@pytest.mark.parametrize("name", ["strong.py", "strong.md"])
def test_an_agent_is_read_only_with_code_that_may_run(name, tmp_path):
    """The second is the agent's own card, whose headings are Python comments."""
    agent, config = tmp_path / "strong.safetensors", Config(env="tic_tac_toe", network=NetworkConfig(file=name))
    agent_file.save(agent, config, {"w": np.zeros(1, np.float32)}, iteration=1)
    (tmp_path / name).write_text("# Strong\n")
    with pytest.raises(ValueError, match=rf"^{agent} (would run|names) .*{name}"):
        agent_file.read(agent)
