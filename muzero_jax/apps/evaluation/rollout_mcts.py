"""Rollout MCTS, the yardstick opponent: UCT (Kocsis & Szepesvari 2006) with random rollouts by the game's rules.

It is a `Simulator` for the tree of all other searches: a node is a state of the game, its value the result of one
random game from there, and its prior the random order in which actions are first tried. Signs come only from
`discount`, so a player may move twice. With dice, each edge of the tree holds one throw, and rollouts throw their own.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Key

from muzero_jax.apps.evaluation.player import Player, keys_of_chance
from muzero_jax.games.catalogue import GAMES, check_open
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.ops.reductions import first_argmax
from muzero_jax.search import tree
from muzero_jax.search.rules import Row, SearchRules
from muzero_jax.search.simulator import Node, Simulator
from muzero_jax.types import Environment, EnvState, Params, SearchOutput, SearchRoots

# With 1,000 simulations it is level with 0.7 and 1.4 (Hex 5x5, Connect Four), and beats 0.3 and 0.5 (Hex 5x5).
EXPLORATION = 1.0


def rollout_mcts_player(environment: Environment, *, most_simulations: int) -> Player:
    """Plays the most visited action of `rollout_mcts`; its params are the number of simulations, [] int32.

    One compiled program serves all numbers up to `most_simulations`; with 0 it plays uniformly random legal actions.

    Raises ValueError in a game with hidden information.
    """
    check_open(environment, "rollout MCTS")

    def act(num_simulations, key, states):
        found = rollout_mcts(
            environment, key, states, num_simulations=num_simulations, most_simulations=most_simulations
        )
        return found.action

    return Player(f"rollout MCTS ({most_simulations} simulations)", act, stochastic=True)


def rollout_mcts(
    environment: Environment,
    key: Key[Array, ""],
    states: EnvState,
    *,
    num_simulations: int | Array,
    most_simulations: int | None = None,
) -> SearchOutput:
    """Searches B positions at once; `policy` [B, A] is the share of the root's visits, `value` [B] their mean return.

    UCB1 with returns in [-1, 1]: the player to move at a node maximises `mean return + EXPLORATION sqrt(ln N / n)`;
    untried actions come first, in random order. A terminal node backs up its exact reward. Row b uses random numbers of
    `(key, b)`, so rows do not depend on each other. A row whose game has ended is not searched: its policy is 0.

    Memory is (most_simulations + 1) B (16 A + bytes of a state without its observation): 1,000 simulations of 256
    games take 0.14 GB on Hex 5x5. States are stored, because replaying a path would cost a move per level.

    Args:
      most_simulations: the simulations for which there is room, if `num_simulations` is an array.
    """
    root_key, expand_key = jax.random.split(key)
    world = rollouts(environment)
    small = _without_observation(environment, states)
    root = world.root(None, environment.roots(states)._replace(state=small))
    root = root._replace(prior=_order(root_key, small))

    def rule(row: Row) -> Array:
        return first_argmax(ucb_scores(row, EXPLORATION))

    rules = SearchRules(lambda row, _: rule(row), rule, stop_at_ends=True)
    grown = tree.grow(root, world, None, rules, num_simulations, expand_key, most_simulations=most_simulations)
    return summarise(tree.row_of(grown))


def rollouts(environment: Environment) -> Simulator:
    """The simulator: values are results of random games (+1: the player to move wins), priors are random orders."""

    def root(params: Params, roots: SearchRoots) -> Node:
        zeros = jnp.zeros(len(roots.legal_action_mask))
        return Node(roots.legal_action_mask.astype(jnp.float32), zeros, roots.state, zeros, zeros)

    def expand(params: Params, key: Array, action: Array, states: EnvState) -> Node:
        order_key, rollout_key = jax.random.split(key)
        keys = keys_of_chance(key, len(action))
        states, reward, discount, *_ = jax.vmap(environment.move)(states, action, keys)
        states = _without_observation(environment, states)
        value = random_return(environment, rollout_key, states)
        return Node(_order(order_key, states), value, states, reward, discount)

    return Simulator(root, expand)


def ucb_scores(row: Row, exploration: float) -> Float[Array, "B A"]:
    """UCB1 (Kocsis & Szepesvari 2006, section 2.1); untried actions score above all others, ordered by prior."""
    total = row.visits.sum(-1, keepdims=True)
    bonus = jnp.sqrt(jnp.log(jnp.maximum(total, 1)) / jnp.maximum(row.visits, 1))
    tried = jnp.where(row.visits > 0, row.q + exploration * bonus, -jnp.inf)
    return jnp.where((row.visits == 0) & (row.prior > 0), _FIRST + row.prior, tried)


_FIRST = 1e3
"""Above every sum of a mean return and its bonus."""


def random_return(environment: Environment, key: Array, states: EnvState) -> Float[Array, " B"]:
    """The return of uniformly random play to the end, for the player to move; 0 if the game is over."""

    def play(carry):
        count, states, value, weight = carry
        move_key = jax.random.fold_in(key, count)
        action = uniform_legal_action(move_key, states.legal_action_mask)
        keys = keys_of_chance(move_key, len(action))
        states, reward, discount, *_ = jax.vmap(environment.move)(states, action, keys)
        return count + 1, _without_observation(environment, states), value + weight * reward, weight * discount

    zeros = jnp.zeros(states.terminated.shape)
    carry = jnp.int32(0), _without_observation(environment, states), zeros, zeros + 1
    return lax.while_loop(lambda carry: ~carry[1].terminated.all(), play, carry)[2]


def summarise(root: Row) -> SearchOutput:
    """The most visited legal action of the root; the larger mean return breaks ties.

    Without any visit it is the first in random order.
    """
    visits = jnp.where(root.prior > 0, root.visits, 0)
    most = visits.max(-1, keepdims=True)
    action = jnp.argmax(jnp.where(most == 0, root.prior, jnp.where(visits == most, root.q, -jnp.inf)), axis=-1)
    policy = visits / jnp.maximum(visits.sum(-1), 1)[:, None]
    return SearchOutput(action.astype(jnp.int32), policy, (policy * root.q).sum(-1))


def _order(key: Array, states: EnvState) -> Float[Array, "B A"]:
    """Random numbers above 0 for legal actions, 0 for others, and for all if the game is over."""
    legal = states.legal_action_mask & ~states.terminated[:, None]
    return jnp.where(legal, jax.random.uniform(key, legal.shape, minval=0.5), 0.0)


def _without_observation(environment: Environment, states: EnvState) -> EnvState:
    """The states without observations, which are most of their bytes, if the game's rules do not read them."""
    if (
        environment.chance is not None
        or environment.game is None
        or environment.game is not GAMES.get(environment.name)
    ):
        return states
    return states.replace(observation=jnp.zeros((*states.terminated.shape, 0)))
