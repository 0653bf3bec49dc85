"""A user's file: its function is called as it is, and each mistake in it is one sentence with the file and the line."""

import pytest

from muzero_jax.own import python_file


@pytest.fixture
def written(tmp_path):
    def write(text):
        (tmp_path / "mine.py").write_text(text)
        return tmp_path / "mine.py"

    return write


def refusal(action, *arguments, **options):
    with pytest.raises(ValueError) as error:
        action(*arguments, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_the_function_gets_its_arguments_and_may_use_what_the_file_defines_and_imports(written):
    file = written(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport muzero_jax.types\n"
        "@dataclass\nclass Net:\n    width: int\n"
        "def make(game, *, width=3): return game, Net(width).width, muzero_jax.types.Model.__name__\n"
    )
    make = python_file.load_function(file, "make")
    assert make("hex") == ("hex", 3, "Model") and make("hex", width=5)[1] == 5


def test_a_file_is_read_anew_each_time_and_its_name_hides_no_module(written):
    assert python_file.load_function(written("def f(): return 1"), "f")() == 1
    (file := written("def f(): return 22")).rename(json := file.parent / "json.py")
    assert python_file.load_function(json, "f")() == 22
    import json as standard

    assert standard.loads("[1]") == [1]


def test_a_missing_file_is_one_sentence(tmp_path):
    found = refusal(python_file.load_function, tmp_path / "no.py", "make")
    assert found.startswith(f"cannot read {tmp_path / 'no.py'} (No such file or directory)")


@pytest.mark.parametrize(
    "text, problem, line",
    [
        ("import os\nimport nothing_like_it\n", "ModuleNotFoundError: No module named 'nothing_like_it'", 2),
        ("x = 1\ndef f(:\n", "SyntaxError: invalid syntax", 2),
        ("def g():\n    1 / 0\n\ng()\n", "ZeroDivisionError: division by zero", 2),
        ("raise SystemExit('bye')\n", "SystemExit: bye", 1),
    ],
)
def test_a_file_that_does_not_import_is_one_sentence_with_the_line(written, text, problem, line):
    file = written(text)
    found = refusal(python_file.load_function, file, "f")
    assert found == f"importing {file} raised {problem} ({file}:{line}); correct it there"


@pytest.mark.parametrize("text", ["", "f = 3"])
def test_a_file_without_the_function_is_one_sentence(written, text):
    file = written(text)
    assert refusal(python_file.load_function, file, "f") == f"{file} defines no function f; define it there"


def test_an_argument_that_it_does_not_take_is_named(written):
    found = refusal(python_file.load_function(written("def f(game, width=3): return width"), "f"), "hex", depth=2)
    assert "raised TypeError: f() got an unexpected keyword argument 'depth'" in found


@pytest.mark.parametrize(
    "text, problem",
    [
        ("import json\ndef g():\n    json.loads('[')\ndef f():\n    g()\n", "JSONDecodeError: Expecting value"),
        ("import sys\ndef f():\n    sys.exit(0)\n", "SystemExit: 0"),
    ],
)
def test_an_exception_in_the_function_is_one_sentence_with_the_innermost_line_of_the_file(written, text, problem):
    file = written(text)
    found = refusal(python_file.load_function(file, "f"))
    assert found.startswith(f"f of {file} raised {problem}") and found.endswith(f"({file}:3); correct it there")


def test_options_are_literals_where_they_can_be_and_else_text():
    texts = [
        "width=8",
        "rate=1e-3",
        "deep=True",
        "sizes=(1, 2)",
        "name=gelu",
        "empty=",
        "equation=a=b",
        "none=None",
        "set={[]}",
    ]
    assert python_file.read_options(texts) == {
        "width": 8,
        "rate": 1e-3,
        "deep": True,
        "sizes": (1, 2),
        "name": "gelu",
        "empty": "",
        "equation": "a=b",
        "none": None,
        "set": "{[]}",  # a list in a set is no value, though its grammar is right
    }


def test_an_option_given_twice_is_refused():
    assert "width is given twice" in refusal(python_file.read_options, ["width=8", "width=9"])
