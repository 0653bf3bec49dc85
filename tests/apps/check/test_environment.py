"""`check_environment` names what is wrong: a broken game for each mistake that people make, with its sentence."""

import itertools
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import muzero_jax
from muzero_jax.apps.check import environment as checks
from muzero_jax.games.environment import make_environment
from muzero_jax.games.own_game import environment_from
from muzero_jax.types import Environment, Step
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


class WithoutMovesAtTwo(Heap):
    def mask(self, stones):
        return (jnp.arange(1, 3) <= stones) & (stones != 2)


class AllLegal(Heap):
    def mask(self, stones):
        return jnp.ones(2, bool)


class IgnoresTooMany(AllLegal):
    def step(self, state, action, key):
        moved, is_too_many = super().step(state, action, key), action >= state.stones
        return jax.tree.map(lambda old, new: jnp.where(is_too_many, old, new), state, moved)


class PunishesTooMany(AllLegal):
    def step(self, state, action, key):
        moved, is_too_many = super().step(state, action, key), action >= state.stones
        mover_loses = jnp.where(jnp.arange(2) == state.current_player, -1.0, 1.0)
        punished = state._replace(rewards=mover_loses, terminated=jnp.bool_(True))
        return jax.tree.map(lambda old, new: jnp.where(is_too_many, old, new), punished, moved)


class RewardsTheOther(Heap):
    def rewards(self, stones, mover):
        return super().rewards(stones, 1 - mover)


class RewardsTheWinnerOnly(Heap):
    def rewards(self, stones, mover):
        return jnp.maximum(super().rewards(stones, mover), 0.0)


class RewardsFive(Heap):
    def rewards(self, stones, mover):
        return 5 * super().rewards(stones, mover)


class OnePlayerAlways(Heap):
    def step(self, state, action, key):
        return super().step(state, action, key)._replace(current_player=state.current_player)


class Endless(Heap):
    def after(self, stones, action):
        return jnp.where(stones > 4, stones - 1, stones + 1)


class AlwaysRewarded(Heap):
    num_players = 1

    def step(self, state, action, key):
        moved = super().step(state, action, key)
        return moved._replace(current_player=state.current_player, rewards=jnp.ones(2))


class FloatStones(Heap):
    def after(self, stones, action):
        return super().after(stones, action) * 1.0


class AnotherState(Heap):
    def step(self, state, action, key):
        return tuple(super().step(state, action, key))


class NoTruncated:
    def init(self, key):
        return {"current_player": 0}

    def step(self, state, action, key):
        return state


class AsksInPython(Heap):
    def after(self, stones, action):
        return stones - 2 if stones > 2 else stones - 1


class Counts(Heap):
    def __init__(self):
        self.calls = itertools.count()

    def rewards(self, stones, mover):
        return super().rewards(stones, mover) * (1 - 0.001 * next(self.calls))


class RollsDice(Heap):
    def init(self, key):
        return super().init(key)._replace(rewards=jnp.float32(np.random.default_rng().normal(size=2)))


PGX_LIKE = {
    WithoutMovesAtTwo: "no action is legal, yet the game goes on; end it before that, or make a pass legal",
    IgnoresTooMany: "was legal after . moves but changed nothing; leave it out of the legal actions",
    PunishesTooMany: "but the rules punished its player with -1 and did not carry it out; leave it out",
    RewardsTheWinnerOnly: "the rewards of both players sum to 1 after a move; what one wins, the other must lose",
    RewardsFive: r"a move is rewarded with 5; scale it so that it lies in \[-1, 1\], or train with",
    OnePlayerAlways: "the discount is never negative, but this is a game for two",
    Endless: "a random game had not ended after 100 moves; end it by a rule, or by a time limit",
    AlwaysRewarded: r"the rewards of a random game add up to .; scale the sum so that it lies in \[-1, 1\]",
    FloatStones: r"the state's stones is int32\[\] after init but float32\[\] after a move; make both alike",
    AnotherState: "move raised AttributeError: 'tuple' object has no attribute 'current_player'; correct it",
    NoTruncated: "makes has no current_player; give it pgx's fields current_player, legal_action_mask",
    AsksInPython: r"raised TracerBoolConversionError: .* \(.*environment\.py:\d+\); it is compiled, so write",
    Counts: "move gives different results for the same arguments; let it depend on them alone",
    RollsDice: "init gives different results for the same arguments; let it depend on them alone",
}


