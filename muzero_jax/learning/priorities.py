"""Prioritised replay: surprising windows are sampled more often (Schaul et al. 2016, arXiv 1511.05952).

A window's priority is |search value - return| of the position that it starts at (MuZero, appendix G). The buffer keeps
it for every frame. Sampling turns priorities into integers, so that their sums are exact and the probability of every
window is known. Sums are computed afresh each time, so no error accumulates. An iteration samples all its windows at
once, so its new priorities take effect in the next one.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from muzero_jax.learning.replay import find_starts
from muzero_jax.ops.mesh import AXIS
from muzero_jax.types import Batch, Metrics, ReplayState, Sample, Targets, Transition, WriteBack

FLOOR = 0.01
"""Added to every priority, so that no window is left out. With outcomes -1 and 1 an error is at most 200 times this."""
LARGEST_SUM = 2**31 - 1
LARGEST_EMPHASIS = 2**24
"""float32 represents all integers up to here."""


def sample(
    key: Array,
    replay: ReplayState,
    *,
    num_updates: int,
    batch_size: int,
    weigh: Callable[[ReplayState], Int[Array, "C B"]],
    priority_exponent: float,
    importance_exponent: float,
    method: str = "scan",
) -> Sample:
    """Samples windows as `replay.sample`, but also in proportion to `emphasis`, which `Sample.weight` corrects.

    A weight is (Q / P)^beta, divided by the largest one. P is the window's probability in this sample and Q that
    without priorities: 1 / M for M windows that `weigh` weighs alike (Schaul et al. 2016, section 3.4), so preferences
    of `weigh` remain. All devices sample equally many windows from equally many games, so each can use its own P and Q.
    The largest weight is that of all the iteration's samples on all devices, so that its updates share one scale, and a
    window of low priority that is hardly ever sampled does not make all their steps small.

    Args:
      batch_size, weigh, method: as in `replay.sample`.
      priority_exponent: alpha. importance_exponent: beta, from 0 (weights are 1) to 1 (means are those without
        priorities).
    """
    assert replay.priority is not None, "a buffer with priorities: `replay.init(..., is_prioritised=True)`"
    alike = weigh(replay)
    more = emphasis(replay.priority, alike, exponent=priority_exponent)
    cumulative = jnp.cumsum((alike * more).ravel())
    bits = jax.random.bits(key, (num_updates, batch_size // jax.lax.axis_size(AXIS)), jnp.uint32)
    slot, game = find_starts(cumulative, tickets(bits, cumulative[-1]), alike.shape[1], method=method)
    mean = cumulative[-1] / jnp.sum(alike)
    weight = (mean / more[slot, game]) ** importance_exponent
    return Sample(slot, game, weight / jax.lax.pmax(jnp.max(weight), AXIS))


def emphasis(priority: Float[Array, "C B"], start_weights: Int[Array, "C B"], *, exponent: float) -> Int[Array, "C B"]:
    """Factors [C, B] for the weights of starts: priority^alpha in integers from 1 on, as large as an int32 allows.

    The highest priority of a possible start becomes (2^31 - 1) / E (at most 2^24), with E the sum of `start_weights`,
    so that the products of both add up to less than 2^31. A million frames leave 2,000 levels of priority.
    """
    possible = jnp.where(start_weights > 0, priority, 0.0)
    largest = jnp.minimum(LARGEST_SUM // jnp.maximum(jnp.sum(start_weights), 1), LARGEST_EMPHASIS)
    scaled = largest * (possible / jnp.max(possible)) ** exponent
    return jnp.maximum(jnp.round(scaled).astype(jnp.int32), 1)


def tickets(bits: Array, total: Array) -> Array:
    """floor(bits total / 2^32), in 16-bit halves: from 32 random bits a number below `total`, which is below 2^31.

    Each window's probability is right to 2^-32. `jax.random.randint` takes a remainder instead, so that below totals
    this large the lower numbers are up to half as likely again as the others.
    """
    total = total.astype(jnp.uint32)
    low, high, total_low, total_high = bits & 0xFFFF, bits >> 16, total & 0xFFFF, total >> 16
    upper = high * total_low + (low * total_low >> 16)
    lower = low * total_high + (upper & 0xFFFF)
    return (high * total_high + (upper >> 16) + (lower >> 16)).astype(jnp.int32)


def updated(
    sample: Sample,
    window: Transition,
    batch: Batch,
    *,
    make_returns: Callable[[Transition], Targets],
    stops: Callable[[Transition], Bool[Array, "N L"]],
) -> tuple[tuple[WriteBack, ...], Metrics]:
    """The new priorities of the sampled windows; as metrics, the mean error and the mean importance weight.

    If a return stops where its window starts, it is the search's own value and shows no error, so the window gets the
    mean priority of the others: it entered the buffer with the highest one, which it would keep forever.

    Args:
      make_returns: `targets.make`, with the config's hyperparameters bound, without a share of the search's own value.
        It is not the algorithm's `make_targets`, which may be anything.
      stops: `targets.stops`, likewise.
    """
    del batch
    is_known = ~stops(window)[:, 0]
    error = jnp.abs(window.search_value[:, 0] - make_returns(window).value[:, 0])
    mean_error = jnp.sum(error * is_known) / jnp.maximum(jnp.sum(is_known), 1)
    priority = jnp.where(is_known, error, mean_error) + FLOOR
    found = WriteBack(
        sample.slot, sample.game, jnp.broadcast_to(is_known.any(), is_known.shape), {"priority": priority}
    )
    return (found,), {"train/priority": mean_error, "train/importance_weight": jnp.mean(sample.weight)}
