"""A swap is one position, whatever a program means by it."""

import jax
import jax.numpy as jnp
import pytest

from muzero_jax.apps.engines import engines
from muzero_jax.apps.engines.engine import Ply
from muzero_jax.apps.engines.gtp import HexEngine, mirrored
from muzero_jax.apps.evaluation.engine_games import Arbiter, EngineSeat
from muzero_jax.games.environment import make_environment
from tests.reference import engines as programs

HEX = make_environment("hex", board_size=3)
B1, SWAP, C1, A1, B2 = (Ply(0, 1, "b1"), Ply(1, 9, "swap-pieces"), Ply(0, 2, "c1"), Ply(1, 0, "a1"), Ply(0, 4, "b2"))


@pytest.fixture
def play(tmp_path):
    """Starts a scripted engine that swaps in some way; returns it, and what it was told since."""
    running, log = [], tmp_path / "log"

    def start(*arguments):
        running.append(programs.started("gtp", "--log", log, *arguments))
        engine = HexEngine(running[-1], 3, 3)
        engine.greet([])
        engine.new_game()
        log.write_text("")
        return engine

    yield start, lambda: log.read_text().splitlines()
    for process in running:
        process.close(politely=False)


def test_a_cell_is_mirrored_in_the_long_diagonal_and_a_word_is_not():
    cells = ["a1", "b1", "k11", "A2", "swap-pieces", "resign"]
    assert [mirrored(text) for text in cells] == ["a1", "a2", "k11", "b1", "swap-pieces", "resign"]


def test_a_program_that_exchanges_the_pieces_is_told_the_moves_as_they_are(play):
    start, told = play
    engine = start("--swaps", "pieces")
    assert engine.swaps == "pieces" and engine.choose([B1, SWAP], 0) == "a1"
    assert told() == ["play b b1", "play w swap-pieces", "genmove b"]


def test_a_program_that_exchanges_the_sides_sees_the_other_colours_and_the_mirrored_board(play):
    """Ours: white's stone is on a2 now, and black plays c1. There: black's is still on b1, and white plays a3."""
    start, told = play
    engine = start("--swaps", "sides")
    assert engine.swaps == "sides" and engine.choose([B1, SWAP, C1], 1) == "a1"
    assert told() == ["play b b1", "play w swap-pieces", "play w a3", "genmove b"]
    assert engine.choose([B1, SWAP, C1, A1, B2], 1) == "a3"
    assert told()[4:] == ["play w b2", "genmove b"]


def test_a_program_that_knows_no_swap_is_not_told_of_it(play):
    start, told = play
    engine = start()
    assert engine.swaps is None and engine.choose([], 0) == "a1"
    assert engine.choose([Ply(0, 0, "a1"), SWAP], 0) == "a2"
    assert told() == ["genmove b", "genmove w"]


class SwapsFirst:
    """Swaps where it may, else takes the last free cell."""

    def new_game(self):
        pass

    def choose(self, state, plies, colour, key):
        legal = state.legal_action_mask
        return 9 if legal[9] else int(8 - jnp.argmax(legal[8::-1]))


@pytest.mark.parametrize("swaps", ["--swaps pieces", "--swaps sides", ""])
@pytest.mark.parametrize("opening", [[], [1], [1, 9], [4, 9, 0], [5, 9, 6, 8]])
def test_games_with_a_swap_are_played_to_their_end_by_every_kind_of_program(swaps, opening):
    """A program that had another position would choose a cell that is taken, or refuse one that is free."""
    arbiter = Arbiter(HEX)
    engine = engines.start(engines.parse(programs.name("gtp", *swaps.split())), HEX, seconds=20.0)
    try:
        seat, key = EngineSeat(engine, arbiter.notation), jax.random.key(0)
        for seats in ([seat, SwapsFirst()], [SwapsFirst(), seat]):
            played = arbiter.play(HEX.init(key), opening, seats, key)
            assert played.score in ("B+", "W+") and played.num_opening == len(opening)
    finally:
        engine.process.close(politely=False)