@pytest.mark.parametrize("rules", PGX_LIKE, ids=lambda rules: rules.__name__)
def test_a_mistake_of_rules_in_pgxs_form_is_one_sentence(rules):
    with pytest.raises(ValueError, match=PGX_LIKE[rules]) as error:
        muzero_jax.check_environment(rules(), max_moves=100)
    assert "\n" not in str(error.value), "one mistake is one sentence"


@pytest.mark.parametrize(
    "game",
    [Heap(), make_nim(9), make_environment("tic_tac_toe"), make_environment("hex", board_size=2)],
    ids=["pgx-like", "an Environment", "tic_tac_toe", "hex"],
)
def test_a_game_without_a_mistake_passes_in_silence(game):
    muzero_jax.check_environment(game, max_moves=100)


def test_a_move_that_changes_nothing_may_be_a_step_against_a_wall_in_a_game_for_one():
    class Wall(IgnoresTooMany):
        num_players = 1

        def step(self, state, action, key):
            return super().step(state, action, key)._replace(current_player=state.current_player)

    with pytest.warns(UserWarning, match="was legal after . moves but changed nothing"):
        muzero_jax.check_environment(Wall())


def test_all_mistakes_are_told_a_line_each():
    class TwoMistakes(RewardsFive, WithoutMovesAtTwo):
        pass

    with pytest.raises(ValueError) as error:
        muzero_jax.check_environment(TwoMistakes())
    assert len(str(error.value).splitlines()) == 2
    assert checks.examine(environment_from(Heap(), "heap"), num_games=2, max_moves=9, seconds=-1.0).is_complete is False


def test_a_mover_who_always_loses_is_odd_but_may_be_the_rules():
    with pytest.warns(UserWarning, match="whoever made the last move lost in all 8 random games"):
        muzero_jax.check_environment(RewardsTheOther())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        muzero_jax.check_environment(Heap())


# --- an Environment of one's own --------------------------------------------------------------------------------------

HEAP = environment_from(Heap(), "heap")


def changed_move(change) -> Environment:
    """The sound game, whose every step goes through `change(state before, step)`."""

    def move(state, action, key=None):
        return change(state, HEAP.move(state, action, key))

    return HEAP._replace(move=move)


def revived(before, step):
    """A finished game that begins anew once it is moved on."""
    goes_on = step.state.terminated & ~before.terminated
    return step._replace(state=step.state._replace(terminated=goes_on))


def started_afresh(before, step):
    fresh = HEAP.init(jax.random.key(0))
    return step._replace(state=jax.tree.map(lambda new, old: jnp.where(step.is_last, new, old), fresh, step.state))


