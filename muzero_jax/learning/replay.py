"""A replay ring that lives on the device, time-major: frame t of game b lies at [t mod C, b].

Time-major because a rollout arrives as [T, B, ...] and goes in by one contiguous write; batch-major rings were 11-15
times slower to add to. All draws of an iteration are made at once, so the weights over the ring are summed once an
iteration, not once an update. Weights are integers: their cumulative sum is exact (`config` keeps it below 2^31).
Observations of bools and legal moves lie in the ring as bits (`pack`): a byte each, they would be most of it.
"""

import chex
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int

from muzero_jax.learning import bits
from muzero_jax.types import ReplayState, Transition


def init(transition: Transition, *, num_envs: int, replay_length: int) -> ReplayState:
    """An empty ring for `num_envs` games of C = `replay_length` frames.

    Args:
      transition: one transition (or its abstract shapes), without leading axes.
    """
    stored = jax.eval_shape(pack, transition)
    return ReplayState(
        transitions=jax.tree.map(lambda x: jnp.zeros((replay_length, num_envs, *x.shape), x.dtype), stored),
        insert_index=jnp.int32(0),
        num_stored=jnp.int32(0),
    )


def pack(transition: Transition) -> Transition:
    """Transitions as the ring keeps them: bool observations and legal moves eight to a byte, all else as it is."""
    leading = transition.action.ndim
    return transition._replace(
        observation=bits.pack(transition.observation, leading),
        legal_action_mask=bits.pack(transition.legal_action_mask, leading),
    )


def unpack(stored: Transition, observation_shape: tuple[int, ...]) -> Transition:
    """The inverse of `pack`."""
    return stored._replace(
        observation=bits.unpack(stored.observation, observation_shape),
        legal_action_mask=bits.unpack(stored.legal_action_mask, stored.search_policy.shape[-1:]),
    )


@jax.named_scope("replay")
def add(replay: ReplayState, trajectory: Transition) -> ReplayState:
    """Writes a rollout (leaves [T, B, ...]) over the oldest frames; C is a multiple of T, the same in every call."""
    replay_length, num_envs = replay.transitions.action.shape
    rollout_length = trajectory.action.shape[0]
    chex.assert_tree_shape_prefix(trajectory, (rollout_length, num_envs))
    if replay_length % rollout_length:
        raise ValueError(f"replay length {replay_length} is not a multiple of the rollout length {rollout_length}")
    transitions = jax.tree.map(
        lambda ring, new: jax.lax.dynamic_update_slice_in_dim(
            ring, new.astype(ring.dtype), replay.insert_index, axis=0
        ),
        replay.transitions,
        pack(trajectory),
    )
    return ReplayState(
        transitions=transitions,
        insert_index=(replay.insert_index + rollout_length) % replay_length,
        num_stored=jnp.minimum(replay.num_stored + rollout_length, replay_length),
    )


def draw(
    key: Array,
    replay: ReplayState,
    shape: tuple[int, ...],
    *,
    window_length: int,
    unroll_steps: int,
    end_weight: int,
) -> tuple[Array, Array]:
    """Draws the starts of as many windows as `shape` says: (slot, game), int32, as `gather` takes them.

    The ring must hold at least one window. All windows of an iteration are drawn at once: see the module's docstring.
    """
    weights = start_weights(replay, window_length=window_length, unroll_steps=unroll_steps, end_weight=end_weight)
    return draw_starts(key, weights, shape)


@jax.named_scope("replay")
def start_weights(replay: ReplayState, *, window_length: int, unroll_steps: int, end_weight: int) -> Int[Array, "C B"]:
    """How often each slot should start a window: 0 where the window would run out of the stored frames, `end_weight`
    where a game ends among the window's first K moves, else 1.

    Windows with an end are the only ones that teach a reward; in Hex 5x5 only 1 move in 19 carries one.
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
def draw_starts(key: Array, weights: Int[Array, "C B"], shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Draws window starts in proportion to integer `weights` (with replacement).

    Returns:
      slot and game, int32 arrays of `shape`, as `gather` takes them. At least one weight must be positive.
    """
    cumulative = jnp.cumsum(weights.ravel())
    ticket = jax.random.randint(key, shape, 0, cumulative[-1], dtype=cumulative.dtype)
    index = jnp.searchsorted(cumulative, ticket.ravel(), side="right").reshape(shape).astype(jnp.int32)
    return index // weights.shape[1], index % weights.shape[1]


@jax.named_scope("replay")
def gather(
    replay: ReplayState,
    slot: Int[Array, "N"],
    game: Int[Array, "N"],
    *,
    observation_shape: tuple[int, ...],
    window_length: int,
    observation_length: int,
) -> Transition:
    """Windows of L consecutive frames, batch-major (leaves [N, L, ...]).

    Mostly only the first observation is encoded, so only the first `observation_length` frames of them are read: that
    leaf is [N, observation_length, *obs].
    """
    replay_length = replay.transitions.action.shape[0]
    time = (slot[:, None] + jnp.arange(window_length)) % replay_length
    rest = jax.tree.map(lambda x: x[time, game[:, None]], replay.transitions._replace(observation=None))
    observation = replay.transitions.observation[time[:, :observation_length], game[:, None]]
    return unpack(rest._replace(observation=observation), observation_shape)
