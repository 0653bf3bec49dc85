"""`muzero_jax.check` names what is wrong with a game: a broken one for each mistake that people make."""

import re
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pgx
import pytest

import muzero_jax
from examples import pig
from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.check import environment_checks, promises
from muzero_jax.games import chance, notation
from muzero_jax.games.catalogue import game_of
from muzero_jax.games.environment import environment_of, make_environment
from muzero_jax.games.own_game import environment_from
from muzero_jax.games.view import View
from muzero_jax.types import Environment
from tests.reference import drop, tiny_run
from tests.reference.nim import make_nim


class State(NamedTuple):
    """Stones on a heap, with the fields that pgx's states have."""

    stones: Any
    current_player: Any
    legal_action_mask: Any
    rewards: Any
    terminated: Any
    truncated: Any
    observation: Any


class Heap:
    """Players take 1 or 2 of 5 stones by turns; who takes the last one wins. A broken game changes a part of it."""

    num_players = 2

    def init(self, key):
        del key
        return self.state(jnp.int32(5), jnp.int32(0), jnp.zeros(2))

    def step(self, state, action, key):
        stones = self.after(state.stones, action)
        return self.state(stones, 1 - state.current_player, self.rewards(stones, state.current_player))

    def after(self, stones, action):
        return jnp.maximum(stones - 1 - action, 0)

    def rewards(self, stones, mover):
        return jnp.where(stones == 0, jnp.where(jnp.arange(2) == mover, 1.0, -1.0), 0.0)

    def mask(self, stones):
        return jnp.arange(1, 3) <= stones

    def state(self, stones, player, rewards):
        view = jnp.float32(stones)[None]
        return State(stones, player, self.mask(stones), rewards, stones == 0, jnp.bool_(False), view)


def broken(name, base=Heap, **parts):
    """A class of games that differ in these parts from the sound one."""
    return type(name, (base,), parts)


def next_with(**fields):
    """The usual step with some fields changed: each a function of the state before it and after it."""

    def step(self, state, action, key):
        after = Heap.step(self, state, action, key)
        return after._replace(**{name: field(state, after) for name, field in fields.items()})

    return step


def unless_too_many(refused, usual=Heap.step):
    """Every number is legal; taking more than there are leads to `refused(state)`."""

    def step(self, state, action, key):
        is_refused, moved = action >= state.stones, usual(self, state, action, key)
        return jax.tree.map(partial(jnp.where, is_refused), refused(state), moved)

    return {"step": step, "mask": lambda self, stones: jnp.ones(2, bool)}


def punished(state):
    rewards = jnp.where(jnp.arange(2) == state.current_player, -1.0, 1.0)
    return state._replace(rewards=rewards, terminated=jnp.bool_(True))


USUAL = Heap()
STAYS = {"current_player": lambda before, after: before.current_player}
WithoutMovesAtTwo = broken("WithoutMovesAtTwo", mask=lambda _, stones: (jnp.arange(1, 3) <= stones) & (stones != 2))
IgnoresTooMany = broken("IgnoresTooMany", **unless_too_many(lambda state: state))
PunishesTooMany = broken("PunishesTooMany", **unless_too_many(punished))
RewardsTheOther = broken("RewardsTheOther", rewards=lambda _, stones, mover: USUAL.rewards(stones, 1 - mover))
RewardsTheWinnerOnly = broken("RewardsTheWinnerOnly", rewards=lambda _, *of: jnp.maximum(USUAL.rewards(*of), 0.0))
RewardsFive = broken("RewardsFive", rewards=lambda _, stones, mover: 5 * USUAL.rewards(stones, mover))
OnePlayerAlways = broken("OnePlayerAlways", step=next_with(**STAYS))
Endless = broken("Endless", after=lambda _, stones, action: jnp.where(stones > 4, stones - 1, stones + 1))
ALONE = {"num_players": 1, "step": next_with(**STAYS, rewards=lambda before, after: jnp.ones(2))}
AlwaysRewarded = broken("AlwaysRewarded", **ALONE)
FloatStones = broken("FloatStones", after=lambda _, stones, action: USUAL.after(stones, action) * 1.0)
AnotherState = broken("AnotherState", step=lambda _, *of: tuple(USUAL.step(*of)))
AsksInPython = broken("AsksInPython", after=lambda _, stones, action: stones - 2 if stones > 2 else stones - 1)
ScalarRewards = broken(
    "ScalarRewards",
    init=lambda self, key: self.state(jnp.int32(5), jnp.int32(0), jnp.float32(0)),
    rewards=lambda _, stones, mover: jnp.where(stones == 0, 1.0, 0.0),
)
CountsPlayersFromOne = broken(
    "CountsPlayersFromOne",
    init=lambda self, key: self.state(jnp.int32(5), jnp.int32(1), jnp.zeros(2)),
    step=lambda self, state, action, key: Heap.step(self, state, action, key)._replace(
        current_player=3 - state.current_player
    ),
)
NoTruncated = broken("NoTruncated", object, init=lambda _, key: {"current_player": 0}, step=lambda _, state, *of: state)


