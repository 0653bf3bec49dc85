"""The loss of MuZero: unroll the learned model along the actions played, then compare each head with its target.

`unroll` runs the model; a `Loss` reads what it said and knows no other loss; `total` weighs and adds them.

Two details that are easily got wrong, both from MuZero's appendix G: the root's losses have weight 1 and each unrolled
step 1/K, and the gradient is halved at the *input of the dynamics* only, so that the heads' gradient into an embedding
stays whole. The unroll is a `scan` written out: a loop would stack what the backward pass needs of every step and take
it apart again (a fifth of an update's time on a CPU, MLPs and towers, K = 4 and 5), and compile hardly sooner.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float

from muzero_jax.types import Batch, Metrics, Model, Params, Unrolled

Loss = Callable[[Unrolled, Batch], Array]
"""(what the model said, what it should have said) -> the loss of each window [N]."""
ScalarLoss = Callable[[Array, Array], Array]
"""`Model.scalar_loss`."""


class Term(NamedTuple):
    """One loss in the sum of them; with weight 0 it is a metric and nothing learns from it."""

    name: str
    loss: Loss
    weight: float


def total(outputs: Unrolled, batch: Batch, terms: Sequence[Term]) -> tuple[Array, Metrics]:
    """The weighted sum of the terms, a mean over windows that counts each by `batch.weight`; and each term's mean."""
    means = {term.name: jnp.mean(batch.weight * term.loss(outputs, batch)) for term in terms}
    loss = sum((term.weight * means[term.name] for term in terms if term.weight), jnp.float32(0.0))
    return loss, {f"train/{name}_loss": mean for name, mean in means.items()} | {"train/loss": loss}


def unroll(
    model: Model, params: Params, batch: Batch, *, reconstruct: bool = False, checkpoint: bool = False
) -> Unrolled:
    """The model's outputs for each window's first position, and after each of the K actions.

    Args:
      reconstruct: read the observations out of the embeddings too.
      checkpoint: the gradient keeps of each unrolled step the embedding alone and computes the step anew on its way
        back (`jax.checkpoint`): the memory of K steps becomes that of one and of K embeddings, for about a third more
        arithmetic.
    """

    def heads(output):
        observation = model.reconstruct(params, output.embedding) if reconstruct else None
        return output.reward_logits, output.value_logits, output.policy_logits, observation

    def imagine(embedding, action):
        output = model.recurrent_inference(params, scale_gradient(embedding, 0.5), action)
        return output.embedding, heads(output)

    root = model.initial_inference(params, batch.observation[:, 0])
    if checkpoint:
        imagine = jax.checkpoint(imagine, prevent_cse=False)  # in a loop nothing could be merged
    _, steps = jax.lax.scan(imagine, root.embedding, jnp.moveaxis(batch.actions, 1, 0), unroll=not checkpoint)
    reward, *others = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), steps)

    def join(first, rest):
        return jnp.concatenate([first[:, None], rest], axis=1)

    return Unrolled(reward, *jax.tree.map(join, heads(root)[1:], tuple(others)))


def value_loss(outputs: Unrolled, batch: Batch, *, scalar_loss: ScalarLoss) -> Float[Array, "N"]:
    """The value head against its targets, past a game's end too, where they are 0."""
    return over_depths(batch.targets.mask * scalar_loss(outputs.value_logits, batch.targets.value))


def root_value_loss(outputs: Unrolled, batch: Batch, *, scalar_loss: ScalarLoss) -> Float[Array, "N"]:
    """The value head's loss at the root alone: the part that owes nothing to the dynamics."""
    return batch.targets.mask[:, 0] * scalar_loss(outputs.value_logits[:, 0], batch.targets.value[:, 0])


def reward_loss(outputs: Unrolled, batch: Batch, *, scalar_loss: ScalarLoss) -> Float[Array, "N"]:
    """The reward head against the K rewards, past a game's end too; a root has none."""
    errors = scalar_loss(outputs.reward_logits, batch.targets.reward)
    return jnp.mean(batch.targets.mask[:, :-1] * errors, axis=1)


def policy_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The policy head against what search improved it to.

    Illegal actions are masked at the root, as in search. Deeper down there are no rules to ask, so the unrolled
    policies must learn to avoid them.
    """
    logits = outputs.policy_logits.astype(jnp.float32)
    root = jnp.where(batch.legal_action_mask, logits[:, 0], jnp.finfo(jnp.float32).min)
    logits = jnp.concatenate([root[:, None], logits[:, 1:]], axis=1)
    return over_depths(batch.targets.policy_mask * cross_entropy(logits, batch.targets.policy))


def reconstruction_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """Imagined observations against those that came; an auxiliary loss, which teaches the rules sooner."""
    assert outputs.observation_logits is not None, "unroll with reconstruct=True"
    observation = batch.observation[:, : outputs.observation_logits.shape[1]]
    return over_depths(batch.targets.policy_mask * observation_error(outputs.observation_logits, observation))


def over_depths(errors: Float[Array, "N K1"]) -> Float[Array, "N"]:
    """The root's error, plus the mean of the unrolled steps' (MuZero, appendix G: each weighs 1/K)."""
    return errors[:, 0] + jnp.mean(errors[:, 1:], axis=1)


def scale_gradient(x: Array, scale: float) -> Array:
    """x itself, with its gradient multiplied by `scale`."""
    return x * scale + jax.lax.stop_gradient(x) * (1.0 - scale)


def cross_entropy(logits: Float[Array, "*n A"], target: Float[Array, "*n A"]) -> Float[Array, "*n"]:
    """KL(target || softmax(logits)). An action of target probability 0 may have logit -inf."""
    logits = logits.astype(jnp.float32)
    entropy = -jnp.sum(jax.scipy.special.xlogy(target, target), axis=-1)
    return optax.losses.safe_softmax_cross_entropy(logits, target) - entropy


def binary_cross_entropy(logits: Float[Array, "*n"], bits: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """-bits log(sigmoid(logits)) - (1 - bits) log(sigmoid(-logits)).

    To 1e-7 of the loss or of 1, whichever is larger: a bit that is known better than that costs nothing. One logarithm,
    and not XLA's log1p, which on a CPU is a call for every number: optax's two took a tenth of an update of Hex 5x5.
    """
    size = jnp.abs(logits)
    # Half of x + |x|, not the larger of x and 0: with the rest its derivative at 0 is 1/2, for any derivative of |x|.
    return (logits + size) / 2 - logits * bits + jnp.log(1.0 + jnp.exp(-size))


def observation_error(
    logits: Float[Array, "N K1 *obs"], observation: Float[Array, "N K1 *obs"] | Bool[Array, "N K1 *obs"]
) -> Float[Array, "N K1"]:
    """Mean binary cross-entropy of an observation's bool planes; half the squared error where it holds counts."""
    elementwise = binary_cross_entropy if observation.dtype == bool else optax.losses.l2_loss
    errors = elementwise(logits, observation.astype(jnp.float32))
    return jnp.mean(errors.reshape(*errors.shape[:2], -1), axis=-1)
