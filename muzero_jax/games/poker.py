"""Kuhn poker and Leduc hold'em: pgx's rules, where a player sees the own card, the open card and all actions in order.

pgx's own observations are no information states: in Kuhn poker they show no pass, and in Leduc hold'em the chips, but
not the order of the bets. Rewards are chips.
"""

import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from pgx.kuhn_poker import KuhnPoker
from pgx.leduc_holdem import LeducHoldem

from muzero_jax.games.game import Game
from muzero_jax.games.layout import NO_CELLS
from muzero_jax.games.notation import named
from muzero_jax.games.view import EMPTY, Squares, View

CARDS = "JQK"
UNKNOWN = "?"
KUHN_ACTIONS = ("bet", "pass")
LEDUC_ACTIONS = ("call", "raise", "fold")


class PokerState(NamedTuple):
    """pgx's state, with all actions so far."""

    game: Any  # pgx's own
    history: Array  # [M] int32, each action + 1; 0 if not made yet
    first_player: Array  # [] int32, the seat that acts first
    current_player: Array
    observation: Array
    rewards: Array
    terminated: Array
    truncated: Array
    legal_action_mask: Array


class Poker:
    """A game of cards by pgx's rules, with the whole information state as observation.

    Args:
      rules: pgx's `Env`. deck: all cards. longest: M, the most actions in a game.
    """

    num_players = 2

    def __init__(self, rules: Any, *, deck: tuple[int, ...], longest: int):
        self._rules = rules
        self._deck = deck
        self._longest = longest

    def init(self, key: Array) -> PokerState:
        """A new deal."""
        return self._start(self._rules.init(key))

    def deals(self) -> tuple[Any, np.ndarray]:
        """All deals, leaves [D, ...], each with the first seat to act, and their probabilities."""
        game = self._rules.init(jax.random.key(0))
        game = game.replace(current_player=jnp.int32(0))
        if hasattr(game, "_first_player"):
            game = game.replace(_first_player=jnp.int32(0))
        hands = list(itertools.permutations(self._deck, game._cards.shape[0]))
        cards, count = np.unique(hands, axis=0, return_counts=True)
        dealt = jax.vmap(lambda cards: self._start(game.replace(_cards=cards)))(jnp.asarray(cards, jnp.int32))
        return dealt, count / count.sum()

    def _start(self, game: Any) -> PokerState:
        return self._state(game, jnp.zeros(self._longest, jnp.int32), game.current_player)

    def step(self, state: PokerState, action: Array, key: Array | None = None) -> PokerState:
        """One action; after a game's end nothing changes."""
        del key
        made = jnp.sum(state.history > 0)
        history = state.history.at[made].set(jnp.where(state.terminated, 0, action + 1), mode="drop")
        return self._state(self._rules.step(state.game, action), history, state.first_player)

    def _state(self, game: Any, history: Array, first_player: Array) -> PokerState:
        own = jax.nn.one_hot(game._cards[game.current_player], len(CARDS))
        table = jax.nn.one_hot(open_card(game), len(CARDS))
        actions = jax.nn.one_hot(history - 1, game.legal_action_mask.shape[0])
        return PokerState(
            game=game,
            history=history,
            first_player=first_player,
            current_player=game.current_player,
            observation=jnp.concatenate([own, table, actions.ravel()]) > 0,
            rewards=game.rewards,
            terminated=game.terminated,
            truncated=game.truncated,
            legal_action_mask=game.legal_action_mask | game.terminated,
        )


def open_card(game: Any) -> Array:
    """The open card; -1 if there is none, or none yet. An action that ends the game also ends its round, as in pgx."""
    if game._cards.shape[0] == 2:
        return jnp.int32(-1)
    return jnp.where(game._round > game.terminated, game._cards[2], -1)


def veil(state: Any, player: int) -> Any:
    """The state without the card of the other player."""
    return state._replace(game=state.game.replace(_cards=state.game._cards.at[1 - player].set(-1)))


def squares(state: Any, *, actions: tuple[str, ...]) -> Squares:
    """The open card, if there is one, and all actions so far."""
    card = int(open_card(state.game))
    made = [actions[action - 1] for action in np.asarray(state.history).tolist() if action]
    return [[*([CARDS[card]] if card >= 0 else []), *made] or [EMPTY]]


def hands(state: Any) -> tuple[str, str]:
    """The cards of who acts first and of the other, as far as they are known."""
    cards = [UNKNOWN if card < 0 else CARDS[card] for card in np.asarray(state.game._cards).tolist()]
    first = int(state.first_player)
    return cards[first], cards[1 - first]


def _game(name: str, title: str, goal: str, make: Callable[[], Poker], actions: tuple[str, ...]) -> Game:
    rules = functools.cache(make)  # pgx's rules start JAX
    return Game(
        name,
        title,
        goal=goal,
        rules=lambda board_size: rules(),
        turns_alternate=name == "kuhn_poker",  # after a call in Leduc's first round its caller may act again
        layout=NO_CELLS,
        notation=named(list(actions)),
        view=View(functools.partial(squares, actions=actions), hands, colours=("first", "second")),
        is_for_points=True,
        hidden=True,
        veil=veil,
        deals=lambda: rules().deals(),
    )


KUHN_POKER = _game(
    "kuhn_poker",
    "Kuhn poker",
    "Three cards, J, Q and K; each player has one and has paid a chip. A bet is one chip more; who passes after a bet "
    "folds. The higher card wins.",
    lambda: Poker(KuhnPoker(), deck=(0, 1, 2), longest=3),
    KUHN_ACTIONS,
)
LEDUC_HOLDEM = _game(
    "leduc_holdem",
    "Leduc hold'em",
    "Six cards, two each of J, Q and K; each player has one and has paid a chip. Then a card is opened, which makes a "
    "pair with its like. Raises are 2 chips before that and 4 after it, two at most each time. A pair wins, else the "
    "higher card.",
    lambda: Poker(LeducHoldem(), deck=(0, 0, 1, 1, 2, 2), longest=8),
    LEDUC_ACTIONS,
)