# A mistake, and words of the finding that names it.
PGX_LIKE = {
    WithoutMovesAtTwo: "no action is legal",
    IgnoresTooMany: "was legal after . moves but changed nothing",
    PunishesTooMany: "^doubt: action 1 was legal .* ended the game with -1",
    RewardsTheWinnerOnly: "rewards of both players sum to 1",
    RewardsFive: "rewarded with 5",
    OnePlayerAlways: "discount is never negative",
    Endless: "had not ended after 1000 moves",
    AlwaysRewarded: "rewards of a random game add up to",
    FloatStones: r"stones is int32\[\] after init but float32\[\] after a move",
    AnotherState: "move raised AttributeError",
    ScalarRewards: r"rewards must be float32\[2\], but is float32\[\]",
    CountsPlayersFromOne: "current_player is 2 in some position; it must be 0 or 1",
    NoTruncated: "has no current_player",
    RewardsTheOther: "^doubt: whoever made the last move lost",
}


@pytest.mark.parametrize("rules", PGX_LIKE, ids=lambda rules: rules.__name__)
def test_a_mistake_of_rules_in_pgxs_form_is_found_and_named_once(rules):
    (sentence,) = muzero_jax.check(rules())
    assert re.search(PGX_LIKE[rules], sentence) and "\n" not in sentence, sentence


@pytest.mark.parametrize("game", [Heap(), make_nim(9), pig.Pig()], ids=["pgx-like", "an Environment", "with chance"])
def test_nothing_is_found_in_a_game_without_a_mistake(game):
    assert muzero_jax.check(game) == []


def test_a_fold_is_a_doubt_and_a_list_that_fills_no_whole_row_is_no_fault():
    """pgx's Kuhn poker ends with a fold, which moves nothing, and its Leduc hold'em shows 34 numbers."""
    kuhn, leduc = (environment_from(pgx.make(name), name) for name in ("kuhn_poker", "leduc_holdem"))
    fold = environment_checks.examine(kuhn, largest=2.0)
    assert fold.problems == [] and len(fold.doubts) == 2
    assert all(any(words in doubt for doubt in fold.doubts) for words in ("keep it if it gives up", "hidden=True"))
    told = kuhn._replace(game=game_of(kuhn)._replace(hidden=True))
    assert not any("hidden" in doubt for doubt in environment_checks.examine(told, largest=2.0).doubts)
    assert environment_checks.examine(leduc, largest=14.0).problems == []
    assert game_of(kuhn).is_for_points and game_of(leduc).is_for_points


class ForThree(Heap):
    num_players = 3

    def rewards(self, stones, mover):
        return jnp.zeros(3)


def test_a_game_for_three_is_refused_wherever_it_comes_from():
    """Else it would be trained with the signs of two."""
    environment = make_nim(9)._replace(num_players=3)
    sentences = [*muzero_jax.check(ForThree()), *muzero_jax.check(environment)]
    sentences += muzero_jax.check(tiny_run.algorithm()._replace(environment=environment))
    assert len(sentences) == 3 and all("only one or two can be trained" in sentence for sentence in sentences)
    with pytest.raises(ValueError, match="for 3 players"):
        make_algorithm(tiny_run.CONFIG, environment)


# --- an Environment of one's own --------------------------------------------------------------------------------------

HEAP = environment_from(Heap(), "heap")


