"""Strategies: text, JSON and bytes that are mostly right, and what they become by a few odd edits."""

import json
from typing import Any

from hypothesis import strategies as st

ODD_PIECES = [
    *[b"\x00", b"\r", b"\x0b", b"\x1b[2J", b"\x7f", b"\x85", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf0\x9f\x98"],
    *[text.encode() for text in ("１", "٣", "²", "é", "\u2028", "K", "ß", "\u202e")],
    *[
        b"#",
        b"\\",
        b"'",
        b'"',
        b"[",
        b"]",
        b"(",
        b")",
        b"{",
        b"}",
        b";",
        b":",
        b",",
        b" ",
        b"\t",
        b"=",
        b"%s%n",
        b"../",
    ],
    *[b"-1", b"0x10", b"1_0", b"+1", b"1e999", b"-1e999", b"nan", b"inf", b"NaN", b"Infinity", b"null", b"true"],
    *[b"9" * 30, b"9" * 5000, b"0" * 5000 + b"1", b"a" * 70_000, b"[" * 3000, b"(;" * 1000, b"~no-such-user/x.py"],
]
"""Pieces that parsers stumble over."""
EXTREME_INTS = [0, -1, 1, 2, 3, 7, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 10**400, -(10**400)]
EXTREME_FLOATS = [0.0, -0.0, 0.5, 1.0, 1.5, -1.0, 1e-320, 1e300, float("inf"), float("-inf"), float("nan")]


@st.composite
def disturbed(draw: st.DrawFn, contents: st.SearchStrategy[bytes]) -> bytes:
    """Half of the contents as they are; of the others some bytes cut out, doubled, changed, or an odd piece put in."""
    content = draw(contents)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2, 5]))):
        place = draw(st.integers(0, len(content)))
        kind, piece = draw(st.sampled_from("cut put put put flip end twice".split())), b""
        after = content[place:]
        if kind == "cut":
            after = after[draw(st.integers(0, 20)) :]
        elif kind == "put":
            piece = draw(st.sampled_from(ODD_PIECES))
        elif kind == "flip":
            piece, after = draw(st.binary(min_size=1, max_size=2)), after[1:]
        elif kind == "end":
            after = b""
        else:
            piece = after[:8]
        content = content[:place] + piece + after
    return content


def words(*choices: Any) -> st.SearchStrategy[str]:
    """A line of words: of each choice one. A text is that word, a list one of its words."""
    parts = [
        choice
        if isinstance(choice, st.SearchStrategy)
        else st.sampled_from([choice] * isinstance(choice, str) or choice)
        for choice in choices
    ]
    return st.tuples(*parts).map(" ".join)


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from(EXTREME_INTS),
    st.sampled_from(EXTREME_FLOATS),
    st.integers(-10, 1000),
    st.floats(0, 1),
    st.text(max_size=5),
)
JSON_VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NESTED = st.sampled_from([10, 500, 900, 990, 3000, 100_000]).map(lambda depth: "[" * depth + "]" * depth)
"""JSON text deeper than any parser likes."""


def paths(tree: Any) -> list[tuple[str, ...]]:
    """The places of all values in nested dicts."""
    if not isinstance(tree, dict):
        return [()]
    return [()] + [(key, *path) for key, value in tree.items() for path in paths(value)]


def replaced(tree: Any, path: tuple[str, ...], value: Any) -> Any:
    """A copy of nested dicts with another value at a place; `...` takes it away."""
    if not path or not isinstance(tree, dict):
        return tree if value is ... else value
    if value is ... and len(path) == 1:
        return {key: item for key, item in tree.items() if key != path[0]}
    return {**tree, path[0]: replaced(tree.get(path[0]), path[1:], value)}


@st.composite
def edited(draw: st.DrawFn, tree: dict, values: st.SearchStrategy = JSON_VALUES) -> Any:
    """Nested dicts with values changed, taken away, or put where none belongs."""
    places = st.sampled_from(paths(tree)[1:])
    for _ in range(draw(st.sampled_from([0, 1, 1, 1, 2, 3]))):
        path = draw(places)
        if draw(st.integers(0, 9)) == 0:
            path = (*path[:-1], draw(st.text(max_size=8)))
        tree = replaced(tree, path, draw(values | st.just(...)))
    return tree


@st.composite
def json_text(draw: st.DrawFn, trees: st.SearchStrategy) -> bytes:
    """JSON of the trees, mostly; at times one key twice, a deep nest, or disturbed bytes."""
    kind = draw(st.sampled_from("plain plain plain twice nest odd odd other".split()))
    if kind == "other":
        return json.dumps(draw(JSON_VALUES)).encode()
    tree = draw(trees)
    text = json.dumps(tree)
    if kind == "twice" and isinstance(tree, dict) and tree:
        key = draw(st.sampled_from(sorted(tree)))
        text = f"{{{json.dumps(key)}: {json.dumps(draw(JSON_VALUES))}, {text[1:]}"
    if kind == "nest" and isinstance(tree, dict):
        text = f"{{{json.dumps(draw(st.sampled_from(sorted(tree) or ['x'])))}: {draw(NESTED)}, {text[1:]}"
    return draw(disturbed(st.just(text.encode()))) if kind == "odd" else text.encode()
