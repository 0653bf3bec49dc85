"""What one batch of a run's own pipeline shows: whether targets are what happened, and what the network predicts.

The batch is of frames that the last weights have just played, so nothing in it is stale.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import PartitionSpec
from jaxtyping import Bool, Float, Int

from muzero_jax.algorithm import Algorithm
from muzero_jax.algorithm.learning import build_stops
from muzero_jax.apps.doctor.games import entropy, returned
from muzero_jax.apps.doctor.records import Numbers
from muzero_jax.config.config import Config
from muzero_jax.learning import unroll
from muzero_jax.learning.stacked_weights import norm
from muzero_jax.ops.mesh import make_mesh, shard_map
from muzero_jax.run import program
from muzero_jax.storage import shapes
from muzero_jax.types import Params, SearchRoots, Targets, TrainState, Transition

ENOUGH = 16
"""Windows of a kind from which a mean is taken."""
FLAT = 0.02
"""Values that spread less are all alike."""
MIDDLE = 0.5
"""Progress at which schedules are looked at."""


class Looked(NamedTuple):
    """What a batch of N windows holds, and what the network makes of it."""

    window: Transition  # [N, L, ...] as stored, with observations [N, K+1, ...]
    policy: Array  # [N, K+1, A], after Reanalyze
    targets: Targets
    found_value: Array  # [N] a new search's, of the first position; NaN without Reanalyze
    fresh_value: Array  # [N] after Reanalyze
    seen_value: Array  # [N, K+1] by the network, from each observation
    seen_policy: Array  # [N, K+1, A] likewise, over legal moves
    imagined_value: Array  # [N, K+1] from the first observation and the moves
    imagined_reward: Array  # [N, K] likewise
    stops: Array  # [N, L] bool, where returns end by the config
    step_size: Array  # [] how far an update moves the weights, as a share of their length


def look(config: Config, algorithm: Algorithm, state: TrainState) -> Looked:
    """Makes one batch and one update; on the host."""
    run = shard_map(
        partial(_look, algorithm, stops=build_stops(config), reanalyzes=config.reanalyze_fraction > 0),
        make_mesh(1),
        (program.state_specs(), PartitionSpec()),
        PartitionSpec(),
    )
    return jax.device_get(jax.jit(run)(state, jax.random.key(1)))


def _look(
    algorithm: Algorithm,
    state: TrainState,
    key: Array,
    *,
    stops: Callable[[Transition], Array],
    reanalyzes: bool,
) -> Looked:
    model = algorithm.model
    params = state.learner.params
    num_frames = algorithm.unroll_steps + 1
    sample = jax.tree.map(lambda x: x[0], algorithm.sample(key, state.replay))
    window = algorithm.gather(state.replay, sample, num_frames=num_frames)
    fresh, _, _ = algorithm.reanalyze(state.learner, sample, window, key, search=algorithm.search())
    progress = jnp.float32(MIDDLE)
    targets = algorithm.make_targets(fresh, progress)
    batch = algorithm.make_batch(fresh, targets, sample.weight, key, num_frames=num_frames)
    loss = partial(algorithm.loss, model=model, terms=algorithm.terms)
    turned = algorithm.augment(batch, key)
    updated, _ = algorithm.update(state.learner, turned, progress, loss=loss, optimiser=algorithm.optimiser)

    observations = window.observation[:, :num_frames]
    legal = window.legal_action_mask[:, :num_frames]
    seen = model.initial_inference(params, jax.lax.collapse(observations, 0, 2))
    imagined = unroll.unroll(model, params, batch)
    found_value = jnp.full(len(sample.slot), jnp.nan)
    if reanalyzes:
        roots = SearchRoots(*jax.tree.map(lambda x: x[:, 0], (observations, legal, fresh.state)))
        found_value = algorithm.search()(state.learner.search_params, key, roots).value
    return Looked(
        window=window._replace(observation=observations, state=None),
        policy=fresh.search_policy[:, :num_frames],
        targets=targets,
        found_value=found_value,
        fresh_value=fresh.search_value[:, 0],
        seen_value=model.to_scalar(seen.value_logits).reshape(legal.shape[:2]),
        seen_policy=jax.nn.softmax(seen.policy_logits.reshape(legal.shape), where=legal),
        imagined_value=model.to_scalar(imagined.value_logits),
        imagined_reward=model.to_scalar(imagined.reward_logits)[:, 1:],
        stops=stops(window),
        step_size=norm(jax.tree.map(jnp.subtract, updated.params, params)) / norm(params),
    )


def measure(seen: Looked) -> Numbers:
    """The numbers of a batch."""
    legal = seen.window.legal_action_mask[:, : seen.policy.shape[1]]
    found = {"update_to_weight": float(seen.step_size)}
    found |= of_values(seen) | of_policies(seen, legal)
    if seen.targets.reward.shape[1]:
        found |= of_the_model(seen)
    refreshed = seen.fresh_value != seen.window.search_value[:, 0]
    if refreshed.sum() >= ENOUGH and not np.isnan(seen.found_value).any():
        distances = np.abs(seen.found_value - seen.fresh_value)[refreshed]
        found["stale_value"] = float(distances.mean() / max(np.std(seen.found_value[refreshed]), FLAT))
    return found


def of_values(seen: Looked) -> Numbers:
    """Value targets, and the network's values, beside how the games ended."""
    outcome, moves_left, is_known = outcomes(seen.window, seen.stops)
    target = seen.targets.value[:, 0]
    value = seen.seen_value[:, 0]
    found = {"value_spread": float(value.std()), "target_spread": float(target.std())}
    for rest in (0, 1):  # moves before the end, because a sign may be wrong for one side only
        those = is_known & (moves_left % 2 == rest)
        if those.sum() >= ENOUGH and outcome[those].any():
            size = np.abs(outcome[those]).sum()
            error, flipped = (float(np.abs(sign * target - outcome)[those].sum() / size) for sign in (1, -1))
            if error >= found.get("target_error", 0.0):
                found |= {"target_error": error, "flipped_target_error": flipped}
    if is_known.sum() >= ENOUGH and outcome[is_known].any() and value.std() > FLAT:
        found["value_agrees"] = correlation(value[is_known], outcome[is_known])
        found["value_agrees_within"] = 2 / float(np.sqrt(is_known.sum()))
    return found


