"""The loss of MuZero: unroll the learned model along the actions played, and compare every head with its target.

Two details that are easily got wrong, both from MuZero's appendix G: the root's losses have weight 1 and each unrolled
step 1/K, and the gradient is halved at the *input of the dynamics* only, so that the heads' gradient into an embedding
stays whole. The unroll is a `scan` written out: a loop would stack what the backward pass needs of every step and take
it apart again (a fifth of an update's time on a CPU, MLPs and towers, K = 4 and 5), and compile hardly sooner.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from muzero_jax.types import Metrics, Model, Params, Targets


class LossWeights(NamedTuple):
    """Factors of the parts of the loss."""

    reward: float = 1.0
    value: float = 1.0
    policy: float = 1.0
    reconstruction: float = 0.0


def scale_gradient(x: Array, scale: float) -> Array:
    """x itself, with its gradient multiplied by `scale`."""
    return x * scale + jax.lax.stop_gradient(x) * (1.0 - scale)


def policy_loss(logits: Float[Array, "N A"], target: Float[Array, "N A"], mask: Float[Array, "N"]) -> Float[Array, "N"]:
    """KL(target || softmax(logits)), zero where `mask` is 0. An action of target probability 0 may have logit -inf."""
    logits = logits.astype(jnp.float32)
    entropy = -jnp.sum(jax.scipy.special.xlogy(target, target), axis=-1)
    return mask * (optax.losses.safe_softmax_cross_entropy(logits, target) - entropy)


def binary_cross_entropy(logits: Float[Array, "*n"], bits: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """-bits log(sigmoid(logits)) - (1 - bits) log(sigmoid(-logits)).

    To 1e-7 of the loss or of 1, whichever is larger: a bit that is known better than that costs nothing. One logarithm,
    and not XLA's log1p, which on a CPU is a call for every number: optax's two took a tenth of an update of Hex 5x5.
    """
    size = jnp.abs(logits)
    # Half of x + |x|, not the larger of x and 0: at 0 it has the derivative 1/2 together with the rest, whatever |x|'s.
    return (logits + size) / 2 - logits * bits + jnp.log(1.0 + jnp.exp(-size))


def reconstruction_loss(
    logits: Float[Array, "N *obs"],
    observation: Float[Array, "N *obs"] | Bool[Array, "N *obs"],
    mask: Float[Array, " N"],
) -> Float[Array, " N"]:
    """Mean binary cross-entropy of an observation's bool planes (squared error of counts), zero where `mask` is 0."""
    target = observation.astype(jnp.float32)
    elementwise = binary_cross_entropy if observation.dtype == bool else optax.losses.l2_loss
    loss = elementwise(logits, target)
    return mask * jnp.mean(loss.reshape(loss.shape[0], -1), axis=-1)


def muzero_loss(
    params: Params,
    model: Model,
    observation: Float[Array, "N F *obs"] | Bool[Array, "N F *obs"],
    legal_action_mask: Bool[Array, "N A"],
    actions: Int[Array, "N K"],
    targets: Targets,
    *,
    weights: LossWeights,
    checkpoint_unroll: bool = False,
) -> tuple[Array, Metrics]:
    """Mean loss of N windows, and its parts.

    Args:
      observation: [N, F, *obs], the first frame's and, where reconstruction has a weight, the K after it.
      legal_action_mask: of each window's first frame. Illegal actions are masked at the root only: further down the
        tree the learned model has no rules, and its policy must learn to avoid them.
      actions: what to unroll (`targets.unroll_actions`).
      checkpoint_unroll: the gradient keeps of each unrolled step the embedding alone and computes the step anew on its
        way back (`jax.checkpoint`): the memory of K steps becomes that of one and of K embeddings, for about a third
        more arithmetic.
    """
    unroll_steps = actions.shape[1]
    root = model.initial_inference(params, observation[:, 0])
    root_logits = jnp.where(legal_action_mask, root.policy_logits, jnp.finfo(jnp.float32).min)
    root_parts = {
        "value": model.scalar_loss(root.value_logits, targets.value[:, 0]),
        "policy": policy_loss(root_logits, targets.policy[:, 0], targets.policy_mask[:, 0]),
    }

    def reconstruct(embedding, observation, mask):
        return {"reconstruction": reconstruction_loss(model.reconstruct(params, embedding), observation, mask)}

    if weights.reconstruction:
        root_parts |= reconstruct(root.embedding, observation[:, 0], targets.policy_mask[:, 0])

    def unroll(embedding, step):
        action, reward, value, policy, policy_mask, *observation = step
        output = model.recurrent_inference(params, scale_gradient(embedding, 0.5), action)
        parts = {
            "reward": model.scalar_loss(output.reward_logits, reward),
            "value": model.scalar_loss(output.value_logits, value),
            "policy": policy_loss(output.policy_logits, policy, policy_mask),
        }
        if weights.reconstruction:
            parts |= reconstruct(output.embedding, observation[0], policy_mask)
        return output.embedding, parts

    steps = (actions, targets.reward, targets.value[:, 1:], targets.policy[:, 1:], targets.policy_mask[:, 1:])
    if weights.reconstruction:
        steps += (observation[:, 1 : unroll_steps + 1],)
    if checkpoint_unroll:
        unroll = jax.checkpoint(unroll, prevent_cse=False)  # in a loop nothing could be merged
    steps = jax.tree.map(lambda x: jnp.moveaxis(x, 1, 0), steps)
    _, unrolled = jax.lax.scan(unroll, root.embedding, steps, unroll=not checkpoint_unroll)

    unrolled = {name: jnp.sum(loss, axis=0) / unroll_steps for name, loss in unrolled.items()}
    parts = {name: jnp.mean(loss + root_parts.get(name, 0.0)) for name, loss in unrolled.items()}
    total = jnp.sum(jnp.stack([getattr(weights, name) * loss for name, loss in parts.items()]))
    metrics = {f"train/{name}_loss": loss for name, loss in parts.items()}
    metrics["train/loss"] = total
    metrics["train/root_value_loss"] = jnp.mean(root_parts["value"])
    return total, metrics
