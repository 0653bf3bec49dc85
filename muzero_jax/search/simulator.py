"""Models that a search plans with: the learned one, or the ground-truth model (the game's own rules).

With either, the network gives every position its prior and its value. Both are the same two functions, so MuZero and
AlphaZero differ in nothing else. Searching the same weights either way separates the model's errors from the network's.

A model of chance also has afterstates (Antonoglou et al. 2022, section 4): nodes at which chance acts. Their
values are for the player who moved. The move's edge has its reward and discount 1, the outcome's edge the signed
discount. In a learned model an afterstate is a node like others. The ground-truth model passes it on the way to the
next position, so that the network never judges it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from muzero_jax.ops.conditional import where_each
from muzero_jax.ops.legal_actions import predicted_legal
from muzero_jax.types import DISCOUNT_LOGITS, Chance, Environment, EnvState, Model, NetworkOutput, Params, SearchRoots


class Node(NamedTuple):
    """A new node of each game, as the simulator judges it.

    Below the root of a game with C outcomes a prior has max(A, C) columns: actions or outcomes first, then zeros.
    """

    prior: Array  # [B, A] float32 probabilities
    value: Array  # [B] float32, for the player to move there
    embedding: Any  # leaves [B, ...]
    reward: Array  # [B] float32, of the action that led here, for who took it; 0 at a root
    discount: Array  # [B] float32, signed, of that action; 0 at a root
    is_chance: Array | None = None  # [B] bool, True where chance acts next; None in a game without chance nodes
    chance_parent: "ChanceParent | None" = None  # the chance node before it; None from a simulator that passes none


class ChanceParent(NamedTuple):
    """The afterstate that a simulation passes on its way to a new node."""

    afterstate: Node  # without a value, because nothing judges it
    is_passed: Array  # [B] bool, False if the new node follows its parent directly
    outcome: Array  # [B] int32, of chance, which leads to the new node


class FirstSight(NamedTuple):
    """What the network says of B positions by itself."""

    prior: Array  # [B, A] float32 probabilities, 0 where illegal
    value: Array  # [B] float32, for the player to move
    extras: dict[str, Array]  # `NetworkOutput.extras`


class Simulator(NamedTuple):
    """A model to plan with, as pure functions: the learned one, or the ground-truth model."""

    root: Callable[[Params, SearchRoots], Node]  # (params, B positions) -> their nodes
    expand: Callable[[Params, Array, Array, Any], Node]
    """(params, key, action [B], embedding) -> the nodes that the actions lead to; the key samples chance. At a chance
    node the action is an outcome."""
    num_outcomes: int | None = None  # C; None without chance nodes
    passes_afterstates: bool = False  # a simulation makes two nodes: `Node.chance_parent`, then its own
    shows_tree: bool = False  # the search must return its tree, because somebody looks at it
    judge: Callable[[Params, SearchRoots], FirstSight] | None = None  # the network without a search
    plans: bool = True  # False if there is no model, so that nothing can be searched


def root_node(prior: Any, value: Any, embedding: Any, *, has_chance: bool = False) -> Node:
    """The node of a position to search."""
    return Node(
        prior=prior,
        value=value,
        embedding=embedding,
        reward=jnp.zeros_like(value),
        discount=jnp.zeros_like(value),
        is_chance=jnp.zeros(value.shape, bool) if has_chance else None,
    )


def judge_of(model: Model) -> Callable[[Params, SearchRoots], FirstSight]:
    """The network as `Simulator.judge`."""

    def judge(params, roots):
        output = model.initial_inference(params, roots.observation)
        return FirstSight(policy(output, roots.legal_action_mask), model.to_scalar(output.value_logits), output.extras)

    return judge


def without_model(model: Model) -> Simulator:
    """The network alone, with which nothing can be searched."""

    def root(params, roots):
        found = judge(params, roots)
        return root_node(found.prior, found.value, roots.observation)

    def expand(params, key, action, embedding):
        raise TypeError("there is no model to search with")

    judge = judge_of(model)
    return Simulator(root, expand, judge=judge, plans=False)


def learned_model(model: Model, discount: float) -> Simulator:
    """MuZero's model: each node is one step of the learned dynamics.

    If the network predicts legal moves (`Model.heads`), a move below the root has prior 0 where it predicts that it is
    illegal, unless it predicts so of all moves; otherwise every move is possible there.

    Args:
      model: the network. Its embeddings are the nodes.
      discount: the constant signed discount between two moves; if the network predicts discounts, gamma, and the
        discount is gamma times the sign that the model expects.
    """

    def root(params, roots):
        output = model.initial_inference(params, roots.observation)
        return root_node(policy(output), model.to_scalar(output.value_logits), output.embedding)

    def expand(params, key, action, embedding):
        del key
        return _arrival(model, discount, model.recurrent_inference(params, embedding, action))

    return Simulator(root, expand, judge=judge_of(model))


def learned_chance_model(model: Model, discount: float, *, num_actions: int) -> Simulator:
    """Stochastic MuZero's model (Antonoglou et al. 2022): nodes are states and afterstates in turn.

    Each is one call of the network. Action a < A leads from a state to an afterstate, whose `chance_logits` predict
    what chance does, and A + c leads from there to the next state. With an encoder the last code says that the game is
    over (`learning.chance`), so that nothing after it counts.

    Args:
      discount: as in `learned_model`, of an outcome's edge.
    """
    width = max(num_actions, model.num_codes)

    def root(params, roots):
        output = model.initial_inference(params, roots.observation)
        value = model.to_scalar(output.value_logits)
        embedding = (output.embedding, jnp.zeros(value.shape, bool))
        return root_node(policy(output), value, embedding, has_chance=True)

    def expand(params, key, index, embedding):
        del key
        inner, was_chance = embedding
        output = model.recurrent_inference(params, inner, jnp.where(was_chance, num_actions + index, index))
        node = _arrival(model, discount, output)
        is_over = (index == model.num_codes - 1) & (model.encode_chance is not None)
        outcomes = jax.nn.softmax(output.extras["chance_logits"].astype(jnp.float32))
        return Node(
            prior=jnp.where(was_chance[:, None], padded(node.prior, width), padded(outcomes, width)),
            value=node.value,
            embedding=(node.embedding, ~was_chance),
            reward=jnp.where(was_chance, 0.0, node.reward),
            discount=jnp.where(was_chance, jnp.where(is_over, 0.0, node.discount), 1.0),
            is_chance=~was_chance,
        )

    return Simulator(root, expand, model.num_codes, judge=judge_of(model))


def _arrival(model: Model, discount: float, output: NetworkOutput) -> Node:
    """The node that a move led to."""
    extras = {head.output: output.extras[head.output] for head in model.heads}
    return Node(
        prior=policy(output, predicted_legal(extras)),
        value=model.to_scalar(output.value_logits),
        embedding=output.embedding,
        reward=model.to_scalar(output.reward_logits),
        discount=discount * expected_sign(extras, len(output.value_logits)),
    )


def expected_sign(extras: dict[str, Array], num_games: int) -> Float[Array, "B"]:
    """The sign of a move's discount as the model expects it, in [-1, 1]; 1 if it does not predict it."""
    if DISCOUNT_LOGITS not in extras:
        return jnp.ones(num_games)
    probabilities = jax.nn.softmax(extras[DISCOUNT_LOGITS])
    return probabilities[:, 2] - probabilities[:, 0]