def of_policies(seen: Looked, legal: Bool[Any, "N K1 A"]) -> Numbers:
    """Policy targets and the network's policies beside those of the search."""
    is_alive = seen.targets.alive > 0
    target = seen.targets.policy
    found = {
        "policy_target_distance": distance(target[:, 0], seen.policy[:, 0]),
        "policy_target_illegal": float(np.where(legal, 0, target).sum(-1)[is_alive].mean()),
        "policies_learned": float((seen.targets.policy_mask > 0)[is_alive].mean()),
        "prior_entropy": entropy(seen.seen_policy[:, 0], legal[:, 0]),
        "target_entropy": entropy(seen.policy[:, 0], legal[:, 0]),
    }
    if target.shape[1] > 1:
        goes_on = is_alive[:, 1]
        found["policy_target_of_next"] = distance(target[goes_on, 0], seen.policy[goes_on, 1])
    return found


def of_the_model(seen: Looked) -> Numbers:
    """What the model imagines beside what happened, and reward targets beside rewards."""
    num_steps = seen.targets.reward.shape[1]
    is_alive = seen.targets.alive > 0
    true = seen.window.reward[:, :num_steps]
    is_rewarded = is_alive[:, :-1] & (true != 0)
    found = {}
    if is_rewarded.any():
        size = np.abs(true)[is_rewarded].sum()
        found["reward_target_error"] = float(np.abs(seen.targets.reward - true)[is_alive[:, :-1]].sum() / size)
        found["reward_error"] = float(np.abs(seen.imagined_reward - true)[is_rewarded].sum() / size)
    goes_on = is_alive[:, 1]
    if goes_on.sum() >= ENOUGH and np.std(seen.seen_value[goes_on, 1]) > FLAT:
        found["imagined_agrees"] = correlation(seen.imagined_value[goes_on, 1], seen.seen_value[goes_on, 1])
    return found


def outcomes(
    window: Transition, stops: Bool[Any, "N L"]
) -> tuple[Float[np.ndarray, " N"], Int[np.ndarray, " N"], Bool[np.ndarray, " N"]]:
    """How each window's game ended, for who moves first: (return [N], moves to the end [N], whether it is known [N]).

    It is known if the game ends within the window, and no return stops before that.
    """
    num_windows, length = window.action.shape
    outcome = np.zeros(num_windows)
    moves_left = np.zeros(num_windows, int)
    is_known = np.zeros(num_windows, bool)
    for n in range(num_windows):
        ends = np.nonzero(window.is_last[n])[0]
        end = int(ends[0]) if len(ends) else length
        if end < length and not stops[n, : end + 1].any():
            outcome[n] = returned(window.reward[n, : end + 1], window.discount[n, : end + 1])
            moves_left[n] = end + 1
            is_known[n] = True
    return outcome, moves_left, is_known


def untrained(params: Params, first: Params) -> list[str]:
    """The names of arrays that are still as they were at first, except for their length, which weight decay changes."""
    found = []
    for (name, now), before in zip(shapes.named(params).items(), shapes.named(first).values(), strict=True):
        now, before = (np.asarray(x, np.float64).ravel() for x in (now, before))
        if np.array_equal(now, before) or (now.size > 1 and correlation(now, before) > 1 - 1e-9):
            found.append(name)
    return found


def correlation(x: Float[Any, " N"], y: Float[Any, " N"]) -> float:
    """Pearson's; 0 if one of them is constant."""
    x, y = x - x.mean(), y - y.mean()
    size = np.sqrt((x * x).sum() * (y * y).sum())
    return float((x * y).sum() / size) if size > 1e-12 else 0.0


def distance(one: Float[Any, "N A"], other: Float[Any, "N A"]) -> float:
    """The mean total variation between policies [N, A], in [0, 1]."""
    return float(0.5 * np.abs(one - other).sum(-1).mean()) if len(one) else 0.0
