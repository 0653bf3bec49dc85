"""A user's file: its function is called as it is, and each mistake in it is one sentence with the file and the line."""

import pytest

from muzero_jax.own import python_file


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
        (None, r"^cannot read FILE \(No such file or directory\)"),
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
