"""Training targets: the value, reward and policy that each unrolled prediction of a window should have been.

One backward recursion over the signed `discount` gives Monte-Carlo, n-step and TD(lambda) value targets, for one and
two players alike: no parity, no player index. Past the end of a game reward and value are 0 and the policy is masked;
*actions* there are drawn uniformly, so that the model learns that they no longer matter. Past a time limit nothing is
known, so everything is masked there, and a return that reaches it bootstraps from the last position's value.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from muzero_jax.ops.mesh import AXIS
from muzero_jax.types import Batch, Targets, Transition


def lambda_returns(
    reward: Float[Array, "N L"],
    discount: Float[Array, "N L"],
    value: Float[Array, "N L"],
    stop: Bool[Array, "N L"],
    *,
    unroll_steps: int,
    td_steps: int,
    td_lambda: float | Array,
    written_out: bool = False,
) -> Float[Array, "N K1"]:
    """Value targets z_0 ... z_K of N windows of L = K + n + 1 frames, each truncated after n = `td_steps` moves.

        G_t = r_{t+1} + d_{t+1} ((1 - lambda) nu_{t+1} + lambda G_{t+1}),   G_{t+n} = nu_{t+n}

    (Sutton & Barto 2018, section 12.3). `td_lambda` = 1 is the n-step return; with n at least the longest game's length
    it is the Monte-Carlo return. A return goes no further than a frame with `stop`: G_t = nu_t. These are random moves,
    and moves after which a time limit ended the episode, because the position after those was never searched. Here
    `reward[:, t]` and `discount[:, t]` are of the move made at frame t.

    Args:
      reward, discount, value: [N, L]; `value` is the search value of each frame, for the player to move.
      unroll_steps: K. td_steps: n >= 1. td_lambda: in [0, 1].
      written_out: compile the recursion as one kernel, instead of a loop that compiles sooner.
    """
    k1 = unroll_steps + 1

    def frames(x: Array, start: Array) -> Array:
        return jax.lax.dynamic_slice_in_dim(x, start, k1, axis=1)

    def step(returns, offset):
        bootstrap = (1.0 - td_lambda) * frames(value, offset + 1) + td_lambda * returns
        returns = frames(reward, offset) + frames(discount, offset) * bootstrap
        return jnp.where(frames(stop, offset), frames(value, offset), returns), None

    last = frames(value, jnp.int32(td_steps))
    returns, _ = jax.lax.scan(step, last, jnp.arange(td_steps, dtype=jnp.int32), reverse=True, unroll=written_out)
    return returns


def alive_frames(is_last: Bool[Array, "N L"]) -> Bool[Array, "N L"]:
    """Mask [N, L]: True for the frames of the window's first episode, its last move included; False past its end."""
    goes_on = jnp.cumprod((~is_last).astype(jnp.int32), axis=1) == 1
    return jnp.pad(goes_on[:, :-1], ((0, 0), (1, 0)), constant_values=True)


def cut_off(window: Transition) -> Bool[Array, "N L"]:
    """Mask [N, L] of moves after which a time limit ended the episode."""
    return window.is_last & (window.discount != 0)


def stops(window: Transition, *, stop_at_exploration: bool) -> Bool[Array, "N L"]:
    """Mask [N, L] of frames at which a return ends: moves cut off by a time limit and, if asked for, random moves."""
    return (window.explored & stop_at_exploration) | cut_off(window)


def make(
    window: Transition,
    *,
    unroll_steps: int,
    td_steps: int,
    td_lambda: float | Array,
    stop_at_exploration: bool,
    search_value_weight: float = 0.0,
    written_out: bool = False,
) -> Targets:
    """Targets of the K+1 predictions of each window (leaves [N, L, ...], L >= K + n + 1).

    The value target is the return. With `search_value_weight` w it is (1 - w) times the return plus w times the
    search's value of the position itself (Willemsen et al. 2021, arXiv 2012.07532, section 3). Without
    `stop_at_exploration` the targets are exploratory returns, which continue through random moves. The value is then
    the expected result between players who make random moves that often. Among lost positions it is higher where the
    opponent easily misses the win. `written_out`: as in `lambda_returns`.

    Returns:
      the targets, with leaves [N, K] and [N, K+1]; 0 past a game's end, and masked past a time limit.
    """
    k = unroll_steps
    k1 = unroll_steps + 1
    assert window.action.shape[1] > k + td_steps, f"a window must have K + n + 1 = {k + td_steps + 1} frames"
    alive = alive_frames(window.is_last)
    has_policy = alive if window.in_full is None else alive & window.in_full
    value = lambda_returns(
        window.reward,
        window.discount,
        window.search_value,
        stops(window, stop_at_exploration=stop_at_exploration),
        unroll_steps=unroll_steps,
        td_steps=td_steps,
        td_lambda=td_lambda,
        written_out=written_out,
    )
    if search_value_weight:
        value = (1.0 - search_value_weight) * value + search_value_weight * window.search_value[:, :k1]
    return Targets(
        reward=jnp.where(alive[:, :k], window.reward[:, :k], 0.0),
        value=jnp.where(alive[:, :k1], value, 0.0),
        policy=window.search_policy[:, :k1],
        policy_mask=has_policy[:, :k1].astype(jnp.float32),
        alive=alive[:, :k1].astype(jnp.float32),
        mask=alive_frames(cut_off(window) & alive)[:, :k1].astype(jnp.float32),
        discount=jnp.where(alive[:, :k], window.discount[:, :k], 0.0),
    )


