"""`muzero_jax.check_algorithm`: what is wrong with an algorithm of your own, in one sentence each.

Each function is traced first, which finds wrong shapes and what JAX cannot compile. Then one small program plays random
games, searches their positions, and makes an update of windows in which some games end. A second set of windows differs
from the first only in what comes after those ends, so its losses must not.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec
from jaxtyping import Array

from muzero_jax.algorithm import Algorithm
from muzero_jax.apps.check.model import QUICKLY
from muzero_jax.learning import self_play, unroll
from muzero_jax.learning.losses import Term
from muzero_jax.learning.targets import alive_frames
from muzero_jax.networks.contract import Fault, traced
from muzero_jax.ops import devices
from muzero_jax.ops.devices import AXIS, shard_map
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.storage.config import Config
from muzero_jax.types import (
    Batch,
    LearnerState,
    Sample,
    SearchOutput,
    SearchRoots,
    Targets,
    Transition,
)

NUM_GAMES, NUM_SIMULATIONS = 8, 2
ROWS = np.arange(NUM_GAMES)
OF_POSITIONS = ("value", "policy_mask", "alive", "mask")
CLOSE = 1e-4
"""The difference that equal losses may have, as a share of 1 plus their size."""


class Material(NamedTuple):
    """The inputs that an algorithm's functions are tried on."""

    learner: LearnerState
    roots: SearchRoots
    window: Transition  # leaves [N, L, ...]
    other_window: Transition  # the same, but past the games' ends


class Found(NamedTuple):
    """Their outputs."""

    searched: dict[str, SearchOutput]  # by the name of the search
    chosen: Array  # [B] int32, the moves
    legal: Array  # [B, A] bool
    terms: dict[str, Array]  # the loss of each window [N], by the term's name
    other_terms: dict[str, Array]  # of the other windows
    params: Any  # after an update
    metrics: dict[str, Array]
    num_updates: Array  # after it
    spread: Array  # the largest difference of a weight between two devices


def check_algorithm(algorithm: Algorithm, config: Config) -> list[str]:
    """The faults of an algorithm that was made for this config, in one sentence each; empty if nothing was found.

    Takes some ten seconds, most of which compile. It finds fields that are no functions, wrong shapes and dtypes, what
    JAX cannot compile, a search that chooses illegal moves or whose policy is no distribution, losses that are not
    finite, targets that depend on what comes after a game's end, and an update that changes the state's structure, does
    not count itself, or makes the devices' weights differ.
    """
    if found := list(_of_record(algorithm)):
        return found
    try:
        check = _Check(algorithm, config)
        if found := list(_of_shapes(check)):
            return found
    except Fault as error:
        return [str(error)]
    run = jax.jit(on_devices(check.run), compiler_options=QUICKLY)
    return list(_of_values(jax.device_get(run(jax.random.key(0)))))


def _of_record(algorithm: Algorithm) -> Iterator[str]:
    """Whether each field can be what it is to be."""
    for name in ("make_search", "choose", "make_targets", "update", "write_back"):
        if not callable(getattr(algorithm, name)):
            yield f"{name} is a {type(getattr(algorithm, name)).__name__}, but must be a function"
    if not isinstance(algorithm.terms, tuple | list) or not all(isinstance(term, Term) for term in algorithm.terms):
        yield "terms must hold muzero_jax.learning.losses.Term records alone: Term(name, loss, weight)"
        return
    names = [term.name for term in algorithm.terms]
    if twice := next((name for name in names if names.count(name) > 1), None):
        yield f"terms holds two losses called {twice}; give each a name of its own"
    for term in algorithm.terms:
        if term.frames not in ("root", "all"):
            yield f"the term {term.name} reads the frames {term.frames!r}, but may read 'root' or 'all'"
    if not all(hasattr(algorithm.optimiser, name) for name in ("init", "update")):
        yield "optimiser must be an Optax optimiser, with init and update"


