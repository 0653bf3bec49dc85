"""The loss of MuZero: unroll the learned model along the actions played, then compare each head with its target.

`unroll` runs the model; a `Loss` reads its outputs and knows no other loss; `total` weighs and adds them. `loss` is
all of it, for any list of terms; `muzero_terms` are the usual ones.

Two details that are easily got wrong, both from MuZero's appendix G: the root's losses have weight 1 and each unrolled
step 1/K, and the gradient is halved at the *input of the dynamics* only, so that the heads' gradient into an embedding
stays whole. The unroll is a `scan` written out: a loop would stack what the backward pass needs of every step and take
it apart again (a fifth of an update's time on a CPU, MLPs and towers, K = 4 and 5), and compile hardly sooner.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from muzero_jax.types import Batch, Metrics, Model, Params, Unrolled

Loss = Callable[[Unrolled, Batch], Array]
"""(the model's outputs, the batch with their targets) -> the loss of each window [N]."""
ScalarLoss = Callable[[Array, Array], Array]
"""`Model.scalar_loss`."""


class Term(NamedTuple):
    """One loss in the sum of them; with weight 0 it is a metric and nothing learns from it."""

    name: str
    loss: Loss
    weight: float
    reads: tuple[str, ...] = ()  # of `ON_REQUEST`, what the loss reads


ON_REQUEST = ("observation_logits", "projection", "legal_logits")
"""Fields of `Unrolled` for which a batch holds more, or the model is run more, if a term reads them: the first two want
the observations of all K + 1 frames, the last one their legal moves."""


def reads(terms: Sequence[Term]) -> frozenset[str]:
    """The fields of `ON_REQUEST` that any of the terms reads."""
    return frozenset(name for term in terms for name in term.reads)


def muzero_terms(scalar_loss: ScalarLoss, weights: Mapping[str, float]) -> tuple[Term, ...]:
    """The losses of MuZero (Schrittwieser et al. 2020, equation 1 and appendix G), and those that options add.

    Args:
      scalar_loss: `Model.scalar_loss`, for values and rewards.
      weights: of each loss by its name (reward, value, policy, root_value, reconstruction, consistency, legality,
        discount); one that is not named is left out.
    """
    known = (
        Term("reward", partial(reward_loss, scalar_loss=scalar_loss), 0.0),
        Term("value", partial(value_loss, scalar_loss=scalar_loss), 0.0),
        Term("policy", policy_loss, 0.0),
        Term("root_value", partial(root_value_loss, scalar_loss=scalar_loss), 0.0),
        Term("reconstruction", reconstruction_loss, 0.0, ("observation_logits",)),
        Term("consistency", consistency_loss, 0.0, ("projection",)),
        Term("legality", legality_loss, 0.0, ("legal_logits",)),
        Term("discount", discount_loss, 0.0),
    )
    return tuple(term._replace(weight=weights[term.name]) for term in known if term.name in weights)


def loss(
    params: Params,
    batch: Batch,
    *,
    model: Model,
    terms: Sequence[Term],
    checkpoint: bool = False,
    abreast: bool = False,
) -> tuple[Array, Metrics]:
    """The weighted sum of the terms for these weights, a mean over the batch, and a metric for each term.

    Args:
      params: the weights. batch: N windows. model: unrolled for K steps. terms: the losses and their weights.
      checkpoint, abreast: as `unroll`'s.
    """
    wanted = reads(terms)
    outputs = unroll(
        model,
        params,
        batch,
        reconstruct="observation_logits" in wanted,
        consistency="projection" in wanted,
        checkpoint=checkpoint,
        abreast=abreast,
    )
    return total(outputs, batch, terms)


def total(outputs: Unrolled, batch: Batch, terms: Sequence[Term]) -> tuple[Array, Metrics]:
    """The weighted sum of the terms, a mean over windows that counts each by `batch.weight`; and each term's mean."""
    means = {term.name: jnp.mean(batch.weight * term.loss(outputs, batch)) for term in terms}
    loss = sum((term.weight * means[term.name] for term in terms if term.weight), jnp.float32(0.0))
    return loss, {f"train/{name}_loss": mean for name, mean in means.items()} | {"train/loss": loss}


def unroll(
    model: Model,
    params: Params,
    batch: Batch,
    *,
    reconstruct: bool = False,
    consistency: bool = False,
    checkpoint: bool = False,
    abreast: bool = False,
) -> Unrolled:
    """The model's outputs for each window's first position, and after each of the K actions; K may be 0.

    Args:
      batch: N windows; observations [N, F, *obs] and actions [N, K] are read.
      reconstruct: read the observations out of the embeddings too.
      consistency: project the embeddings too, those imagined and those of the observations that came.
      checkpoint: the gradient keeps of each unrolled step the embedding alone and computes the step anew on its way
        back (`jax.checkpoint`): the memory of K steps becomes that of one and of K embeddings, for about a third more
        arithmetic.
      abreast: for a model that rounds its embeddings, imagine all K moves at once, when it is known where each starts:
        the same, with a third of the kernels, for about a tenth more arithmetic.
    """

    def of_position(output):
        return {
            "value_logits": output.value_logits,
            "policy_logits": output.policy_logits,
            "legal_logits": output.legal_logits,
            "observation_logits": model.reconstruct(params, output.embedding) if reconstruct else None,
        }

    def of_move(output):
        return {
            "reward_logits": output.reward_logits,
            "discount_logits": output.discount_logits,
            "projection": _predict_projection(model, params, output.embedding) if consistency else None,
        }

    def imagine(embedding, action):
        output = model.recurrent_inference(params, scale_gradient(embedding, 0.5), action)
        return output.embedding, (of_move(output), of_position(output))

    root = model.initial_inference(params, batch.observation[:, 0])
    first = jax.tree.map(lambda x: x[:, None], of_position(root))
    if not batch.actions.shape[1]:
        return Unrolled(None, **first)
    if abreast:
        starts = _starts(model, params, root.embedding, batch.actions)
        rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (starts, batch.actions))
        moves, rest = jax.tree.map(lambda x: x.reshape(*batch.actions.shape, *x.shape[1:]), imagine(*rows)[1])
    else:
        if checkpoint:
            imagine = jax.checkpoint(imagine, prevent_cse=False)  # in a loop nothing could be merged
        _, steps = jax.lax.scan(imagine, root.embedding, jnp.moveaxis(batch.actions, 1, 0), unroll=not checkpoint)
        moves, rest = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), steps)
    positions = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), first, rest)
    observed = _observed(model, params, batch.observation[:, 1:]) if consistency else None
    return Unrolled(**moves, **positions, observed_projection=observed)