ENVIRONMENTS = {
    "reward of the other": (
        changed_move(lambda before, step: step._replace(reward=-step.reward)),
        "a move's reward is -1, but the state's rewards say 1; a reward is for the player who moved",
    ),
    "discount of the other": (
        changed_move(lambda before, step: step._replace(discount=-step.discount))._replace(discount=None),
        "the discount after a move is 1, but the other player moves next; it must be negative then",
    ),
    "discount above 1": (
        changed_move(lambda before, step: step._replace(discount=2 * step.discount))._replace(discount=None),
        "a move has the discount -2; it must be from -1 to 1",
    ),
    "discount 0": (
        changed_move(lambda before, step: step._replace(discount=0 * step.discount)),
        "a move has the discount 0, which ends a game, but is_last is False",
    ),
    "another constant": (HEAP._replace(discount=1.0), "environment.discount is 1.0, but a move has -1"),
    "revived": (changed_move(revived), "a finished game that is moved on is not finished any more"),
    "started afresh": (
        changed_move(started_afresh),
        "is_last of a move is True, but .* is False",
    ),
    "no number": (
        changed_move(lambda before, step: step._replace(reward=jnp.where(before.terminated, jnp.nan, step.reward))),
        "moving a finished game on gives a reward or a discount that is no number; let it give 0",
    ),
    "another view": (
        HEAP._replace(observe=lambda state: state.observation + 1),
        "observe or legal differs from the state's own observation or legal_action_mask",
    ),
    "observation_shape": (
        HEAP._replace(observation_shape=(2,)),
        r"observe gives an array of shape \(1,\), but observation_shape is \(2,\)",
    ),
    "bytes": (
        HEAP._replace(observe=lambda state: state.observation.astype(jnp.uint8)),
        "observe gives an array of uint8; make it one of bool or float32",
    ),
    "numbers for a mask": (
        HEAP._replace(legal=lambda state: state.legal_action_mask.astype(jnp.float32)),
        r"legal gives float32\[2\], but must give bool\[2\]",
    ),
    "a reward for each": (
        changed_move(lambda before, step: step._replace(reward=step.state.rewards)),
        r"move, as reward, gives float32\[2\], but must give float32\[\]",
    ),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_mistake_of_an_environment_is_named(name):
    environment, sentence = ENVIRONMENTS[name]
    with pytest.raises(ValueError, match=sentence):
        muzero_jax.check_environment(environment, max_moves=50)


def test_the_sign_of_a_discount_is_judged_without_players_in_the_state_too():
    always_positive = make_nim(9, passes_turn=False)
    with pytest.raises(ValueError, match="the discount is never negative, but this is a game for two"):
        muzero_jax.check_environment(always_positive)
    alone = always_positive._replace(num_players=1)
    muzero_jax.check_environment(alone)
    negative = alone._replace(move=lambda *a: turned_round(alone.move(*a)), discount=-1.0)
    with pytest.raises(ValueError, match="the discount after a move is -1, but this is a game for one"):
        muzero_jax.check_environment(negative)


def turned_round(step: Step) -> Step:
    return step._replace(discount=-step.discount)


def test_a_rule_that_raises_names_its_line():
    def move(state, action, key=None):
        return state.no_such_field

    with pytest.raises(ValueError, match=r"move raised AttributeError: .*no_such_field.* \(.*environment\.py:\d+\)"):
        muzero_jax.check_environment(HEAP._replace(move=move))


# --- symmetries -------------------------------------------------------------------------------------------------------


def with_symmetries(**tables) -> Environment:
    environment = make_environment("tic_tac_toe")
    assert environment.board is not None
    symmetries = environment.board.symmetries._replace(**{name: jnp.asarray(table) for name, table in tables.items()})
    return environment._replace(board=environment.board._replace(symmetries=symmetries))


def tables_of_tic_tac_toe():
    board = make_environment("tic_tac_toe").board
    assert board is not None
    return jax.device_get(board.symmetries)


def test_symmetries_that_do_not_commute_with_moves_are_named():
    actions = tables_of_tic_tac_toe().action_permutation.copy()
    actions[[1, 3]] = actions[[3, 1]]  # a quarter turn to the left moves the board, one to the right the actions
    found = checks.examine(with_symmetries(action_permutation=actions), num_games=2, max_moves=20).problems
    assert [sentence.split(":")[0] for sentence in found] == [
        "symmetry 1 does not commute with moves",
        "symmetry 3 does not commute with moves",
    ]
    assert all("the observation differs after 1 moves; correct its permutations" in sentence for sentence in found)


def test_tables_that_are_no_symmetries_at_all_are_named():
    actions = tables_of_tic_tac_toe().action_permutation.copy()
    actions[2] = 0
    with pytest.raises(ValueError, match="action_permutation of symmetry 2 is no permutation"):
        muzero_jax.check_environment(with_symmetries(action_permutation=actions))
    observations = tables_of_tic_tac_toe().observation_permutation[::-1]
    with pytest.raises(ValueError, match="symmetry 0 is not the identity; put the identity first"):
        muzero_jax.check_environment(with_symmetries(observation_permutation=observations))