def ground_truth_model(environment: Environment, model: Model) -> Simulator:
    """AlphaZero's model: nodes are the game's own states, and `model` gives their priors and values. Illegal actions
    have prior 0 everywhere, an ended game has value 0.

    Known chance outcomes get their own nodes. Other chance is sampled once for each edge, when it is expanded, and
    later visits reuse that. Searches also make moves in finished games, which must stay as they are (`states.final`).
    The network judges a position at which a time limit ended the game, and moves there lead to it again: the game would
    go on, and nothing more is known of how.
    """
    judge_roots = judge_of(model)

    def judge(params: Params, states: EnvState) -> tuple[Array, Array]:
        found = judge_roots(params, environment.roots(states))
        return found.prior, found.value

    if environment.chance is not None:
        of_chance = _ground_truth_chance_model(environment.chance, environment.num_actions, judge)
        return of_chance._replace(judge=judge_roots)

    def root(params, roots):
        prior, value = judge(params, roots.state)
        return root_node(prior, value, (roots.state, jnp.zeros(value.shape, bool)))

    def expand(params, key, action, embedding):
        states, was_cut = embedding
        moved = jax.vmap(environment.move)(states, action, jax.random.split(key, len(action)))
        discount, is_cut = _past_a_limit(was_cut, moved.discount, moved.is_last)
        prior, value = judge(params, moved.state)
        return Node(
            prior=prior,
            value=jnp.where(discount == 0, 0.0, value),
            embedding=(moved.state, is_cut),
            reward=moved.reward,
            discount=discount,
        )

    return Simulator(root, expand, judge=judge_roots)