def _starts(model: Model, params: Params, root: Array, actions: Int[Array, "N K"]) -> Float[Array, "N K *e"]:
    """The embedding that each of the K moves starts from, without a gradient."""
    starts = [root]
    for k in range(actions.shape[1] - 1):
        starts.append(model.recurrent_inference(params, starts[-1], actions[:, k]).embedding)
    return jax.lax.stop_gradient(jnp.stack(starts, axis=1))


def _predict_projection(model: Model, params: Params, embedding: Array) -> Float[Array, "N D"]:
    """The predicted projection of the next observation, from an imagined embedding [N, ...]."""
    if model.project is None or model.predict_projection is None:
        raise ValueError("--optimiser.consistency-weight needs a network with `project` and `predict_projection`")
    return model.predict_projection(params, model.project(params, embedding))


def _observed(model: Model, params: Params, observation: Array) -> Float[Array, "N K D"]:
    """The projections of the embeddings of K observations that came."""
    assert model.project is not None  # `_predict_projection` has required
    leading = observation.shape[:2]
    embedding = model.initial_inference(params, observation.reshape(-1, *observation.shape[2:])).embedding
    return model.project(params, embedding).reshape(*leading, -1)


def value_loss(outputs: Unrolled, batch: Batch, *, scalar_loss: ScalarLoss) -> Float[Array, "N"]:
    """The value head's loss, a mean over depths. It counts past a game's end too, where targets are 0."""
    return over_depths(batch.targets.mask * scalar_loss(outputs.value_logits, batch.targets.value))


