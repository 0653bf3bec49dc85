"""SGF and move files of any content: games, or one sentence that names the file."""

from types import SimpleNamespace

import jax
import pytest
from hypothesis import strategies as st

from muzero_jax.apps.engines.gtp import GtpSession
from muzero_jax.apps.sources import stored_games
from muzero_jax.games.game_files import read_games
from tests.fuzz import fuzzing
from tests.fuzz.agents import QuickThinker
from tests.fuzz.fuzzing import refusal
from tests.fuzz.samples import disturbed
from tests.reference.play import notation, opening

MOVES = "a1 b2 c3 d4 a2 0 4 15 16 swap-pieces swap pass resign tt a0 z9 ٣ 99999999 1-0 [a1] a1,b2 #".split()
VALUES = st.sampled_from(
    [*MOVES, "", "\\]", "a\\", "(;B[a1])", "4", "4:4", "19", "x" * 500, "a\n1", " 4 ", "4\n:"]
) | st.text("ab1[]\\;()\n 4:", max_size=6)
NAMES = st.sampled_from("B W B W B W SZ GM FF AB AW AE C PB Black b B1 é".split())
PROPERTIES = st.tuples(NAMES, st.lists(VALUES, min_size=0, max_size=2)).map(
    lambda named: named[0] + "".join(f"[{value}]" for value in named[1])
)
GAMES = st.lists(st.sampled_from("abcd").flatmap(lambda c: st.sampled_from("1234").map(c.__add__)), max_size=6).map(
    lambda moves: "".join(f";{'BW'[i % 2]}[{move}]" for i, move in enumerate(moves))
)
TREES = st.recursive(
    GAMES | st.lists(PROPERTIES, max_size=4).map(lambda each: ";" + ";".join(each)),
    lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda trees: "".join(f"({tree})" for tree in trees)),
    max_leaves=6,
).map("({})".format)
NESTED = st.sampled_from([10, 300, 1000]).map(lambda depth: "(;B[a1]" * depth + ")" * depth)
UNCLOSED = st.sampled_from(["(;B[", "(;(;)[", "(;B[a1](;", "(;@", "(;AB[a1][", "[", " ", "\\]", "(;C[\\"]).flatmap(
    lambda piece: st.sampled_from([3, 300, 1000]).map(piece.__mul__)
)
SGF_FILES = disturbed((TREES | TREES | TREES | NESTED | UNCLOSED).map(str.encode))
LINES = st.lists(st.sampled_from(MOVES), max_size=6).map(" ".join)
MOVE_FILES = disturbed(st.lists(LINES, max_size=5).map("\n".join).map(str.encode))


PROGRAMS = {}


@pytest.fixture(autouse=True)
def compiled_once(monkeypatch):
    """`stored_games.play` compiles two programs a call, for as many games as it plays at once."""

    def jit(function):
        return PROGRAMS.setdefault(getattr(function, "func", function).__code__, jax.jit(function))

    monkeypatch.setattr(stored_games, "jax", SimpleNamespace(**{**vars(jax), "jit": jit}))
    monkeypatch.setattr(stored_games, "BATCH", 1)
    monkeypatch.setattr(stored_games, "_check_without_chance", lambda *_: None)  # it traces the rules anew


@fuzzing.fuzzed(SGF_FILES, found=[b"(;B[" * 20_000, b"(;(;)[" * 20_000, b"(;B[two\nlines\x1b])"])
def test_sgf_files(content, folder):
    check(content, folder / "games.sgf")


@fuzzing.fuzzed(MOVE_FILES, found=[b"9" * 5000, b"a1 \x1b[2J"])
def test_move_files(content, folder):
    check(content, folder / "games.txt")


def check(content, file):
    """The file as games for training, and as the one game that `loadsgf` goes to the end of."""
    file.write_bytes(content)
    games, _ = refusal(lambda: read_games(file), file)
    answer = GtpSession(opening("hex"), QuickThinker(), notation("hex")).answer(f"loadsgf {file}")
    assert answer.startswith(("= ", "? cannot load file")), answer
    if games is not None:
        assert games and all(game.moves and game.name.startswith(str(file)) for game in games)
        refusal(lambda: stored_games.play(opening("hex").environment, games, keeps_state=False), file, "move")
