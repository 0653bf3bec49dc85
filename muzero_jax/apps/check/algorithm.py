"""`muzero_jax.check_algorithm`: what is wrong with an algorithm of your own, in one sentence each.

Each function is traced first, which finds wrong shapes and what JAX cannot compile. Then one iteration runs as in
training. Its windows, in which some games end, are learned from twice: the second time with other frames after those
ends, so the losses must be the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec
from jaxtyping import Array

from muzero_jax.apps.check.model import QUICKLY
from muzero_jax.building.parts import make_parts
from muzero_jax.learning import losses, replay, unroll
from muzero_jax.learning.algorithm import Algorithm, World
from muzero_jax.learning.losses import Term
from muzero_jax.learning.targets import alive_frames
from muzero_jax.networks.contract import Broken, traced
from muzero_jax.ops import devices
from muzero_jax.ops.devices import shard_map
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.own import python_file
from muzero_jax.storage.config import Config
from muzero_jax.training import learn_from
from muzero_jax.types import ActorState, Draws, LearnerState, Params, SearchOutput, SearchRoots, Targets, Transition

NUM_GAMES, NUM_MOVES = 8, 2
OF_POSITIONS = ("value", "policy_mask", "alive", "mask")
CLOSE = 1e-4
"""The difference that equal losses may have, as a share of 1 plus their size."""


class Found(NamedTuple):
    """What an iteration and its losses say."""

    played: Transition  # leaves [T, B, ...]
    searched: SearchOutput  # without noise, of B positions
    legal: Array  # [B, A] bool, in those
    terms: dict[str, Array]  # the losses [2, N] of windows, and of others that differ past the games' ends
    learner: LearnerState
    metrics: dict[str, Array]


def check_algorithm(algorithm: Algorithm, world: World, config: Config) -> list[str]:
    """The faults of an algorithm for a game and a network, in one sentence each; empty if nothing was found.

    Takes some ten seconds, most of which compile. It finds fields that are no functions, wrong shapes and dtypes, what
    JAX cannot compile, self-play that makes illegal moves or policies that are no distributions, losses that are not
    finite or depend on what comes after a game's end, and an update that changes the state's structure or does not
    count itself.
    """
    if found := list(_of_record(algorithm)):
        return found
    key = jax.random.key(0)
    try:
        trial = _Trial(algorithm, world, _small(config))
        if found := list(_of_shapes(trial)):
            return found
        iteration = jax.jit(_on_one_device(trial.run)).lower(key)
    except Broken as error:
        return [str(error)]
    except Exception as error:  # of functions where a run is put together, or only where they meet
        return [f"an iteration fails with {python_file.describe(error)}"]
    return list(_of_values(jax.device_get(iteration.compile(QUICKLY)(key))))


def _small(config: Config) -> Config:
    """The config with few games, rollouts and batches, which learns at once; windows and searches stay as they are."""
    return replace(
        config,
        self_play=replace(config.self_play, num_envs=NUM_GAMES, rollout_length=NUM_MOVES),
        replay=replace(config.replay, replay_length=config.window_length + NUM_MOVES, min_frames=1),
        optimiser=replace(config.optimiser, batch_size=NUM_GAMES, micro_batch_size=None, updates_per_iteration=1),
    )


def _of_record(algorithm: Algorithm) -> Iterator[str]:
    """Whether each field can be what it is to be."""
    for name in ("self_play_search", "make_search", "choose", "make_targets", "update", "note"):
        if not callable(getattr(algorithm, name)):
            yield f"{name} is a {type(getattr(algorithm, name)).__name__}, but must be a function"
    if not isinstance(algorithm.terms, tuple | list) or not all(isinstance(term, Term) for term in algorithm.terms):
        yield "terms must hold muzero_jax.learning.losses.Term records alone: Term(name, loss, weight)"
        return
    names = [term.name for term in algorithm.terms]
    if twice := next((name for name in names if names.count(name) > 1), None):
        yield f"terms holds two losses called {twice}; give each a name of its own"
    for name in sorted(losses.reads(algorithm.terms).difference(losses.ON_REQUEST)):
        yield f"a term reads {name!r}, but only {', '.join(losses.ON_REQUEST)} have to be asked for"
    if not all(hasattr(algorithm.optimiser, name) for name in ("init", "update")):
        yield "optimiser must be an Optax optimiser, with init and update"


class _Trial:
    """A run of the algorithm, small enough to try."""

    def __init__(self, algorithm: Algorithm, world: World, config: Config):
        self.algorithm, self.world, self.config = algorithm, world, config
        self.parts = make_parts(config, world, algorithm)

    def begin(self, key: Array) -> tuple[LearnerState, ActorState, Transition]:
        """A fresh learner; random games, and as many of their moves [L, B, ...] as a window has."""
        learner = self.parts.init_learner(key)
        play = partial(self.parts.rollout, search=self._random_search, length=self.config.window_length)  # type: ignore
        return learner, *play(learner.params, self.parts.init_actor(key), key)

    def _random_search(self, params: Params, key: Array, roots: SearchRoots) -> SearchOutput:
        legal = roots.legal_action_mask
        found = jax.eval_shape(self.algorithm.self_play_search, params, key, roots)
        in_full = None if found.in_full is None else jnp.ones(NUM_GAMES, bool)
        noise = jax.random.normal(key, legal.shape)
        action, policy = uniform_legal_action(key, legal), jax.nn.softmax(noise, where=legal)
        return SearchOutput(action, policy, jnp.tanh(noise[:, 0]), in_full=in_full)

    def windows(self, games: Transition) -> Transition:
        """The games as windows [B, L, ...], of which all but two end in between, every second by a time limit."""
        window = jax.tree.map(lambda x: jnp.moveaxis(x, 0, 1), games)
        game, frame = jnp.arange(NUM_GAMES)[:, None], jnp.arange(self.config.window_length)[None]
        ends = (game < NUM_GAMES - 2) & (frame == game % (self.config.unroll_steps + 1))
        discount = jnp.where(ends & (game % 2 == 0), 0.0, window.discount)
        return window._replace(is_last=window.is_last | ends, discount=discount)

    def search(self, params: Params, key: Array, roots: SearchRoots) -> Any:
        """The search without noise, as evaluation and play make it."""
        return self.algorithm.make_search(self.config.evaluation.num_simulations)(params, key, roots)

    def choose(self, learner: LearnerState, roots: SearchRoots) -> Any:
        found = self.algorithm.self_play_search(learner.params, jax.random.key(1), roots)
        return self.algorithm.choose(
            jax.random.key(2), found, roots.legal_action_mask, jnp.arange(NUM_GAMES, dtype=jnp.int32)
        )

    def unroll(self, learner: LearnerState, window: Transition) -> Any:
        """What the losses read."""
        batch = self.parts.make_batch(window, jnp.ones(NUM_GAMES), learner.num_updates, jax.random.key(3))
        wanted = losses.reads(self.algorithm.terms)
        asked = {"reconstruct": "observation_logits" in wanted, "consistency": "projection" in wanted}
        return unroll.unroll(self.world.model, learner.params, batch, **asked), batch

    def run(self, key: Array) -> Found:
        """An iteration, and the losses of windows that differ in nothing but what comes after their games' ends."""
        learner, actor, games = self.begin(key)
        actor, played = self.parts.rollout(learner.params, actor, key)
        buffer = self.parts.init_replay(jax.tree.map(lambda x: x[0, 0], played))
        buffer = replay.add(buffer, jax.tree.map(lambda *x: jnp.concatenate(x), games, played))
        learner, revisions, metrics = learn_from(learner, buffer, key, parts=self.parts)
        replay.revise(buffer, revisions)

        window = self.windows(games)
        is_past = ~alive_frames(window.is_last)

        def both(x: Array) -> Array:
            past = is_past.reshape(*is_past.shape, *[1] * (x.ndim - 2))
            return jnp.stack([x, jnp.where(past, jnp.roll(x, 1, axis=0), x)])

        def losses_of(window: Transition) -> dict[str, Array]:
            said = self.unroll(learner, window)
            return {term.name: term.loss(*said) for term in self.algorithm.terms}

        terms = jax.lax.map(losses_of, jax.tree.map(both, window))
        roots = self.world.environment.roots(actor.env_state)
        searched = self.search(learner.params, key, roots)._replace(tree=None)
        return Found(played, searched, roots.legal_action_mask, terms, learner, metrics)


