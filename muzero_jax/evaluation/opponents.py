"""Everybody who can sit at the other side of the board, as `Player`s that live on the device.

The yardstick is `rollout_mcts_player`: UCT (Kocsis & Szepesvari 2006) with uniformly random rollouts under the true
rules. It is batch-explicit: nodes lie [node, batch, ...], one while-loop descends in all games at once, the node of
simulation i always has index i + 1, and a backup climbs parent pointers with one masked scatter a level. A `vmap` over
per-game tree updates would copy the whole tree at every level. Node states are stored without their observation, which
no rule needs. Signs come from `discount` alone, so the same player may move twice.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Key

from muzero_jax.arithmetic.legal_actions import uniform_legal_action
from muzero_jax.types import (
    Environment,
    EnvState,
    Model,
    Player,
    SearchFn,
    SearchOutput,
)

# With 1,000 simulations level with 0.7 and 1.4 (Hex 5x5, Connect Four), and it beats 0.3 and 0.5 (Hex 5x5).
EXPLORATION = 1.0


def random_player(environment: Environment) -> Player:
    """Plays uniformly over the legal actions."""
    del environment  # every state brings its own mask

    def act(params, key, states):
        del params
        return uniform_legal_action(key, states.legal_action_mask)

    return Player("random", act)


def greedy_prior_player(environment: Environment, model: Model) -> Player:
    """Plays the legal action that the policy head likes best: the network without any search."""

    def act(params, key, states):
        del key
        policy_logits = model.initial_inference(params, jax.vmap(environment.observe)(states)).policy_logits
        return jnp.argmax(jnp.where(states.legal_action_mask, policy_logits, -jnp.inf), axis=-1).astype(jnp.int32)

    return Player("greedy prior", act)


def search_player(environment: Environment, search_fn: SearchFn, name: str = "search") -> Player:
    """Plays the action that `search_fn` chooses; hand in a search without noise."""

    def act(params, key, states):
        return search_fn(params, key, environment.look(states)).action.astype(jnp.int32)

    return Player(name, act)


def rollout_mcts_player(environment: Environment, *, num_simulations: int, exploration: float = EXPLORATION) -> Player:
    """Plays the most visited action of `rollout_mcts`; raises ValueError if it gets no simulation."""
    _check_num_simulations(num_simulations)

    def act(params, key, states):
        del params
        return rollout_mcts(environment, key, states, num_simulations=num_simulations, exploration=exploration).action

    return Player(f"rollout MCTS ({num_simulations} simulations)", act)


def rollout_mcts(
    environment: Environment, key: Key[Array, ""], states: EnvState, *, num_simulations: int, exploration: float
) -> SearchOutput:
    """Searches B positions at once; `policy` [B, A] is the share of the root's visits, `value` [B] their mean return.

    UCB1 with returns in [-1, 1]: the node's mover maximises `mean return + exploration sqrt(ln N / n)`; actions never
    tried come first, in random order. A terminal node backs up its exact reward. Row b draws from `(key, b)` only, so
    it does not depend on the other rows. A row whose game has ended searches nothing: its policy is 0.

    Memory is (num_simulations + 1) B (12 A + bytes of a state without its observation): 1,000 simulations of 256
    games take 0.11 GB on Hex 5x5 and 1.4 GB on 19x19. States are stored because replaying the path costs a move a
    level, and such moves (in rollouts) are half of the time or more already.
    """
    _check_num_simulations(num_simulations)

    def simulate(simulation, tree):
        node, action, can_expand = _descend(tree, exploration, jax.random.fold_in(expand_key, simulation))
        tree, node = _expand(environment, tree, simulation + 1, node, action, can_expand)
        new_states = jax.tree.map(lambda nodes: nodes[simulation + 1], tree.states)
        value = _rollout(environment, jax.random.fold_in(rollout_key, simulation), new_states)
        return _backup(tree, node, jnp.where(can_expand, value, 0))

    expand_key, rollout_key = jax.random.split(key)
    tree = lax.fori_loop(0, num_simulations, simulate, _new_tree(_without_observation(states), num_simulations + 1))
    return _summary(tree)


class _Tree(NamedTuple):
    """B trees of N nodes. Node 0 is the root, node i + 1 simulation i's: unreachable where it met a game's end."""

    visits: Array  # [N, B, A] float32, simulations that took each action
    returns: Array  # [N, B, A] float32, sum of their returns for the node's mover; -inf where illegal, or game over
    children: Array  # [N, B, A] int32, the node that a visited action leads to
    parent: Array  # [N, B] int32
    action: Array  # [N, B] int32, taken in the parent
    reward: Array  # [N, B] float32, of that action
    discount: Array  # [N, B] float32, of that action
    states: EnvState  # leaves [N, B, ...], observations of size 0


def _new_tree(states: EnvState, num_nodes: int) -> _Tree:
    """Every tree is its root alone."""
    edge_shape = (num_nodes, *states.legal_action_mask.shape)
    per_node = jnp.zeros(edge_shape[:2])
    return _Tree(
        visits=jnp.zeros(edge_shape),
        returns=jnp.zeros(edge_shape).at[0].set(_empty_returns(states)),
        children=jnp.zeros(edge_shape, jnp.int32),
        parent=per_node.astype(jnp.int32),
        action=per_node.astype(jnp.int32),
        reward=per_node,
        discount=per_node,
        states=jax.tree.map(lambda x: jnp.zeros((num_nodes, *x.shape), x.dtype).at[0].set(x), states),
    )


def _without_observation(states: EnvState) -> EnvState:
    """No rule reads it, and it is most of a state's bytes."""
    return states.replace(observation=jnp.zeros((*states.terminated.shape, 0)))


