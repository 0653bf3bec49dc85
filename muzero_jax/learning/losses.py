"""The loss of MuZero: unroll the learned model along the actions played, then compare each head with its target.

`unroll` (its own module) runs the model, each `Loss` reads the outputs independently of the others, and `total` adds
them up with their weights. `loss` does all of it for any list of terms. The root's losses have weight 1 and each
unrolled step 1/K (MuZero's appendix G).
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

from muzero_jax.learning.unroll import unroll
from muzero_jax.ops.observations import as_numbers
from muzero_jax.types import ACTION_VALUES, LEGAL_LOGITS, Batch, Head, Metrics, Model, Params, Unrolled

Loss = Callable[[Unrolled, Batch], Array]
"""(the model's outputs, the batch with their targets) -> the loss of each window [N]."""


class Term(NamedTuple):
    """One loss of the weighted sum; with weight 0 it is only a metric."""

    name: str
    loss: Loss
    weight: float
    frames: Literal["root", "all"] = "root"  # the frames whose observations and legal moves it reads


def head_term(head: Head) -> Term:
    """The loss of a further head, with its weight."""
    return Term(head.name, partial(head_loss, head=head), head.weight, head.frames)


def loss(
    params: Params,
    batch: Batch,
    *,
    model: Model,
    terms: Sequence[Term],
    checkpoint: bool = False,
    batched: bool = False,
) -> tuple[Array, Metrics]:
    """The weighted sum of the terms, a mean over the batch, and a metric for each term.

    Args:
      params: the weights. batch: N windows. model: unrolled for K steps. terms: the losses and their weights.
      checkpoint, batched: as in `unroll`, but `batched` only for models that round their embeddings.
    """
    outputs = unroll(model, params, batch, checkpoint=checkpoint, batched=batched and model.rounds_embeddings)
    return total(outputs._replace(model=model), batch, terms)


def total(outputs: Unrolled, batch: Batch, terms: Sequence[Term]) -> tuple[Array, Metrics]:
    """The weighted sum of the terms, and each term's mean over the windows, in which they count by `batch.weight`."""
    means = {term.name: jnp.mean(batch.weight * term.loss(outputs, batch)) for term in terms}
    loss = sum((term.weight * means[term.name] for term in terms if term.weight), jnp.float32(0.0))
    return loss, {f"train/{name}_loss": mean for name, mean in means.items()} | {"train/loss": loss}


def value_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The value head's loss, a mean over depths. It counts past a game's end too, where targets are 0."""
    return over_depths(batch.targets.mask * outputs.model.scalar_loss(outputs.value_logits, batch.targets.value))


def root_value_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The value head's loss at the root only, which does not depend on the dynamics."""
    errors = outputs.model.scalar_loss(outputs.value_logits[:, 0], batch.targets.value[:, 0])
    return batch.targets.mask[:, 0] * errors


def reward_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The reward head's loss, a mean over the K moves. It counts past a game's end too, where targets are 0."""
    errors = outputs.model.scalar_loss(outputs.reward_logits[:, 1:], batch.targets.reward)
    return jnp.mean(batch.targets.mask[:, :-1] * errors, axis=1)


def policy_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The policy head's loss: cross-entropy with the search's improved policy, a mean over depths.

    Illegal actions are masked where search masks them: at the root, and deeper down for a model that predicts legal
    moves. Elsewhere the unrolled policies must learn to avoid them.
    """
    logits = legal_policy_logits(outputs, batch)
    return over_depths(batch.targets.policy_mask * cross_entropy(logits, batch.targets.policy))


def legal_policy_logits(outputs: Unrolled, batch: Batch) -> Float[Array, "N K1 A"]:
    """The policy's logits in float32, the lowest finite number for illegal actions where search masks them."""
    logits = outputs.policy_logits.astype(jnp.float32)
    legal = batch.legal_action_mask if LEGAL_LOGITS in outputs.extras else batch.legal_action_mask[:, :1]
    known = legal.shape[1]
    masked = jnp.where(legal, logits[:, :known], jnp.finfo(jnp.float32).min)
    return jnp.concatenate([masked, logits[:, known:]], axis=1)


def advantage_loss(outputs: Unrolled, batch: Batch, *, scale: float) -> Float[Array, "N"]:
    """A policy gradient by the return after the action that was played, less the value that was predicted for it.

    The policy that is learned improves the head by predicted values of the actions (`model_free.improved`), and so by
    their errors as well. With `scale` 1 / (k + h) and the policy loss's weight this gradient takes them out again, to
    first order in the change and on average over moves that the policy draws: its mean is 0 for true values. So the
    predictions are control variates. Of random moves it is right only as far as the policy draws them as often.
    """
    wanted = batch.targets.by_action["action_value"]
    is_known = ~jnp.isnan(wanted)
    surprise = jnp.where(is_known, wanted, 0.0) - jax.lax.stop_gradient(outputs.extras[ACTION_VALUES])
    log_policy = jax.nn.log_softmax(legal_policy_logits(outputs, batch))
    gain = jnp.sum(jnp.where(is_known, scale * surprise * log_policy, 0.0), axis=-1)
    return over_depths(-gain)


def reconstruction_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The loss of predicted observations; an auxiliary loss with which a model learns the rules sooner.

    A mean of binary cross-entropies if observations are of bools, of half squared errors if they hold counts.
    """
    logits = outputs.model.reconstruct(outputs.params, jax.lax.collapse(outputs.embedding, 0, 2))
    observation = batch.observation
    elementwise = binary_cross_entropy if observation.dtype == bool else optax.losses.l2_loss
    errors = elementwise(logits.reshape(observation.shape), as_numbers(observation).astype(jnp.float32))
    return over_depths(batch.targets.alive * jnp.mean(errors.reshape(*errors.shape[:2], -1), axis=-1))


def head_loss(outputs: Unrolled, batch: Batch, *, head: Head) -> Float[Array, "N"]:
    """A further head's loss: of a position as the value's, up to a game's end; of a move as the reward's."""
    predicted = outputs.extras[head.output]
    if head.at == "position":
        return over_depths(batch.targets.alive * head.loss(predicted, head.target(batch)))
    errors = head.loss(predicted[:, 1:], head.target(batch))
    return jnp.mean(batch.targets.mask[:, :-1] * errors, axis=1)


def consistency_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """1 - cosine similarity of each imagined embedding's projection and that of the position's observation.

    (EfficientZero: Ye et al. 2021, section 4.1, which is SimSiam: the observed side gets no gradient.) Steps past a
    game's end have no loss, but count in the batch's mean and variance.
    """
    model = outputs.model
    assert model.project and model.predict_projection, "a model that projects embeddings"
    imagined, observation = (jax.lax.collapse(x[:, 1:], 0, 2) for x in (outputs.embedding, batch.observation))
    predicted = model.predict_projection(outputs.params, model.project(outputs.params, imagined))
    embedding = model.initial_inference(outputs.params, observation).embedding
    observed = jax.lax.stop_gradient(model.project(outputs.params, embedding))
    cosine = optax.losses.cosine_similarity(predicted, observed, epsilon=1e-6)
    return jnp.mean(batch.targets.alive[:, 1:] * (1.0 - cosine.reshape(batch.actions.shape)), axis=1)


def over_depths(errors: Float[Array, "N K1"]) -> Float[Array, "N"]:
    """The root's error, plus the mean of the unrolled steps', if any (MuZero, appendix G: each weighs 1/K)."""
    return errors[:, 0] + (jnp.mean(errors[:, 1:], axis=1) if errors.shape[1] > 1 else 0.0)


def cross_entropy(logits: Float[Array, "*n A"], target: Float[Array, "*n A"]) -> Float[Array, "*n"]:
    """KL(target || softmax(logits)). An action of target probability 0 may have logit -inf."""
    logits = logits.astype(jnp.float32)
    entropy = -jnp.sum(jax.scipy.special.xlogy(target, target), axis=-1)
    return optax.losses.safe_softmax_cross_entropy(logits, target) - entropy


def binary_cross_entropy(logits: Float[Array, "*n"], bits: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """-bits log(sigmoid(logits)) - (1 - bits) log(sigmoid(-logits)).

    Accurate to 1e-7 of the loss or of 1, whichever is larger: a bit that is known better costs nothing. One logarithm
    replaces XLA's log1p, a call for every number on a CPU: optax's two took a tenth of an update of Hex 5x5.
    """
    size = jnp.abs(logits)
    # (x + |x|) / 2 instead of max(x, 0): the sum's derivative at 0 is then 1/2, whatever that of |x| is.
    return (logits + size) / 2 - logits * bits + jnp.log(1.0 + jnp.exp(-size))
