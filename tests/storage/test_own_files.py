"""A user's Python file: called as it is, its mistakes in one sentence, and run only if it was named or is trusted."""

import numpy as np
import pytest

from muzero_jax.config.config import IN_PYTHON, Config
from muzero_jax.config.groups import NetworkConfig
from muzero_jax.own import python_file, trust
from muzero_jax.own.trust import Trust
from muzero_jax.storage import agent_file


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "mine.py").write_text(text)
        return tmp_path / "mine.py"

    return write


def test_the_function_gets_its_arguments_and_may_use_what_the_file_defines_and_imports(written):
    file = written(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport muzero_jax.types\n"
        "@dataclass\nclass Net:\n    width: int\n"
        "def make(game, *, width=3): return game, Net(width).width, muzero_jax.types.Model.__name__\n"
    )
    make = python_file.load_function(file, "make")
    assert make("hex") == ("hex", 3, "Model") and make("hex", width=5)[1] == 5
    with pytest.raises(ValueError, match="unexpected keyword argument 'depth'"):
        make("hex", depth=2)


def test_a_file_is_read_again_each_time_and_its_name_hides_no_module(written):
    assert python_file.load_function(written("def f(): return 1"), "f")() == 1
    (file := written("def f(): return 22")).rename(json := file.parent / "json.py")
    assert python_file.load_function(json, "f")() == 22
    import json as standard

    assert standard.loads("[1]") == [1]


@pytest.mark.parametrize(
    "text, sentence",
    [
        (None, r"^cannot read FILE \(No such file or directory\); put your Python file there"),
        ("x = 1\ndef f(:\n", r"^importing FILE raised SyntaxError: invalid syntax \(FILE:2\)"),
        ("raise SystemExit('bye')\n", r"^importing FILE raised SystemExit: bye \(FILE:1\)"),
        ("import json\ndef g():\n    json.loads('[')\ndef f():\n    g()\n", r"^f of FILE raised JSON.* \(FILE:3\)"),
    ],
)
def test_a_mistake_is_one_sentence_with_the_innermost_line_of_the_file(written, tmp_path, text, sentence):
    file = tmp_path / "mine.py" if text is None else written(text)
    with pytest.raises(ValueError, match=sentence.replace("FILE", str(file))) as error:
        python_file.load_function(file, "f")()
    assert "\n" not in str(error.value)


def test_options_are_read_as_literals_or_else_as_text():
    texts = "width=8 rate=1e-3 deep=True sizes=(1,2) name=gelu empty= equation=a=b none=None set={[]}".split()
    assert python_file.read_options(texts) == {
        "width": 8, "rate": 1e-3, "deep": True, "sizes": (1, 2), "name": "gelu", "empty": "", "equation": "a=b",
        "none": None, "set": "{[]}",  # a list in a set is no value, though its grammar is right
    }  # fmt: skip
    with pytest.raises(ValueError, match="width is given twice"):
        python_file.read_options(["width=8", "width=9"])


# --- which files may run: those that the user named, trusts, or trained with as they are now --------------------------


def refused(path, trusted=Trust()):  # noqa: B008
    with pytest.raises(ValueError, match=r"x\.json") as error:
        trust.check([str(path)], "x.json", trusted)
    return str(error.value)


def test_a_file_runs_if_the_user_names_that_very_file_or_trusts_all(written, tmp_path, monkeypatch):
    file = written("1")
    assert "mine.py" in refused(file) and "--trust-code" in refused(file)
    trust.check([str(file)], "x.json", Trust(all_code=True))
    monkeypatch.chdir(tmp_path)
    trust.check([str(file)], "x.json", Trust(named=frozenset({"./mine.py"})))
    refused(file, Trust(named=frozenset({str(tmp_path / "other.py")})))
    trust.check([str(tmp_path / "gone.py")], "x.json", Trust())  # loading it is what fails


def test_a_file_is_trusted_once_trained_with_until_it_changes(written, tmp_path):
    file = written("1")
    (tmp_path / "copy.py").write_text(file.read_text())
    (tmp_path / "link.py").symlink_to(file)
    refused(tmp_path / "link.py")
    assert trust.note([str(tmp_path / "link.py")]) is None, "a link is what it points to"
    trust.check([str(file)], "x.json", Trust())
    refused(tmp_path / "copy.py")  # what lies beside it may differ
    written("2")
    assert "has changed since you trained with it" in refused(file)
    written("1")
    trust.check([str(file)], "x.json", Trust())


def test_the_text_that_ran_is_noted_even_if_the_file_was_edited_since(written):
    """Compiling takes minutes, in which somebody may go on writing."""
    file = written("def f(): return 'ran'")
    python_file.load_function(file, "f")
    written("def f(): return 'edited'")
    assert trust.note([str(file)]) is None
    assert "has changed since you trained with it" in refused(file)
    written("def f(): return 'ran'")
    trust.check([str(file)], "x.json", Trust())


def test_the_placeholder_for_an_algorithm_given_in_python_does_not_bypass_trust(tmp_path, monkeypatch):
    """Only an algorithm may have this name; as a network's file it is refused."""
    monkeypatch.chdir(tmp_path)
    (placeholder,) = IN_PYTHON
    (tmp_path / placeholder).write_text("raise SystemExit")
    config = Config(env="tic_tac_toe", network=NetworkConfig(file=placeholder))
    assert config.own_files == {placeholder: "network.file"}
    refused(placeholder, Trust(all_code=True))
    with pytest.raises(ValueError, match="is no Python file"):
        python_file.load_function(placeholder, "make_model")


def test_an_agents_card_is_not_run_although_its_headings_are_python_comments(tmp_path):
    config = Config(env="tic_tac_toe", network=NetworkConfig(file="strong.md"))
    agent_file.save(tmp_path / "strong.safetensors", config, {"w": np.zeros(1, np.float32)}, iteration=1)
    (tmp_path / "strong.md").write_text("# Strong\n")
    with pytest.raises(ValueError, match=r"strong\.md"):
        agent_file.read(tmp_path / "strong.safetensors")
