"""Codes of what chance did, and the losses that they add to MuZero's (Antonoglou et al. 2022, section 4).

A code says what chance did after a move. Either the game lists the outcomes and the code is one of them, or an encoder
finds it in the next observation: the likeliest of C codes, as a one-hot whose gradient passes unchanged to the
encoder's probabilities (straight through; van den Oord et al. 2017). The afterstate predicts the code, and search
follows those predictions. The encoder's logits are centred over the batch first, as else one code may be the likeliest
of every window, and then nothing is learned of the others.

An unknown code is drawn at random, like actions past the end of a game. An encoder cannot find the code of a game's
last move, because the next frame belongs to another game; a listed outcome is known there. With an encoder the last of
the C codes therefore says that the rules ended the game, and no other move has it. Search could not weigh an end by
chance otherwise, because the other codes are learned from moves after which the game goes on.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from muzero_jax.types import Batch, Model, NetworkOutput, Params, Transition, Unrolled


def sample_codes(
    window: Transition, alive: Float[Array, "N K1"], key: Array, *, num_codes: int, known: bool
) -> Int[Array, "N K"]:
    """The codes of K moves: their outcomes if those are `known`, uniformly random ones otherwise and past a game's end.

    Args:
      window: leaves [N, L, ...]; `outcome` is read if it is `known`. The last code means that chance had no part, or,
        of codes that are not known, that the move ended the game.
      alive: 0 past a game's end.
    """
    shape = alive.shape[0], alive.shape[1] - 1
    if not known:
        is_end = ended(alive, window.discount[:, : shape[1]])
        return jnp.where(is_end, num_codes - 1, jax.random.randint(key, shape, 0, num_codes - 1, dtype=jnp.int32))
    arbitrary = jax.random.randint(key, shape, 0, num_codes, dtype=jnp.int32)
    assert window.outcome is not None, "frames of a game that lists its chance"
    outcome = window.outcome[:, : shape[1]]
    return jnp.where(alive[:, :-1] > 0, jnp.where(outcome < 0, num_codes - 1, outcome), arbitrary)


def code_mask(batch: Batch, *, encoded: bool) -> Float[Array, "N K"]:
    """1 where an encoder finds the code of what chance did, or without one where it is listed; 0 elsewhere."""
    alive = batch.targets.alive
    return alive[:, 1:] if encoded else alive[:, :-1]


def ended(alive: Float[Array, "N K1"], discount: Float[Array, "N K"]) -> Bool[Array, "N K"]:
    """Whether a move ended its game by the rules."""
    return (alive[:, :-1] > alive[:, 1:]) & (discount == 0)


def encode(model: Model, params: Params, batch: Batch) -> tuple[Array, dict[str, Array]]:
    """The codes with which to unroll K moves, and what losses read of the encoder.

    Returns:
      without an encoder, outcomes as numbers [N, K] and an empty dict; with one, one-hots [N, K, C] and its
      `code_probabilities` [N, K, C].
    """
    codes = batch.extras["codes"]
    if not model.encode_chance:
        return codes, {}
    before, after = (jax.lax.collapse(x, 0, 2) for x in (batch.observation[:, :-1], batch.observation[:, 1:]))
    logits = model.encode_chance(params, before, after).astype(jnp.float32)[:, :-1]
    is_known = code_mask(batch, encoded=True) > 0
    centred_logits = centred(logits, is_known.reshape(-1))
    probabilities = jnp.pad(jax.nn.softmax(centred_logits), ((0, 0), (0, 1))).reshape(*codes.shape, -1)
    arbitrary = jax.nn.one_hot(codes, probabilities.shape[-1])
    return jnp.where(is_known[..., None], straight_through(probabilities), arbitrary), {
        "code_probabilities": probabilities
    }


def centred(logits: Float[Array, "M C"], is_known: Bool[Array, "M"]) -> Float[Array, "M C"]:
    """The logits, less the mean of each code over the known moves of a device's share of the batch."""
    known = is_known[:, None]
    return logits - jnp.sum(logits * known, axis=0) / jnp.maximum(jnp.sum(known), 1)


def straight_through(probabilities: Float[Array, "*n C"]) -> Float[Array, "*n C"]:
    """The one-hot of the likeliest code; its gradient is that of the probabilities themselves."""
    one_hot = jax.nn.one_hot(jnp.argmax(probabilities, axis=-1), probabilities.shape[-1])
    return one_hot + (probabilities - jax.lax.stop_gradient(probabilities))  # exactly one-hot: the bracket is 0


def follow(
    model: Model, params: Params, afterstate: NetworkOutput, code: Array
) -> tuple[NetworkOutput, dict[str, Array]]:
    """The position to which a code, [N] as a number or [N, C] as a one-hot, leads from an afterstate.

    The gradient is not halved at this input, but once a move: at the input of the afterstate's dynamics.

    Returns:
      the position with the move's reward, and the afterstate's outputs that losses read.
    """
    if code.ndim == 1:
        num_actions = afterstate.policy_logits.shape[-1]
        position = model.recurrent_inference(params, afterstate.embedding, num_actions + code)
    else:
        assert model.follow_code, "a model with an encoder"
        position = model.follow_code(params, afterstate.embedding, code)
    of_afterstate = {
        "chance_logits": afterstate.extras["chance_logits"],
        "afterstate_value_logits": afterstate.value_logits,
    }
    return position._replace(reward_logits=afterstate.reward_logits), of_afterstate


def chance_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """Cross-entropy of the predicted codes, a mean over the moves; the true codes get no gradient."""
    codes, is_encoded = batch.extras["codes"], "code_probabilities" in outputs.extras
    is_known = code_mask(batch, encoded=is_encoded)
    if is_encoded:
        found = jnp.argmax(outputs.extras["code_probabilities"], axis=-1)
        codes = jnp.where(is_known > 0, found, codes)
        is_known += ended(batch.targets.alive, batch.targets.discount)
    log_probabilities = jax.nn.log_softmax(outputs.extras["chance_logits"].astype(jnp.float32))
    errors = -jnp.take_along_axis(log_probabilities, codes[..., None], axis=-1)[..., 0]
    return jnp.mean(is_known * errors, axis=1)


def commitment_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The squared distance of the encoder's probabilities from the one-hot that was followed, a mean over the moves.

    It pulls the probabilities to the chosen code, so that the gradient that passes straight through is nearly right.
    """
    probabilities = outputs.extras["code_probabilities"]
    one_hot = jax.nn.one_hot(jnp.argmax(probabilities, axis=-1), probabilities.shape[-1])
    errors = jnp.sum(jnp.square(one_hot - probabilities), axis=-1)
    return jnp.mean(code_mask(batch, encoded=True) * errors, axis=1)


def afterstate_value_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The loss of the afterstates' values, a mean over the moves.

    A move's return is its reward plus the afterstate's value, both for the player who moved (G_t = r + V), so the
    target of V is the signed discount times the next position's target. This also holds for moves without chance.
    """
    wanted = batch.targets.discount * batch.targets.value[:, 1:]
    errors = outputs.model.scalar_loss(outputs.extras["afterstate_value_logits"], wanted)
    return jnp.mean(batch.targets.mask[:, 1:] * errors, axis=1)
