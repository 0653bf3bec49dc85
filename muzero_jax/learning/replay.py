"""A replay buffer that lives on the device, time-major: frame t of game b lies at [t mod C, b].

Time-major because a rollout arrives as [T, B, ...] and goes in by one contiguous write; batch-major buffers were 11-15
times slower to add to. All windows of an iteration are sampled at once, so the weights over the buffer are summed once
an iteration, not once an update. Weights are integers: their cumulative sum is exact (`config` keeps it below 2^31).
Bool observations and legal moves are stored as bits (`pack`): at a byte each they would fill most of the buffer.
"""

import math
from collections.abc import Callable, Sequence

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from muzero_jax.ops.mesh import AXIS
from muzero_jax.types import ReplayState, Sample, Transition, WriteBack


def init(
    transition: Transition,
    *,
    num_envs: int,
    replay_length: int,
    is_prioritised: bool = False,
) -> ReplayState:
    """An empty buffer for `num_envs` games of C = `replay_length` frames.

    Args:
      transition: one transition (or its abstract shapes), without leading axes.
      is_prioritised: whether the buffer keeps a priority for each frame.
    """
    stored = jax.eval_shape(pack, transition)
    return ReplayState(
        transitions=jax.tree.map(lambda x: jnp.zeros((replay_length, num_envs, *x.shape), x.dtype), stored),
        insert_index=jnp.int32(0),
        num_stored=jnp.int32(0),
        priority=jnp.zeros((replay_length, num_envs)) if is_prioritised else None,
    )


def pack(transition: Transition) -> Transition:
    """Transitions as the buffer stores them: bool observations and legal moves eight to a byte, without simulations.

    An observation of bytes becomes one of int8, because `unpack` takes uint8 for packed bits.
    """

    def packed(x: Array) -> Array:
        if x.dtype == jnp.uint8:
            return jax.lax.bitcast_convert_type(x, jnp.int8)
        return jnp.packbits(x.reshape(*transition.action.shape, -1), axis=-1) if x.dtype == jnp.bool_ else x

    observation = packed(transition.observation)
    legal = packed(transition.legal_action_mask)
    return transition._replace(observation=observation, legal_action_mask=legal, simulations=None)


def unpack(stored: Transition, observation_shape: tuple[int, ...]) -> Transition:
    """The inverse of `pack`."""

    def unpacked(x: Array, shape: tuple[int, ...]) -> Array:
        if x.dtype == jnp.int8:
            return jax.lax.bitcast_convert_type(x, jnp.uint8)
        if x.dtype != jnp.uint8:
            return x
        return jnp.unpackbits(x, axis=-1, count=math.prod(shape)).astype(bool).reshape(*x.shape[:-1], *shape)

    legal = unpacked(stored.legal_action_mask, stored.search_policy.shape[-1:])
    return stored._replace(observation=unpacked(stored.observation, observation_shape), legal_action_mask=legal)


@jax.named_scope("replay")
def add(replay: ReplayState, trajectory: Transition) -> ReplayState:
    """Writes a rollout (leaves [T, B, ...]) over the oldest frames; C is a multiple of T, the same in every call.

    The priority of new frames is the highest in all devices' buffers, or 1 if they are empty, so that every new window
    is soon sampled and its own priority then known (Schaul et al. 2016, section 3.3).
    """
    replay_length, num_envs = replay.transitions.action.shape
    rollout_length = trajectory.action.shape[0]
    chex.assert_tree_shape_prefix(trajectory, (rollout_length, num_envs))
    assert replay_length % rollout_length == 0, "else a rollout would run out of the buffer"

    def entering(priority: Array) -> Array:
        highest = jax.lax.pmax(jnp.max(priority), AXIS)
        return jnp.broadcast_to(jnp.where(highest > 0, highest, 1.0), trajectory.action.shape)

    def write(buffer: Array, new: Array) -> Array:
        return jax.lax.dynamic_update_slice_in_dim(buffer, new.astype(buffer.dtype), replay.insert_index, axis=0)

    new = pack(trajectory), jax.tree.map(entering, replay.priority)  # None stays None
    transitions, priority = jax.tree.map(write, (replay.transitions, replay.priority), new)
    return ReplayState(
        transitions=transitions,
        insert_index=(replay.insert_index + rollout_length) % replay_length,
        num_stored=jnp.minimum(replay.num_stored + rollout_length, replay_length),
        priority=priority,
    )