def _empty_returns(states: EnvState) -> Float[Array, "B A"]:
    """0 where an action may be taken. pgx calls every action legal once the game is over, hence `terminated`."""
    return jnp.where(states.legal_action_mask & ~states.terminated[:, None], 0.0, -jnp.inf)


def _descend(tree: _Tree, exploration: float, key: Array) -> tuple[Array, Array, Array]:
    """Follow UCB1 until a node has an untried action or ends the game: (node [B], untried action [B], has one [B])."""
    rows = jnp.arange(tree.parent.shape[1])

    def follow(carry):
        node, _, _ = carry
        visits, returns = tree.visits[node, rows], tree.returns[node, rows]
        untried = (returns == 0) & (visits == 0)
        bonus = jnp.sqrt(jnp.log(jnp.maximum(visits.sum(-1, keepdims=True), 1)) / jnp.maximum(visits, 1))
        best = jnp.argmax(returns / jnp.maximum(visits, 1) + exploration * bonus, axis=-1)
        is_inner = (returns > -jnp.inf).any(-1) & ~untried.any(-1)
        return jnp.where(is_inner, tree.children[node, rows, best], node), untried, is_inner

    at_root = jnp.zeros_like(rows), jnp.zeros(tree.visits.shape[1:], bool), jnp.ones_like(rows, bool)
    node, untried, _ = lax.while_loop(lambda carry: carry[2].any(), follow, at_root)
    return node, uniform_legal_action(key, untried), untried.any(-1)


def _expand(
    environment: Environment, tree: _Tree, index: Array, node: Array, action: Array, can_expand: Array
) -> tuple[_Tree, Array]:
    """Make node `index` of every tree that can expand, and return the node that each simulation ends in."""
    rows = jnp.arange(node.shape[0])
    states, reward, discount, _ = jax.vmap(environment.move)(jax.tree.map(lambda x: x[node, rows], tree.states), action)
    states = _without_observation(states)
    tree = tree._replace(
        returns=tree.returns.at[index].set(_empty_returns(states)),
        children=tree.children.at[jnp.where(can_expand, node, index), rows, action].set(index),
        parent=tree.parent.at[index].set(node),
        action=tree.action.at[index].set(action),
        reward=tree.reward.at[index].set(reward),
        discount=tree.discount.at[index].set(discount),
        states=jax.tree.map(lambda nodes, new: nodes.at[index].set(new), tree.states, states),
    )
    return tree, jnp.where(can_expand, index, node)


def _rollout(environment: Environment, key: Array, states: EnvState) -> Float[Array, " B"]:
    """Return of uniformly random play to the end, for the player to move; 0 where the game is over."""

    def play(carry):
        count, states, value, weight = carry
        action = uniform_legal_action(jax.random.fold_in(key, count), states.legal_action_mask)
        states, reward, discount, _ = jax.vmap(environment.move)(states, action)
        return count + 1, _without_observation(states), value + weight * reward, weight * discount

    zeros = jnp.zeros(states.terminated.shape)
    carry = jnp.int32(0), states, zeros, zeros + 1
    return lax.while_loop(lambda carry: ~carry[1].terminated.all(), play, carry)[2]


def _backup(tree: _Tree, node: Array, value: Array) -> _Tree:
    """Add the return of the line from the root to `node`, whose mover expects `value`, at every action along it."""
    rows = jnp.arange(node.shape[0])

    def climb(carry):
        visits, returns, node, value = carry
        value = tree.reward[node, rows] + tree.discount[node, rows] * value
        parent = jnp.where(node > 0, tree.parent[node, rows], tree.parent.shape[0])  # past the end: dropped
        edge = parent, rows, tree.action[node, rows]
        visits, returns = visits.at[edge].add(1, mode="drop"), returns.at[edge].add(value, mode="drop")
        return visits, returns, jnp.where(node > 0, parent, 0), value

    carry = tree.visits, tree.returns, node, value
    visits, returns, _, _ = lax.while_loop(lambda carry: (carry[2] > 0).any(), climb, carry)
    return tree._replace(visits=visits, returns=returns)


def _summary(tree: _Tree) -> SearchOutput:
    """The most visited action of the root, ties by mean return."""
    visits, returns = tree.visits[0], tree.returns[0]
    mean = returns / jnp.maximum(visits, 1)
    action = jnp.argmax(jnp.where(visits == visits.max(-1, keepdims=True), mean, -jnp.inf), axis=-1)
    total = jnp.maximum(visits.sum(-1), 1)
    value = jnp.where(visits > 0, returns, 0).sum(-1) / total
    return SearchOutput(action.astype(jnp.int32), visits / total[:, None], value)


def _check_num_simulations(num_simulations: int) -> None:
    if num_simulations < 1:
        raise ValueError(f"Rollout MCTS needs at least 1 simulation, not {num_simulations}; raise its budget.")
