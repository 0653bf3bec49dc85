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


def refused(path, trusted=Trust()):  # noqa: B008
    with pytest.raises(ValueError, match=r"x\.json") as error:
        trust.check([str(path)], "x.json", trusted)
    return str(error.value)


def test_a_file_runs_if_the_user_names_that_very_file_or_trusts_all(file, tmp_path, monkeypatch):
    assert "net.py" in refused(file) and "--trust-code" in refused(file)
    trust.check([str(file)], "x.json", Trust(all_code=True))
    monkeypatch.chdir(tmp_path)
    trust.check([str(file)], "x.json", Trust(named=frozenset({"./net.py"})))
    refused(file, Trust(named=frozenset({str(tmp_path / "other.py")})))
    trust.check([str(tmp_path / "gone.py")], "x.json", Trust())  # loading it is what fails


def test_a_file_is_trusted_once_trained_with_until_it_changes(file, tmp_path):
    (tmp_path / "copy.py").write_text(file.read_text())
    (tmp_path / "link.py").symlink_to(file)
    refused(tmp_path / "link.py")
    assert trust.note([str(tmp_path / "link.py")]) is None, "a link is what it points to"
    trust.check([str(file)], "x.json", Trust())
    refused(tmp_path / "copy.py")  # what lies beside it may differ
    file.write_text("2")
    assert "has changed since you trained with it" in refused(file)
    file.write_text("1")
    trust.check([str(file)], "x.json", Trust())


def test_the_placeholder_for_an_algorithm_given_in_python_does_not_bypass_trust(tmp_path, monkeypatch):
    """Only an algorithm may have this name; as a network's file it is refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / configs.IN_PYTHON).write_text("raise SystemExit")
    config = Config(env="tic_tac_toe", network=NetworkConfig(file=configs.IN_PYTHON))
    assert config.own_files == {"network.file": configs.IN_PYTHON}
    refused(configs.IN_PYTHON, Trust(all_code=True))
    with pytest.raises(ValueError, match="is no Python file"):
        python_file.load_function(configs.IN_PYTHON, "make_model")


def test_an_agents_card_is_not_run_although_its_headings_are_python_comments(tmp_path):
    config = Config(env="tic_tac_toe", network=NetworkConfig(file="strong.md"))
    agent_file.save(tmp_path / "strong.safetensors", config, {"w": np.zeros(1, np.float32)}, iteration=1)
    (tmp_path / "strong.md").write_text("# Strong\n")
    with pytest.raises(ValueError, match=r"strong\.md"):
        agent_file.read(tmp_path / "strong.safetensors")