@jax.named_scope("replay")
def write_back(replay: ReplayState, found: Sequence[WriteBack]) -> ReplayState:
    """Writes what learning found out about stored frames; of several values for a frame the last one counts.

    The last one is found first, because a scatter with repeated indices keeps any one of them.
    """
    shape = replay.transitions.action.shape
    for each in found:
        slot, game, is_known = (x.ravel() for x in (each.slot % shape[0], each.game, each.is_known))
        order = jnp.arange(slot.size, dtype=jnp.int32)
        last = jnp.full(shape, -1, jnp.int32).at[slot, game].max(jnp.where(is_known, order, -1))
        slot = jnp.where(last[slot, game] == order, slot, shape[0])  # a scatter that drops writes nothing past the end
        replay = _write(replay, each.values, slot, game)
    return replay


def _write(replay: ReplayState, values: dict[str, Array], slot: Array, game: Array) -> ReplayState:
    """Writes those values that the buffer stores at [slot, game]; nothing is written at slots past the end."""
    stored = replay.transitions._asdict() | {"priority": replay.priority}
    written = {}
    for name, value in values.items():
        if (old := stored[name]) is not None:
            new = value.reshape(-1, *old.shape[2:]).astype(old.dtype)
            written[name] = old.at[slot, game].set(new, mode="drop")
    priority = written.pop("priority", replay.priority)
    return replay._replace(transitions=replay.transitions._replace(**written), priority=priority)


def sample(
    key: Array,
    replay: ReplayState,
    *,
    num_updates: int,
    batch_size: int,
    weigh: Callable[[ReplayState], Int[Array, "C B"]],
    method: str = "scan",
) -> Sample:
    """Samples the windows of all batches of an iteration [U, N]; each device samples its share of the batches.

    Runs where `AXIS` names the devices. The buffer must hold at least one window.

    Args:
      batch_size: over all devices. weigh: `start_weights`, with its hyperparameters bound.
      method: of `jnp.searchsorted`; which one is fast depends on the device.
    """
    shape = num_updates, batch_size // jax.lax.axis_size(AXIS)
    slot, game = sample_starts(key, weigh(replay), shape, method=method)
    return Sample(slot, game, jnp.ones(slot.shape))


@jax.named_scope("replay")
def start_weights(replay: ReplayState, *, window_length: int, unroll_steps: int, end_weight: int) -> Int[Array, "C B"]:
    """How often each slot should start a window: 0 if the window would run out of the stored frames, `end_weight` if a
    game ends among the window's first K moves, else 1.

    In many games only windows with an end teach a reward; in Hex 5x5 only 1 move in 19 carries one.
    """
    ends = replay.transitions.discount == 0
    near_end = ends
    for offset in range(1, unroll_steps):
        near_end |= jnp.roll(ends, -offset, axis=0)
    replay_length = ends.shape[0]
    age = (replay.insert_index - 1 - jnp.arange(replay_length)) % replay_length  # 0 for the newest frame
    valid = (age >= window_length - 1) & (age < replay.num_stored)
    return jnp.where(valid[:, None], jnp.where(near_end, end_weight, 1), 0)


@jax.named_scope("replay")
def sample_starts(
    key: Array, weights: Int[Array, "C B"], shape: tuple[int, ...], *, method: str = "scan"
) -> tuple[Array, Array]:
    """Samples window starts in proportion to integer `weights` (with replacement).

    Returns:
      slot and game, int32 arrays of `shape`, as `gather` takes them. At least one weight must be positive.
    """
    cumulative = jnp.cumsum(weights.ravel())
    ticket = jax.random.randint(key, shape, 0, cumulative[-1], dtype=cumulative.dtype)
    return find_starts(cumulative, ticket, weights.shape[1], method=method)


def find_starts(
    cumulative: Int[Array, "CB"], ticket: Array, num_envs: int, *, method: str = "scan"
) -> tuple[Array, Array]:
    """Slot and game of each ticket, a number below the sum of all weights, by the weights' cumulative sum."""
    index = jnp.searchsorted(cumulative, ticket.ravel(), side="right", method=method)
    index = index.reshape(ticket.shape).astype(jnp.int32)
    return index // num_envs, index % num_envs


@jax.named_scope("replay")
def gather(
    replay: ReplayState,
    sample: Sample,
    *,
    observation_shape: tuple[int, ...],
    window_length: int,
    observation_length: int,
) -> Transition:
    """Windows of L consecutive frames, batch-major (leaves [N, L, ...]).

    Usually only the first observation is encoded, so only the first `observation_length` observations are read: that
    leaf is [N, observation_length, *obs], and so are the leaves of the game's state, if the buffer stores it.
    """
    replay_length = replay.transitions.action.shape[0]
    time = (sample.slot[:, None] + jnp.arange(window_length)) % replay_length
    game = sample.game[:, None]

    def read(leaves, length):
        return jax.tree.map(lambda x: x[time[:, :length], game], leaves)

    transitions = replay.transitions
    rest = read(transitions._replace(observation=None, state=None), window_length)
    observation, state = read((transitions.observation, transitions.state), observation_length)
    return unpack(rest._replace(observation=observation, state=state), observation_shape)
