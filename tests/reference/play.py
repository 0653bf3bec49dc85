"""For tests of play: positions, and an agent without a network."""

import functools

import jax
import jax.numpy as jnp

from muzero_jax.agent import Agent
from muzero_jax.apps.play.position import new_game, opening_of
from muzero_jax.apps.play.thinking import Thinker
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import make_environment
from muzero_jax.games.own_game import load_environment
from muzero_jax.search.simulator import Simulator
from muzero_jax.types import Model, SearchOutput
from tests.reference.tiny_run import CONFIG


@functools.cache
def opening(name):
    """The opening of a game, of Hex on 4x4; the game's rules are compiled once for all tests."""
    return new_game(make_environment(name, board_size=4 if name == "hex" else None))


@functools.cache
def notation(name, kind="standard"):
    """How the moves of that game are written."""
    return make_notation(opening(name).environment, kind)


@functools.cache
def of_chance(name):
    """The opening of any game, whose dice have a seed."""
    return opening_of(load_environment(name), seed=5)


def played(name, text):
    """A position after moves like `b:a1 w:b2`."""
    position = opening(name)
    for word in text.split():
        colour, move = word.split(":")
        position = position.play(notation(name).read(position.state, move), "bw".index(colour))
    return position


def fake_thinker(*, favourite=0, num_simulations=4, first_sight=0.25, most_value=1.0, **options):
    """Likes `favourite` where it is legal, else the last legal action.

    Values everything at num_simulations / 100, without a search at `first_sight`.
    """

    def make_search(budget):
        def search(params, key, position):
            mask = position.legal_action_mask
            liked = jnp.where(mask[:, favourite], favourite, mask.shape[1] - 1 - jnp.argmax(mask[:, ::-1], axis=1))
            policy = (mask + 3.0 * jax.nn.one_hot(liked, mask.shape[1])) * mask
            policy = policy / policy.sum(axis=1, keepdims=True)
            return SearchOutput(liked.astype(jnp.int32), policy, jnp.full(mask.shape[:1], budget / 100))

        return search

    def head(params, key, position):
        mask = position.legal_action_mask
        return SearchOutput(None, mask / mask.sum(axis=1, keepdims=True), jnp.full(mask.shape[:1], first_sight))

    agent = Agent(
        config=CONFIG,
        environment=make_environment("tic_tac_toe"),
        model=Model(*6 * [None], bound=most_value),
        make_simulator=lambda *_: Simulator(None, None),
        make_search=lambda simulator, budget, noise: make_search(budget),
        num_simulations=num_simulations,
    )
    vars(agent)["_look"] = head  # instead of the network's
    return Thinker(agent, num_simulations=num_simulations, **options)
