"""Liar's dice: each of two players sees only the own dice, and bids on all of them.

As in OpenSpiel: bids rise, the highest face is wild, and `liar` ends the game: the last bidder wins if the dice show at
least so many of the face.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from muzero_jax.games.game import Game
from muzero_jax.games.layout import NO_CELLS
from muzero_jax.games.notation import named
from muzero_jax.games.view import EMPTY, Squares, View

FACES = 6
LIAR = "liar"


class DiceState(NamedTuple):
    """The dice, and the bids so far; D dice each."""

    dice: Array  # [2, D] int32, ascending, faces from 0; -1 if not known
    bids: Array  # [2 D FACES] bool, made so far; they rise, so this is their order too
    current_player: Array  # [] int32; 0 bids first
    observation: Array  # [(D + 2 D) FACES] bool: the own dice, then the bids
    rewards: Array
    terminated: Array
    truncated: Array
    legal_action_mask: Array


class LiarsDice:
    """The rules, with `num_dice` dice each. Bid (n, face) is action (n - 1) FACES + face, and `liar` is the last."""

    num_players = 2

    def __init__(self, num_dice: int):
        self.num_dice = num_dice
        self.num_bids = 2 * num_dice * FACES

    def init(self, key: Array) -> DiceState:
        """Both players roll."""
        return self._start(jax.random.randint(key, (2, self.num_dice), 0, FACES))

    def deals(self) -> tuple[Any, np.ndarray]:
        """All rolls of all dice, leaves [R, ...], which are equally likely."""
        rolls = np.indices((FACES,) * 2 * self.num_dice).reshape(2, self.num_dice, -1).transpose(2, 0, 1)
        return jax.vmap(self._start)(jnp.asarray(rolls, jnp.int32)), np.full(len(rolls), 1 / len(rolls))

    def _start(self, dice: Array) -> DiceState:
        bids, player, never = jnp.zeros(self.num_bids, bool), jnp.int32(0), jnp.bool_(False)
        return self._state(jnp.sort(dice, axis=1), bids, player, jnp.zeros(2), never)

    def step(self, state: DiceState, action: Array, key: Array | None = None) -> DiceState:
        """A bid, or `liar`; after a game's end nothing changes."""
        del key
        is_liar = action == self.num_bids
        bid = last_bid(state.bids)
        matches = jnp.sum((state.dice == bid % FACES) | (state.dice == FACES - 1))
        caller_wins = matches < bid // FACES + 1
        own = jnp.where(is_liar & ~state.terminated, jnp.where(caller_wins, 1.0, -1.0), 0.0)
        mover = state.current_player
        return self._state(
            state.dice,
            jnp.where(state.terminated, state.bids, state.bids.at[action].set(True, mode="drop")),
            jnp.where(state.terminated, mover, 1 - mover),
            jnp.where(jnp.arange(2) == mover, own, -own),
            state.terminated | is_liar,
        )

    def _state(self, dice: Array, bids: Array, player: Array, rewards: Array, terminated: Array) -> DiceState:
        higher = jnp.arange(self.num_bids) > last_bid(bids)
        return DiceState(
            dice=dice,
            bids=bids,
            current_player=player,
            observation=jnp.concatenate([jax.nn.one_hot(dice[player], FACES, dtype=bool).ravel(), bids]),
            rewards=rewards,
            terminated=terminated,
            truncated=jnp.bool_(False),
            legal_action_mask=jnp.append(higher, bids.any()) | terminated,
        )


def last_bid(bids: Array) -> Array:
    """The highest bid; -1 if there is none."""
    return jnp.max(jnp.where(bids, jnp.arange(bids.shape[0]), -1))


def veil(state: Any, player: int) -> Any:
    """The state without the dice of the other player."""
    return state._replace(dice=state.dice.at[1 - player].set(-1))


def squares(state: Any) -> Squares:
    """All bids so far."""
    return [[bid_text(bid) for bid in np.flatnonzero(state.bids).tolist()] or [EMPTY]]


def hands(state: Any) -> tuple[str, str]:
    """The dice of both players, as far as they are known."""
    first, second = ["".join("?" if face < 0 else str(face + 1) for face in dice) for dice in state.dice.tolist()]
    return first, second


def bid_text(bid: int) -> str:
    """`2x5`: at least two fives."""
    return f"{bid // FACES + 1}x{bid % FACES + 1}"


def _game(num_dice: int) -> Game:
    bids = [bid_text(bid) for bid in range(2 * num_dice * FACES)]
    rules = LiarsDice(num_dice)
    each = "one die" if num_dice == 1 else f"{num_dice} dice"
    return Game(
        "liars_dice" if num_dice == 1 else f"liars_dice_{num_dice}",
        f"Liar's dice, {each} each",
        goal=f"Each player has {each}, which the other does not see. A bid such as 2x5 says that there are "
        "two fives or more; sixes count as any face. Bid more, or say liar: then the dice decide.",
        rules=lambda board_size: rules,
        layout=NO_CELLS,
        notation=named([*bids, LIAR]),
        view=View(squares, hands, hands_title="dice", colours=("first", "second")),
        hidden=True,
        veil=veil,
        deals=rules.deals,
    )


LIARS_DICE = _game(1)
LIARS_DICE_2 = _game(2)
