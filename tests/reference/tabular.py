"""A model that is a table, so that every number in a search tree can be worked out by hand."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from muzero_jax.types import Model, NetworkOutput


class Table(NamedTuple):
    """The rules of a tiny world, as params; an observation, and an embedding, is the index of a state ([N, 1])."""

    reward: np.ndarray  # [states, A], of the action, for who takes it
    successor: np.ndarray  # [states, A]
    value: np.ndarray  # [states], what the value head says
    policy_logits: np.ndarray  # [states, A]


def make_table(reward, successor, value, policy_logits=None) -> Table:
    """From nested lists; a uniform policy unless one is given."""
    reward = np.asarray(reward, np.float32)
    logits = np.zeros_like(reward) if policy_logits is None else np.asarray(policy_logits, np.float32)
    return Table(reward, np.asarray(successor, np.int32), np.asarray(value, np.float32), logits)


def make_bandit(arms, value=0.0, policy_logits=None) -> Table:
    """One choice among `arms`; nothing happens after it."""
    nothing = [0.0] * len(arms)
    logits = None if policy_logits is None else [policy_logits, nothing]
    return make_table([arms, nothing], [[1] * len(arms)] * 2, [value, 0.0], logits)


def _say(table: Table, state, reward) -> NetworkOutput:
    return NetworkOutput(state[:, None], reward[:, None], table.value[state][:, None], table.policy_logits[state])


def _initial_inference(table: Table, observation) -> NetworkOutput:
    return _say(table, observation[:, 0], jnp.zeros(observation.shape[0]))


def _recurrent_inference(table: Table, embedding, action) -> NetworkOutput:
    state = embedding[:, 0]
    return _say(table, table.successor[state, action], table.reward[state, action])


TABULAR = Model(
    init=lambda key: None,
    initial_inference=_initial_inference,
    recurrent_inference=_recurrent_inference,
    reconstruct=lambda params, embedding: embedding,
    to_scalar=lambda logits: logits[..., 0],
    scalar_loss=lambda logits, target: (logits[..., 0] - target) ** 2,
)
