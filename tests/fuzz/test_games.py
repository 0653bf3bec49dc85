"""Legal and illegal orders of GTP and of the web, against a plain game: both must agree after every order."""

import functools

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from muzero_jax.apps.engines import gtp
from muzero_jax.apps.play.position import new_game
from muzero_jax.apps.play.web_session import WebGame
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import make_environment
from tests.fuzz import fuzzing
from tests.fuzz.agents import QuickThinker
from tests.fuzz.fuzzing import refusal
from tests.reference.plain_game import EMPTY, SWAP, Plain

GAMES = ["tic_tac_toe", "hex"]
TEXTS = [column + row for row in "123" for column in "abc"] + ["swap-pieces"]
COLOURS, ACTIONS = st.integers(0, 1), st.integers(0, 9)
THINKER = QuickThinker()


@functools.cache
def opening(name):
    return new_game(make_environment(name, board_size=3 if name == "hex" else None))


class Machine(RuleBasedStateMachine):
    """What both have in common: a position of ours and the plain game."""

    name = ""

    @property
    def notation(self):
        return make_notation(opening(self.name).environment)

    def moved(self, after, answer_is_right):
        """Takes the plain game's answer to an order: another game, or None where the order must be refused."""
        assert answer_is_right == (after is not None), (self.game, answer_is_right)
        self.game = self.game if after is None else after

    def assert_agreed(self, position):
        game = self.game
        stones = tuple({".": EMPTY}.get(cell, "XO".find(cell)) for row in position.squares for cell in row)
        assert stones == game.cells, (stones, game)
        assert (position.is_over, position.winner) == (game.is_over, game.winner)
        assert [ply.action for ply in position.plies] == game.moves
        if not game.is_over:
            assert position.colour_to_move == game.mover
            assert position.legal_actions() == game.legal(game.mover)


class ByGtp(Machine):
    def __init__(self):
        super().__init__()
        self.session = gtp.GtpSession(opening(self.name), THINKER, self.notation)
        self.game = Plain(self.name == "hex")

    def order(self, line):
        """(whether it was carried out, the answer's text)."""
        answer = self.session.answer(line)
        assert answer.endswith("\n\n") and "internal error" not in answer
        return answer[0] == "=", answer[1:].strip()

    @rule(colour=COLOURS, action=ACTIONS)
    def play(self, colour, action):
        self.moved(self.game.play(action, colour), self.order(f"play {'bw'[colour]} {TEXTS[action]}")[0])

    @precondition(lambda self: not self.game.is_over)
    @rule(action=ACTIONS)
    def play_in_turn(self, action):
        self.play(self.game.mover, action)

    @rule(colour=COLOURS, is_played=st.booleans())
    def genmove(self, colour, is_played):
        """The agent plays the last legal move."""
        ok, text = self.order(f"{'genmove' if is_played else 'reg_genmove'} {'bw'[colour]}")
        assert ok
        if self.game.is_over:
            assert text == ("resign" if self.name == "hex" else "pass")
            return
        action = self.game.legal(colour)[-1]
        assert text == TEXTS[action]
        self.game = self.game.play(action, colour) if is_played else self.game

    @rule(colour=COLOURS)
    def resign(self, colour):
        self.moved(self.game.resign(colour), self.order(f"play {'bw'[colour]} resign")[0])

    @rule()
    def undo(self):
        self.moved(self.game.undo(), self.order("undo")[0])

    @rule(size=st.integers(2, 4))
    def boardsize(self, size):
        self.moved(Plain(self.game.is_hex) if size == 3 else None, self.order(f"boardsize {size}")[0])

    @rule(line=st.sampled_from(["play b z9", "play x a1", "genmove", "komi x", "undo 1 2", "swap", "loadsgf no"]))
    def nonsense(self, line):
        self.moved(self.game.undo() if line.startswith("undo") else None, self.order(line)[0])

    @rule(colour=COLOURS)
    def ask(self, colour):
        legal = [] if self.game.is_over else self.game.legal(colour)
        assert self.order(f"all_legal_moves {'bw'[colour]}") == (True, " ".join(TEXTS[action] for action in legal))
        score = self.game.score()
        assert self.order("final_score") == ((False, "cannot score") if score is None else (True, score))

    @invariant()
    def agreed(self):
        self.assert_agreed(self.session.position)


class ByWeb(Machine):
    def __init__(self):
        super().__init__()
        self.page, self.game = WebGame(opening(self.name), THINKER, self.notation), Plain(self.name == "hex")

    def order(self, question, **fields):
        """Whether it was carried out."""
        state, _ = refusal(lambda: getattr(self.page, question)(**fields))
        return state is not None

    @rule(action=ACTIONS, late=st.sampled_from([None, None, 0, 0, 1]))
    def play(self, action, late):
        """`late`: how many moves ago the page last looked; None: it does not say."""
        ply = None if late is None else len(self.game.moves) - late
        after = None if late else self.game.play(action, self.game.mover)
        self.moved(after, self.order("play", move=TEXTS[action], ply=ply))

    @rule(budget=st.sampled_from([None, 1, 2, 0, -1, 4097]))
    def agent_move(self, budget):
        """The agent plays the first legal move on an odd budget, else the last."""
        legal = [] if self.game.is_over else self.game.legal(self.game.mover)
        is_fit = legal and budget in (None, 1, 2)
        after = self.game.play(legal[0 if budget == 1 else -1], self.game.mover) if is_fit else None
        self.moved(after, self.order("agent_move", num_simulations=budget))

    @rule(colour=COLOURS | st.none() | st.just(7))
    def undo(self, colour):
        self.moved(self.game.undo(colour), self.order("undo", colour=colour))

    @rule()
    def new(self):
        self.moved(Plain(self.game.is_hex), self.order("new"))

    @rule()
    def analysis(self):
        assert self.order("analysis") == (not self.game.is_over)

    @invariant()
    def agreed(self):
        self.assert_agreed(self.page.position)
        state, game = self.page.state(), self.game
        assert state["ply"] == len(game.moves) and state["moves"] == [TEXTS[action] for action in game.moves]
        assert state["legal"] == ([] if game.is_over else [TEXTS[action] for action in game.legal(game.mover)])
        assert (state["result"] is not None) == game.is_over and state["swapped"] == (game.moves[-1:] == [SWAP])
        won = {game.cells[3 * row + column] for row, column in state["winning_cells"]}
        assert won == ({game.winner} if game.is_over and game.winner is not None else set())


@pytest.mark.parametrize(
    "examples, steps", [(20, 12), pytest.param(fuzzing.SLOW // 10, 30, marks=pytest.mark.slow, id="slow")]
)
@pytest.mark.parametrize("orders", [ByGtp, ByWeb])
@pytest.mark.parametrize("name", GAMES)
def test_orders_have_the_effect_that_a_plain_game_says(name, orders, examples, steps, tmp_path):
    machine = type(orders.__name__, (orders,), {"name": name})
    settings = fuzzing.settings(examples, is_repeated=examples == 20, stateful_step_count=steps)
    with fuzzing.unchecked_shapes(), fuzzing.guarded(tmp_path, seconds=10 * examples):
        run_state_machine_as_test(machine, settings=settings)