def _of_shapes(trial: _Trial) -> Iterator[str]:
    """Faults in the shapes of each function's results, in the order in which a run calls them."""
    key, algorithm = jax.random.key(0), trial.algorithm
    learner = _traced("the optimiser's init", trial.parts.init_learner, key)
    actor = jax.eval_shape(trial.parts.init_actor, key)
    roots = jax.eval_shape(trial.world.environment.roots, actor.env_state)
    num_actions, k = trial.world.environment.num_actions, trial.config.unroll_steps
    searches = {"self_play_search": algorithm.self_play_search, "the search of make_search": trial.search}
    for name, search in searches.items():
        output = _traced(name, search, learner.params, key, roots)
        if not isinstance(output, SearchOutput):
            yield f"{name} returns a {type(output).__name__}, but must return a muzero_jax.types.SearchOutput"
            return
        yield from _of_array(f"{name}: action", output.action, (NUM_GAMES,), jnp.int32)
        yield from _of_array(f"{name}: policy", output.policy, (NUM_GAMES, num_actions), jnp.float32)
        yield from _of_array(f"{name}: value", output.value, (NUM_GAMES,), jnp.float32)
    choice = _traced("choose", trial.choose, learner, roots)
    if not (isinstance(choice, tuple) and len(choice) == 2):
        yield "choose must return two arrays: the moves, and whether each was drawn at random"
        return
    yield from _of_array("choose: the move", choice[0], (NUM_GAMES,), jnp.int32)
    yield from _of_array("choose: whether it was random", choice[1], (NUM_GAMES,), jnp.bool_)
    _, _, games = _traced("self-play", trial.begin, key)
    window = jax.eval_shape(trial.windows, games)
    targets = _traced("make_targets", algorithm.make_targets, window, jnp.int32(0))
    if not isinstance(targets, Targets):
        yield f"make_targets returns a {type(targets).__name__}, but must return a muzero_jax.types.Targets"
        return
    for field, depths in (("reward", k), ("discount", k), *((name, k + 1) for name in OF_POSITIONS)):
        yield from _of_array(f"make_targets: {field}", getattr(targets, field), (NUM_GAMES, depths), jnp.float32)
    yield from _of_array("make_targets: policy", targets.policy, (NUM_GAMES, k + 1, num_actions), jnp.float32)
    said = _traced("the unrolled model", trial.unroll, learner, window)
    for term in algorithm.terms:
        each = _traced(f"the loss {term.name}", term.loss, *said)
        yield from _of_array(f"the loss {term.name} (one number a window)", each, (NUM_GAMES,), jnp.float32)
    batch = _traced("a symmetry of the game", trial.parts.augment, said[1], key)
    place = jnp.zeros(NUM_GAMES, jnp.int32)
    draws = Draws(place, place, jnp.ones(NUM_GAMES))
    results = {
        "update": _traced("update", trial.parts.update, learner, batch),
        "note": _traced("note", trial.parts.note, draws, window, said[1]),
    }
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
    played = found.played
    for name, legal, action, policy, value in (
        ("self-play", played.legal_action_mask, played.action, played.search_policy, played.search_value),
        ("the search of make_search", found.legal, *found.searched[:3]),
    ):
        if not (np.isfinite(policy).all() and np.isfinite(value).all()):
            yield f"{name} gives NaN or infinity as policy or value"
        elif not np.take_along_axis(np.asarray(legal), np.asarray(action)[..., None], axis=-1).all():
            yield f"{name} makes illegal moves; search and choose among the legal ones alone"
        elif (
            (policy < 0).any() or np.abs(policy.sum(axis=-1) - 1).max() > CLOSE or policy[~legal].max(initial=0) > CLOSE
        ):
            yield f"{name}: the policy must be probabilities of legal moves that add up to 1"
    for name, (each, other) in found.terms.items():
        if not np.isfinite(each).all():
            yield f"the loss {name} is NaN or infinite; look for a logarithm or a division by 0"
        elif np.abs(each - other).max() > CLOSE * (1 + np.abs(each).max()):
            yield (
                f"the loss {name} depends on what comes after a game's end; mask it there, by targets.policy_mask "
                "(policies), targets.mask (values, rewards) or targets.alive (positions)"
            )
    if found.learner.num_updates != 1:
        yield "update must count itself: return num_updates + 1, by which schedules and target networks go"
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((found.learner.params, found.metrics))):
        yield "after an update weights or metrics are NaN or infinite; look for the gradient of a root or a norm at 0"


def _on_one_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function where `AXIS` names devices, as in a run."""
    return shard_map(function, devices.make_mesh(1), PartitionSpec(), PartitionSpec())


def _traced(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    return traced(name, _on_one_device(function), *arguments)


def _kind(leaf: Any) -> tuple[Any, Any]:
    return leaf.shape, leaf.dtype


def _of_array(name: str, array: Any, shape: tuple[int, ...], dtype: Any) -> Iterator[str]:
    if getattr(array, "shape", None) != shape or array.dtype != dtype:
        shown = f"{array.dtype} {array.shape}" if hasattr(array, "dtype") else f"a {type(array).__name__}"
        yield f"{name} must be {jnp.dtype(dtype).name} {shape}, but is {shown}"
