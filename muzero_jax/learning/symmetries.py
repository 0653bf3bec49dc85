"""Augmentation: a batch turned by random symmetries of the game, so that one game teaches as much as all its images."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Shaped

from muzero_jax.types import Batch, Symmetries


def transform_observation(symmetries: Symmetries, index: Int[Array, ""], observation: Array) -> Array:
    """One observation [*obs] under symmetry `index`."""
    moved = observation.ravel()[symmetries.observation_permutation[index]]
    return jnp.where(symmetries.observation_flip[index], moved == 0, moved).reshape(observation.shape)


def transform_policy(symmetries: Symmetries, index: Int[Array, ""], policy: Shaped[Array, " A"]) -> Shaped[Array, " A"]:
    """One policy, or legal action mask, under symmetry `index`: new[permutation[a]] = old[a]."""
    return policy[jnp.argsort(symmetries.action_permutation, axis=1)[index]]


def augment(batch: Batch, key: Array, *, symmetries: Symmetries) -> Batch:
    """Turns each window by a symmetry drawn uniformly, the same for all of its frames; values and rewards stay.

    With an `outcome_permutation` the codes of chance are outcomes and are turned too, except the last code, which means
    that chance had no part in a move.
    """
    index = jax.random.randint(key, batch.actions.shape[:1], 0, symmetries.action_permutation.shape[0])
    outcomes = symmetries.outcome_permutation
    extras = batch.extras
    if outcomes is not None:
        outcomes = jnp.pad(outcomes, ((0, 0), (0, 1)), constant_values=outcomes.shape[1])
        extras = extras | {"codes": outcomes[index[:, None], extras["codes"]]}

    def of_frames(transform):
        return jax.vmap(jax.vmap(partial(transform, symmetries), (None, 0)))

    def turned(by_action: Array) -> Array:
        return of_frames(transform_policy)(index, by_action)

    targets = batch.targets
    return batch._replace(
        observation=of_frames(transform_observation)(index, batch.observation),
        legal_action_mask=turned(batch.legal_action_mask),
        actions=symmetries.action_permutation[index[:, None], batch.actions],
        targets=targets._replace(policy=turned(targets.policy), by_action=jax.tree.map(turned, targets.by_action)),
        extras=extras,
    )