class _Check:
    """The functions of an algorithm, tried on material that random games and a fresh network make."""

    def __init__(self, algorithm: Algorithm, config: Config):
        self.algorithm, self.config = algorithm, config
        self.searches = {
            "the search with noise": lambda *asked: algorithm.search(NUM_SIMULATIONS, noise=True)(*asked),
            "the search without noise": lambda *asked: algorithm.search(NUM_SIMULATIONS)(*asked),
        }

    def material(self, key: Array) -> Material:
        """A fresh learner; positions and windows of random games, in some of which games end."""
        environment, length = self.algorithm.environment, self.config.window_length
        own_key = jax.random.fold_in(key, jax.lax.axis_index(AXIS))  # each device plays its own games
        play = partial(self_play.rollout, environment=environment, search=_random_search, length=length)
        actor, trajectory = play(None, self_play.init(environment, own_key, num_envs=NUM_GAMES), own_key)
        window = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), trajectory)
        game, frame = jnp.arange(NUM_GAMES)[:, None], jnp.arange(length)[None]
        ends = (game < NUM_GAMES - 2) & (frame == game % (self.config.unroll_steps + 1))
        discount = jnp.where(ends & (game % 2 == 0), 0.0, window.discount)  # the others end by a time limit
        in_full = jnp.ones(ends.shape, bool) if self.config.self_play.full_search_share < 1.0 else None
        window = window._replace(is_last=window.is_last | ends, discount=discount, in_full=in_full)
        is_past = ~alive_frames(window.is_last)

        def changed(x: Array) -> Array:
            return jnp.where(is_past.reshape(*is_past.shape, *[1] * (x.ndim - 2)), jnp.roll(x, 1, axis=0), x)

        roots = environment.roots(actor.env_state)
        learner = self.algorithm.init_learner(self.algorithm.model, self.algorithm.optimiser, key)
        return Material(learner, roots, window, jax.tree.map(changed, window))

    def search(self, name: str, learner: LearnerState, roots: SearchRoots) -> Any:
        found = self.searches[name](learner.params, jax.random.key(1), roots)
        return found._replace(tree=None) if isinstance(found, SearchOutput) else found

    def choose(self, learner: LearnerState, roots: SearchRoots) -> Any:
        found = self.searches["the search with noise"](learner.params, jax.random.key(1), roots)
        moves = jnp.arange(NUM_GAMES, dtype=jnp.int32)
        return self.algorithm.choose(jax.random.key(2), found, roots.legal_action_mask, moves)

    def batch(self, learner: LearnerState, window: Transition) -> Batch:
        made, terms = self.algorithm.make_targets(window, jnp.float32(0.0)), self.algorithm.terms
        batch = self.algorithm.make_batch(window, made, jnp.ones(NUM_GAMES), jax.random.key(3), terms=terms)
        return self.algorithm.augment(batch, jax.random.key(4))

    def unroll(self, learner: LearnerState, window: Transition) -> tuple[Any, Batch]:
        batch = self.batch(learner, window)
        return unroll.unroll(self.algorithm.model, learner.params, batch), batch

    def update(self, learner: LearnerState, window: Transition) -> Any:
        loss = partial(self.algorithm.loss, model=self.algorithm.model, terms=self.algorithm.terms)
        batch, optimiser = self.batch(learner, window), self.algorithm.optimiser
        return self.algorithm.update(learner, batch, jnp.float32(0.0), loss=loss, optimiser=optimiser)

    def write_back(self, learner: LearnerState, window: Transition) -> Any:
        place = jnp.zeros(NUM_GAMES, jnp.int32)
        return self.algorithm.write_back(Sample(place, place, jnp.ones(NUM_GAMES)), window, self.batch(learner, window))

    def run(self, key: Array) -> Found:
        """All of it, for its values."""
        learner, roots, window, other = self.material(key)
        after, metrics = self.update(learner, window)

        def terms(window: Transition) -> dict[str, Array]:
            said = self.unroll(learner, window)
            return {term.name: term.loss(*said) for term in self.algorithm.terms}

        return Found(
            {name: self.search(name, learner, roots) for name in self.searches},
            self.choose(learner, roots)[0],
            roots.legal_action_mask,
            terms(window),
            terms(other),
            after.params,
            metrics,
            after.num_updates,
            _spread(after.params),
        )