def root_value_loss(outputs: Unrolled, batch: Batch, *, scalar_loss: ScalarLoss) -> Float[Array, "N"]:
    """The value head's loss at the root alone: the part that owes nothing to the dynamics."""
    return batch.targets.mask[:, 0] * scalar_loss(outputs.value_logits[:, 0], batch.targets.value[:, 0])


def reward_loss(outputs: Unrolled, batch: Batch, *, scalar_loss: ScalarLoss) -> Float[Array, "N"]:
    """The reward head's loss, a mean over the K moves. It counts past a game's end too, where targets are 0."""
    errors = scalar_loss(required(outputs.reward_logits, "recurrent_inference"), batch.targets.reward)
    return jnp.mean(batch.targets.mask[:, :-1] * errors, axis=1)


def policy_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The policy head's loss: cross-entropy with the search's improved policy, a mean over depths.

    Illegal actions are masked where the batch says which they are, as in search: at the root, and deeper down for a
    model that predicts them. Elsewhere the unrolled policies must learn to avoid them.
    """
    logits = legal_policy_logits(outputs, batch)
    return over_depths(batch.targets.policy_mask * cross_entropy(logits, batch.targets.policy))


def legal_policy_logits(outputs: Unrolled, batch: Batch) -> Float[Array, "N K1 A"]:
    """The policy's logits in float32, with the lowest finite one where the batch says that an action is illegal."""
    logits, legal = outputs.policy_logits.astype(jnp.float32), batch.legal_action_mask
    known = legal.shape[1]
    masked = jnp.where(legal, logits[:, :known], jnp.finfo(jnp.float32).min)
    return jnp.concatenate([masked, logits[:, known:]], axis=1)


def reconstruction_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """Imagined observations against those that came; an auxiliary loss, which teaches the rules sooner."""
    logits = required(outputs.observation_logits, "reconstruct")
    observation = batch.observation[:, : logits.shape[1]]
    return over_depths(batch.targets.alive * observation_error(logits, observation))


def legality_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The legality head against the legal moves of every position, a mean over the actions."""
    errors = binary_cross_entropy(
        required(outputs.legal_logits, "legal_logits"), batch.legal_action_mask.astype(jnp.float32)
    )
    return over_depths(batch.targets.alive * jnp.mean(errors, axis=-1))


def discount_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The discount head against the sign of each move's discount: another's turn, the end, one's own turn again.

    Past a game's end the target is the end, as the value's is 0.
    """
    logits = required(outputs.discount_logits, "discount_logits")
    wanted = jax.nn.one_hot(jnp.sign(batch.targets.discount).astype(jnp.int32) + 1, 3)
    return jnp.mean(batch.targets.mask[:, :-1] * cross_entropy(logits, wanted), axis=1)


def consistency_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """1 - cosine of each imagined embedding's projection and the one of the observation that came.

    (EfficientZero: Ye et al. 2021, section 4.1, which is SimSiam: the observed side gets no gradient.)
    """
    observed = jax.lax.stop_gradient(required(outputs.observed_projection, "project"))
    cosine = optax.losses.cosine_similarity(required(outputs.projection, "project"), observed, epsilon=1e-6)
    return jnp.mean(batch.targets.alive[:, 1:] * (1.0 - cosine), axis=1)


def required(output: Array | None, name: str) -> Array:
    """The output that a loss reads; ValueError if the model has no such head."""
    if output is None:
        raise ValueError(f"a loss needs a network with `{name}`, which this one has not (docs/your-own-network.md)")
    return output


def over_depths(errors: Float[Array, "N K1"]) -> Float[Array, "N"]:
    """The root's error, plus the mean of the unrolled steps', if any (MuZero, appendix G: each weighs 1/K)."""
    return errors[:, 0] + (jnp.mean(errors[:, 1:], axis=1) if errors.shape[1] > 1 else 0.0)


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