def _past_a_limit(was_cut: Array, discount: Array, is_last: Array) -> tuple[Array, Array]:
    """The discount [B] of moves, 1 from positions at which a time limit ended the game, and whether one has now."""
    return jnp.where(was_cut, 1.0, discount), was_cut | (is_last & (discount != 0))


def _ground_truth_chance_model(chance: Chance, num_actions: int, judge: Callable) -> Simulator:
    """The ground-truth model with known chance outcomes. Every simulation ends at a position; nothing else is judged.

    A new move that awaits chance goes directly to its likeliest outcome, past its afterstate (`Node.chance_parent`).
    Which of equally likely outcomes comes first depends on the root (`tie_breaks`).
    """
    width = max(num_actions, chance.num_outcomes)

    def root(params, roots):
        prior, value = judge(params, roots.state)
        order = tie_breaks(roots.observation, chance.num_outcomes)
        never = jnp.zeros(value.shape, bool)
        return root_node(prior, value, (roots.state, never, never, order), has_chance=True)

    def expand(params, key, index, embedding):
        del key
        states, was_chance, was_cut, order = embedding
        moved = jax.vmap(chance.move)(states, jnp.where(was_chance, 0, index))
        is_passed = moved.awaits_chance & ~was_chance
        before_chance = where_each(was_chance, states, moved.state)
        probabilities = order * jax.vmap(chance.probabilities)(before_chance)
        outcome = jnp.where(was_chance, index, jnp.argmax(probabilities, axis=-1).astype(index.dtype))
        resolved = jax.vmap(chance.resolve)(before_chance, outcome)
        results = ((x.state, x.reward, x.discount, x.is_last) for x in (resolved, moved))
        states, reward, discount, is_last = where_each(was_chance | is_passed, *results)
        discount, is_cut = _past_a_limit(was_cut, discount, is_last)
        prior, value = judge(params, states)
        value = jnp.where(discount == 0, 0.0, value)
        afterstate = Node(
            prior=padded(probabilities, width),
            value=jnp.zeros_like(value),  # nothing judges it
            embedding=(moved.state, is_passed, jnp.zeros_like(was_cut), order),
            reward=moved.reward,
            discount=moved.discount,
            is_chance=is_passed,
        )
        never = jnp.zeros_like(is_passed)
        return Node(
            prior=padded(prior, width),
            value=value,
            embedding=(states, never, is_cut, order),
            reward=reward,
            discount=discount,
            is_chance=never,
            chance_parent=ChanceParent(afterstate=afterstate, is_passed=is_passed, outcome=outcome),
        )

    return Simulator(root, expand, chance.num_outcomes, passes_afterstates=True)


def tie_breaks(observation: Array, num_outcomes: int) -> Float[Array, "B C"]:
    """Factors just below 1, which order equally likely outcomes differently for each position.

    If the same one always came first, all values would be biased: a search of few visits would see only dice that show
    a 1. The order depends only on the position, and so do the trees. All actions of a root meet the same outcomes,
    which makes them comparable.
    """
    flat = observation.reshape(observation.shape[0], -1)
    bits = lax.bitcast_convert_type(flat.astype(jnp.float32), jnp.uint32)
    place = jnp.arange(1, flat.shape[1] + 1, dtype=jnp.uint32)
    mixed = (bits ^ (bits >> 15)) * (place * jnp.uint32(_ODD) | 1)
    hashed = (mixed ^ (mixed >> 13)).sum(-1) * jnp.uint32(_ODD)
    stride = next(n for n in range(round(num_outcomes * 0.618), 0, -1) if math.gcd(n, num_outcomes) == 1)
    rank = (jnp.arange(num_outcomes) * stride + (hashed >> 8)[:, None] % num_outcomes) % num_outcomes
    return 1.0 - _TIE * rank.astype(jnp.float32) / num_outcomes


_ODD = 2654435769
"""2^32 over the golden ratio, as in Fibonacci hashing (Knuth, volume 3, section 6.4)."""
_TIE = 1e-5
"""Some float32 steps between each of 32 outcomes, and less than any difference in a game's probabilities."""


def padded(rows: Float[Array, "B n"], width: int) -> Float[Array, "B W"]:
    """The rows with zeros after them."""
    return jnp.pad(rows, ((0, 0), (0, width - rows.shape[-1])))


def policy(output: NetworkOutput, legal_action_mask: Array | None = None) -> Float[Array, "B A"]:
    """The prior as probabilities, 0 where illegal."""
    logits = output.policy_logits.astype(jnp.float32)
    return jax.nn.softmax(logits, where=legal_action_mask)