def moved(change) -> Environment:
    """The sound game, whose every step goes through `change(step, state before)`."""
    return HEAP._replace(move=lambda state, action, key=None: change(HEAP.move(state, action, key), state))


ENVIRONMENTS = {
    "reward is -1, but the state's rewards say 1": moved(lambda step, _: step._replace(reward=-step.reward)),
    "it must be negative": moved(lambda step, _: step._replace(discount=-step.discount)),
    "discount 0, .* is_last is False": moved(lambda step, _: step._replace(discount=0 * step.discount)),
    r"reward, .* but is float32\[2\]": moved(lambda step, _: step._replace(reward=step.state.rewards)),
    "environment.discount is 1.0, but a move has -1": HEAP._replace(discount=1.0),
    "observe or legal differs": HEAP._replace(observe=lambda state: state.observation + 1),
    r"legal_action_mask\) must be bool\[2\]": HEAP._replace(legal=lambda state: state.legal_action_mask * 1.0),
}


@pytest.mark.parametrize("words", ENVIRONMENTS)
def test_a_mistake_of_an_environment_is_named(words):
    found = muzero_jax.check(ENVIRONMENTS[words])
    assert any(re.search(words, each) for each in found), found


# --- listed chance ----------------------------------------------------------------------------------------------------

PIG = environment_from(pig.Pig(), "pig")
LISTED = PIG.chance


def altered(move_of_game=None, **functions):
    """Pig whose listed chance has other functions, of which its move is made if it has no other one."""
    changed = LISTED._replace(**functions)
    return PIG._replace(chance=changed, move=move_of_game or chance.make_chance_move(changed))


CHANCES = {
    "sum to 1.5": altered(probabilities=lambda state: jnp.full(3, 0.5)),
    "an outcome that is possible": altered(PIG.move, probabilities=lambda state: jnp.array([0.0, 0.5, 0.5])),
    "move differs from chance": altered(PIG.move, resolve=lambda state, outcome: LISTED.resolve(state, 2 - outcome)),
}


@pytest.mark.parametrize("words", CHANCES)
def test_a_mistake_in_listed_chance_is_named(words):
    found = promises.chance(CHANCES[words])
    assert any(words in sentence for sentence in found), found


# --- symmetries -------------------------------------------------------------------------------------------------------


def test_symmetries_that_do_not_commute_with_moves_are_named():
    """Quarter turns move the board one way and the actions the other."""
    environment = make_environment("tic_tac_toe")
    symmetries = environment.board.symmetries
    swapped = symmetries._replace(action_permutation=symmetries.action_permutation[np.array([0, 3, 2, 1, 4, 5, 6, 7])])
    found = muzero_jax.check(environment._replace(board=environment.board._replace(symmetries=swapped)))
    assert [re.match("symmetry . does not commute", each)[0].split()[1] for each in found] == ["1", "3"]


def test_symmetries_under_which_already_the_first_move_earns_something_else_are_named():
    """A stone in the first corner earns 1; only the identity and one mirror keep that corner."""
    environment = make_environment("tic_tac_toe")

    def move(state, action, key=None):
        step = environment.move(state, action)
        return step._replace(reward=jnp.where(action == 0, 1.0, step.reward))

    moves_corner = np.flatnonzero(environment.board.symmetries.action_permutation[:, 0])
    found = promises.symmetries(environment._replace(move=move))
    assert [int(each.split()[1]) for each in found] == moves_corner.tolist() and len(found) == 6


# --- what a person at the board would stumble over --------------------------------------------------------------------


def twins(shape, num_actions):
    return notation.Notation(*notation.words(["left", "left", "right"]), [], [])


@pytest.mark.parametrize(
    "fields, says",
    [
        ({}, None),
        ({"view": View(drop.squares, page="checkers")}, "view.page"),
        ({"view": View(lambda state: 1 / 0)}, "view or notation raised ZeroDivisionError"),
        ({"view": View(drop.squares, caption=lambda state: 4)}, "view.caption returns 4"),
        ({"notation": twins}, "the notation writes action 0 as 'left' and reads that as action 1"),
    ],
)
def test_a_view_or_notation_that_fails_is_named(fields, says):
    game = drop.DROP._replace(**fields)
    found = promises.view(environment_of(game)._replace(game=game))
    assert found == [] if says is None else len(found) == 1 and found[0].startswith(says)