def played_returns(window: Transition, returns: Targets, stop: Bool[Array, "N L"]) -> Float[Array, "N K1 A"]:
    """The returns of the actions that were played; NaN for all others, and where nothing is known of them.

    That is past the end of a game, and where a return stops: there it is the position's value, whatever the action.
    """
    num_frames = returns.value.shape[1]
    is_played = jax.nn.one_hot(window.action[:, :num_frames], window.legal_action_mask.shape[-1], dtype=bool)
    is_known = (returns.alive > 0) & ~stop[:, :num_frames]
    return jnp.where(is_played & is_known[..., None], returns.value[..., None], jnp.nan)


def regret(
    window: Transition, returns: Targets, stop: Bool[Array, "N L"], *, share: Callable[[Array], Array]
) -> Float[Array, "N K1"]:
    """How far returns were from the search's values, in [0, 2]; NaN where a return stops and so shows nothing.

    `share` makes of a value its share of the largest one that the network represents.
    """
    num_frames = returns.value.shape[1]
    distance = jnp.abs(share(returns.value) - share(window.search_value[:, :num_frames]))
    return jnp.where(stop[:, :num_frames], jnp.nan, jnp.minimum(distance, 2.0))


def weigh_policies(targets: Targets) -> Targets:
    """The targets with larger weights of fully searched policies, to make up for cheap searches, which teach none.

    At each depth the weights of all devices' policies add up to the number of positions before a game's end, so that
    the policy loss is a mean over what is learned. Runs where `AXIS` names the devices.
    """
    sums = (x.sum(axis=0, keepdims=True) for x in (targets.policy_mask, targets.alive))
    full, alive = jax.lax.psum(tuple(sums), AXIS)
    return targets._replace(policy_mask=targets.policy_mask * (alive / jnp.maximum(full, 1.0)))


def unroll_actions(window: Transition, key: Array, *, unroll_steps: int) -> Int[Array, "N K"]:
    """The K actions to unroll: those played, and uniformly random ones past the end (MuZero, appendix G)."""
    played = window.action[:, :unroll_steps]
    num_actions = window.legal_action_mask.shape[-1]
    arbitrary = jax.random.randint(key, played.shape, 0, num_actions, dtype=played.dtype)
    return jnp.where(alive_frames(window.is_last)[:, :unroll_steps], played, arbitrary)


def make_batch(
    window: Transition,
    targets: Targets,
    weight: Float[Array, "N"],
    key: Array,
    *,
    unroll_steps: int,
    num_frames: int,
    sample_codes: Callable[[Transition, Array, Array], Array] | None = None,
) -> Batch:
    """The batch for a gradient step, from windows (leaves [N, L, ...]).

    `key` samples actions and codes of chance past a game's end.

    Args:
      targets: as `make` makes them. weight: of each window.
      num_frames: how many frames' observations and legal moves are read of each window, 1 or K + 1.
      sample_codes: `chance.sample_codes`, with its hyperparameters bound; None without chance.
    """
    action_key, code_key = jax.random.split(key)
    return Batch(
        observation=window.observation[:, :num_frames],  # the window may hold more, for Reanalyze
        legal_action_mask=window.legal_action_mask[:, :num_frames],
        actions=unroll_actions(window, action_key, unroll_steps=unroll_steps),
        targets=targets if window.in_full is None else weigh_policies(targets),
        weight=weight,
        extras={"codes": sample_codes(window, targets.alive, code_key)} if sample_codes else {},
    )