def _of_shapes(check: _Check) -> Iterator[str]:
    """Faults in the shapes of each function's results, in the order in which a run calls them."""
    made = jax.eval_shape(on_devices(check.material), jax.random.key(0))
    learner, roots, window = made.learner, made.roots, made.window
    num_actions, k = check.algorithm.environment.num_actions, check.config.unroll_steps
    for name in check.searches:
        output = _traced(name, partial(check.search, name), learner, roots)
        if not isinstance(output, SearchOutput):
            yield f"{name} returns a {type(output).__name__}, but must return a muzero_jax.types.SearchOutput"
            return
        yield from _of_array(f"{name}: action", output.action, (NUM_GAMES,), jnp.int32)
        yield from _of_array(f"{name}: policy", output.policy, (NUM_GAMES, num_actions), jnp.float32)
        yield from _of_array(f"{name}: value", output.value, (NUM_GAMES,), jnp.float32)
    choice = _traced("choose", check.choose, learner, roots)
    if not (isinstance(choice, tuple) and len(choice) == 2):
        yield "choose must return two arrays: the moves, and whether each was drawn at random"
        return
    yield from _of_array("choose: the move", choice[0], (NUM_GAMES,), jnp.int32)
    yield from _of_array("choose: whether it was random", choice[1], (NUM_GAMES,), jnp.bool_)
    targets = _traced("make_targets", check.algorithm.make_targets, window, jnp.float32(0.0))
    if not isinstance(targets, Targets):
        yield f"make_targets returns a {type(targets).__name__}, but must return a muzero_jax.types.Targets"
        return
    for field, depths in (("reward", k), ("discount", k), *((name, k + 1) for name in OF_POSITIONS)):
        yield from _of_array(f"make_targets: {field}", getattr(targets, field), (NUM_GAMES, depths), jnp.float32)
    yield from _of_array("make_targets: policy", targets.policy, (NUM_GAMES, k + 1, num_actions), jnp.float32)
    said = _traced("the unrolled model", check.unroll, learner, window)
    for term in check.algorithm.terms:
        each = _traced(f"the loss {term.name}", term.loss, *said)
        yield from _of_array(f"the loss {term.name} (one number a window)", each, (NUM_GAMES,), jnp.float32)
    results = {"update": _traced("update", check.update, learner, window)}
    results["write_back"] = _traced("write_back", check.write_back, learner, window)
    for name, result in results.items():
        if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
            yield f"{name} must return two things, of which the second is a dict of metrics"
            return
        for metric, value in result[1].items():
            if not metric.startswith("train/") or getattr(value, "shape", None) != ():
                yield f"{name}: the metric {metric!r} must be one number, and its name must begin with train/"
    if jax.tree.map(_kind, results["update"][0]) != jax.tree.map(_kind, learner):
        yield "update changes the shapes or the structure of the learner's state; return what it was given, updated"


def _of_values(found: Found) -> Iterator[str]:
    """Faults in the values."""
    for name, output in found.searched.items():
        legal, policy = found.legal, output.policy
        if not (np.isfinite(policy).all() and np.isfinite(output.value).all()):
            yield f"{name} gives NaN or infinity as policy or value"
        elif not legal[ROWS, output.action].all():
            yield f"{name} chooses illegal moves; mask them by roots.legal_action_mask"
        elif (
            (policy < 0).any() or np.abs(policy.sum(axis=1) - 1).max() > CLOSE or policy[~legal].max(initial=0) > CLOSE
        ):
            yield f"{name}: the policy must be probabilities of legal moves that add up to 1"
    if not found.legal[ROWS, found.chosen].all():
        yield "choose makes illegal moves; choose among legal_action_mask"
    for name, each in found.terms.items():
        if not np.isfinite(each).all():
            yield f"the loss {name} is NaN or infinite; look for a logarithm or a division by 0"
        elif np.abs(each - found.other_terms[name]).max() > CLOSE * (1 + np.abs(each).max()):
            yield (
                f"the loss {name} depends on what comes after a game's end; mask it there, by targets.policy_mask "
                "(policies), targets.mask (values, rewards) or targets.alive (positions)"
            )
    if found.num_updates != 1:
        yield "update must count itself: return num_updates + 1, by which schedules and target networks go"
    if not found.spread <= CLOSE:
        yield (
            "update gives each device other weights; average gradients over devices, "
            "by jax.lax.pmean(gradients, muzero_jax.ops.devices.AXIS)"
        )
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((found.params, found.metrics))):
        yield "after an update weights or metrics are NaN or infinite; look for the gradient of a root or a norm at 0"


def on_devices(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function where `AXIS` names devices, as in a run: two, or one where there are no more. The first answers."""
    everything = PartitionSpec()
    return shard_map(function, devices.make_mesh(min(2, jax.device_count())), everything, everything)


def _spread(params: Any) -> Array:
    differences = [jnp.max(jnp.abs(leaf - jax.lax.pmean(leaf, AXIS))) for leaf in jax.tree.leaves(params)]
    return jax.lax.pmax(jnp.max(jnp.stack(differences)), AXIS)


def _traced(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    return traced(name, on_devices(function), *arguments)


def _random_search(params: Any, key: Array, roots: SearchRoots) -> SearchOutput:
    legal = roots.legal_action_mask
    policy = jax.nn.softmax(jax.random.normal(key, legal.shape), where=legal)
    value = jax.random.uniform(key, legal.shape[:1], minval=-1.0)
    return SearchOutput(uniform_legal_action(key, legal), policy, value)


def _kind(leaf: Any) -> tuple[Any, Any]:
    return leaf.shape, leaf.dtype


def _of_array(name: str, array: Any, shape: tuple[int, ...], dtype: Any) -> Iterator[str]:
    if getattr(array, "shape", None) != shape or array.dtype != dtype:
        shown = f"{array.dtype} {array.shape}" if hasattr(array, "dtype") else f"a {type(array).__name__}"
        yield f"{name} must be {jnp.dtype(dtype).name} {shape}, but is {shown}"
