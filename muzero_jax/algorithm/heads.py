"""The built-in heads beyond policy, value and reward: each with its size, target and loss in one place.

Networks read them out in the order of `build_heads`, the contract requires them, losses and search find them by name.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from muzero_jax.config.config import Config
from muzero_jax.learning.losses import binary_cross_entropy, cross_entropy
from muzero_jax.types import ACTION_VALUES, DISCOUNT_LOGITS, LEGAL_LOGITS, Batch, Environment, Head


def discount_target(batch: Batch) -> Float[Array, "N K 3"]:
    """A one-hot of each move's next turn: the other's, none because the game ended, the mover's again.

    Past a game's end it is the end, just as the value's target is 0 there.
    """
    return jax.nn.one_hot(jnp.sign(batch.targets.discount).astype(jnp.int32) + 1, 3)


def known_squares(predicted: Float[Array, "*n A"], target: Float[Array, "*n A"]) -> Float[Array, "*n"]:
    """The sum of the squared errors where the target is known; elsewhere it is NaN."""
    is_known = ~jnp.isnan(target)
    return jnp.sum(jnp.square(jnp.where(is_known, predicted - jnp.where(is_known, target, 0.0), 0.0)), axis=-1)


LEGALITY = Head(
    name="legality",
    output=LEGAL_LOGITS,
    size=None,
    at="position",
    loss=lambda logits, bits: jnp.mean(binary_cross_entropy(logits, bits), axis=-1),
    target=lambda batch: batch.legal_action_mask.astype(jnp.float32),
    frames="all",
)
"""Which actions are legal in a position."""
DISCOUNT = Head(
    name="discount",
    output=DISCOUNT_LOGITS,
    size=3,
    at="move",
    loss=cross_entropy,
    target=discount_target,
)
"""Whose turn is next, and whether the game is over."""
REGRET = Head(
    name="regret",
    output="regret",
    size=1,
    at="position",
    loss=known_squares,
    target=lambda batch: batch.targets.extras["regret"][..., None],
)
"""How far the return of a position will be from the value that the search gave it (RGSC: arXiv 2602.20809)."""
ACTION_VALUE = Head(
    name="action_value",
    output=ACTION_VALUES,
    size=None,
    at="position",
    loss=known_squares,
    target=lambda batch: batch.targets.by_action["action_value"],
)
"""The return after each action. What self-play without a search improves its policy by (`search.model_free`)."""


def build_heads(config: Config, environment: Environment) -> tuple[Head, ...]:
    """The heads that the config's network has beyond policy, value and reward."""
    found = []
    if config.model == "learned_legality":
        found.append(LEGALITY._replace(weight=config.optimiser.legality_weight))
    if predicts_discount(config, environment):
        found.append(DISCOUNT._replace(weight=config.optimiser.discount_weight))
    if config.self_play.starts == "regret":
        found.append(REGRET)
    if config.search.policy == "none":
        found.append(ACTION_VALUE._replace(weight=config.optimiser.action_value_weight))
    return tuple(found)


def predicts_discount(config: Config, environment: Environment) -> bool:
    """Whether the dynamics predict the signed discount: if the config says so, or if the game's is not constant."""
    return config.learns_dynamics and (config.network.predict_discount or environment.discount is None)
