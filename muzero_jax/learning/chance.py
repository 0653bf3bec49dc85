"""Codes of what chance did, and the losses that they add to MuZero's (Antonoglou et al. 2022, section 4).

A code says what chance did after a move. Either it is the outcome that the game lists, or an encoder finds it in the
next observation: the likeliest of C codes, as a one-hot whose gradient passes to the encoder's probabilities as if it
were they (straight through; van den Oord et al. 2017). The afterstate predicts the code before it comes, and search
follows those predictions.

Where nobody knows a code it is drawn at random, as actions are past the end of a game. The encoder does not know it
where the next frame belongs to another game; the outcome of a game's last move is known.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from muzero_jax.types import Batch, Model, NetworkOutput, Params, Transition, Unrolled


def draw_codes(
    window: Transition, alive: Float[Array, "N K1"], key: Array, *, num_codes: int, told: bool
) -> Int[Array, "N K"]:
    """The codes of K moves: the outcomes that came if they are known, else uniformly random ones.

    Args:
      window: leaves [N, L, ...]; `outcome` is read if it is known (`told`). The last code stands for a
        move after which chance had no part.
      alive: 0 past a game's end.
    """
    shape = alive.shape[0], alive.shape[1] - 1
    arbitrary = jax.random.randint(key, shape, 0, num_codes, dtype=jnp.int32)
    if not told:
        return arbitrary
    if window.outcome is None:
        raise ValueError("--model learned_outcomes learns from outcomes, and these frames were stored without them")
    outcome = window.outcome[:, : shape[1]]
    return jnp.where(alive[:, :-1] > 0, jnp.where(outcome < 0, num_codes - 1, outcome), arbitrary)


def code_mask(batch: Batch, *, encoded: bool) -> Float[Array, "N K"]:
    """1 where what chance did is known, 0 where the code is a drawn one. See the module's docstring."""
    alive = batch.targets.alive
    return alive[:, 1:] if encoded else alive[:, :-1]


def encode(model: Model, params: Params, batch: Batch) -> tuple[Array | None, Float[Array, "N K C"] | None]:
    """The codes to follow along K moves, and the probabilities that the encoder gives them.

    Returns:
      without chance nothing; outcomes as numbers [N, K] and nothing more; or, with an encoder, one-hots [N, K, C] and
      its probabilities [N, K, C].
    """
    if batch.codes is None or model.encode_chance is None:
        return batch.codes, None
    num_windows, unroll_steps = batch.codes.shape

    def joined(x: Array) -> Array:
        return x.reshape(-1, *x.shape[2:])

    frames = batch.observation[:, : unroll_steps + 1]
    logits = model.encode_chance(params, joined(frames[:, :-1]), joined(frames[:, 1:]))
    probabilities = jax.nn.softmax(logits.astype(jnp.float32)).reshape(num_windows, unroll_steps, -1)
    drawn = jax.nn.one_hot(batch.codes, probabilities.shape[-1])
    is_known = code_mask(batch, encoded=True)[..., None] > 0
    return jnp.where(is_known, straight_through(probabilities), drawn), probabilities


def straight_through(probabilities: Float[Array, "*n C"]) -> Float[Array, "*n C"]:
    """The one-hot of the likeliest code; its gradient is that of the probabilities themselves."""
    one_hot = jax.nn.one_hot(jnp.argmax(probabilities, axis=-1), probabilities.shape[-1])
    return one_hot + (probabilities - jax.lax.stop_gradient(probabilities))  # exactly one-hot: the bracket is 0


def follow(model: Model, params: Params, afterstate: NetworkOutput, code: Array) -> NetworkOutput:
    """The position to which a code leads, [N] as a number or [N, C] as a one-hot, from an afterstate.

    The gradient at its input is not halved: that is done once a move, at the input of the afterstate's dynamics.
    """
    if code.ndim == 1:
        num_actions = afterstate.policy_logits.shape[-1]
        return model.recurrent_inference(params, afterstate.embedding, num_actions + code)
    assert model.follow_code is not None, "a model with an encoder"
    return model.follow_code(params, afterstate.embedding, code)


def chance_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """Cross-entropy of the codes that came, a mean over the moves; the codes themselves get no gradient."""
    codes, is_encoded = batch.codes, outputs.code_probabilities is not None
    if is_encoded:
        codes = jnp.argmax(outputs.code_probabilities, axis=-1)  # type: ignore[arg-type]
    log_probabilities = jax.nn.log_softmax(_required(outputs.chance_logits).astype(jnp.float32))
    errors = -jnp.take_along_axis(log_probabilities, _required(codes)[..., None], axis=-1)[..., 0]
    return jnp.mean(code_mask(batch, encoded=is_encoded) * errors, axis=1)


def commitment_loss(outputs: Unrolled, batch: Batch) -> Float[Array, "N"]:
    """The squared distance of the encoder's probabilities from the one-hot that was followed, a mean over the moves.

    It draws the encoder to the code that it chose, so that what flows straight through is near what was followed.
    """
    probabilities = _required(outputs.code_probabilities)
    one_hot = jax.nn.one_hot(jnp.argmax(probabilities, axis=-1), probabilities.shape[-1])
    errors = jnp.sum(jnp.square(one_hot - probabilities), axis=-1)
    return jnp.mean(code_mask(batch, encoded=True) * errors, axis=1)


def afterstate_value_loss(outputs: Unrolled, batch: Batch, *, scalar_loss: Any) -> Float[Array, "N"]:
    """The loss of the afterstates' values, a mean over the moves.

    A move's return is its reward and then the afterstate's value, both for the player who moved: G_t = r + V. So the
    target of V is the signed discount times the next position's target. That holds also where no chance came.
    """
    wanted = batch.targets.discount * batch.targets.value[:, 1:]
    errors = scalar_loss(_required(outputs.afterstate_value_logits), wanted)
    return jnp.mean(batch.targets.mask[:, 1:] * errors, axis=1)


def _required(output: Array | None) -> Array:
    if output is None:
        raise ValueError("a loss of chance needs a network with codes of chance (docs/your-own-network.md)")
    return output
