"""Where a config becomes functions, and where the algorithm stands: read `train_iteration` first.

A whole run is a pure function: `jit(scan(train_iteration))` is one XLA program, and between its start and its end
nothing visits the host. Devices share the games and the batch over one mesh axis, "data": each plays its own games into
its own slice of the replay ring and learns from its own slice of the batch; only the gradients meet (a mean).
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from muzero_jax.arithmetic import micro_batches, precision
from muzero_jax.arithmetic.devices import AXIS, shard_map
from muzero_jax.games.environment import augment, make_environment
from muzero_jax.learning import learner, reanalyze, replay, self_play, targets
from muzero_jax.learning.losses import LossWeights, muzero_loss
from muzero_jax.networks.model import make_model
from muzero_jax.networks.value_transform import Support
from muzero_jax.search import narrow, simulator
from muzero_jax.search.engines import ENGINES
from muzero_jax.storage.config import Config
from muzero_jax.types import (
    ActorState,
    Batch,
    Environment,
    Init,
    LearnerState,
    Metrics,
    Model,
    QTransform,
    ReplayState,
    SearchFn,
    TrainState,
)

_INIT = 2**32 - 1  # folded into the seed for the initial state; iterations fold in 0, 1, 2, ...


class Parts(NamedTuple):
    """A config as functions: all that a run, an evaluation or a game against a person is made of."""

    environment: Environment
    model: Model
    search: SearchFn  # with self-play's noise
    reanalyze_search: SearchFn  # without root noise
    optimiser: optax.GradientTransformation


def make_search(
    config: Config,
    environment: Environment,
    model: Model,
    *,
    noise: bool,
    num_simulations: int | None = None,
    true_rules: bool = False,
) -> SearchFn:
    """The configured search; without `noise` it is deterministic and greedy, as evaluation and play want it.

    With `true_rules` it plans with the game itself in place of the learned dynamics, and takes states for observations.
    A larger budget than self-play's considers more root actions, as the square root of the ratio.
    """
    s, model = config.search, micro_batches.for_inference(model)
    if true_rules:
        world = simulator.true_rules(environment, model)
    else:
        world = simulator.learned_model(model, environment.discount)
    engine = ENGINES[s.engine]
    budget = num_simulations or s.num_simulations
    num_considered = round(s.max_num_considered_actions * max(1.0, budget / s.num_simulations) ** 0.5)
    if s.policy == "gumbel":
        make = partial(
            engine.gumbel_search,
            num_simulations=budget,
            max_num_considered_actions=min(num_considered, environment.num_actions),
            gumbel_scale=s.gumbel_scale if noise else 0.0,
            qtransform=QTransform(s.value_scale, s.maxvisit_init, s.rescale_values),
            improved_value=s.improved_value,
        )
    else:
        make = partial(
            engine.puct_search,
            num_simulations=budget,
            dirichlet_fraction=s.dirichlet_fraction if noise else 0.0,
            dirichlet_alpha=s.dirichlet_alpha,
            pb_c_init=s.pb_c_init,
            pb_c_base=s.pb_c_base,
            temperature=s.temperature if noise else 0.0,
        )
    slots = narrow.num_slots(s.max_children, environment.num_actions)
    return make(world) if slots == environment.num_actions else narrow.narrow(make, world, slots, noise=noise)


def make_parts(config: Config) -> Parts:
    """Builds the functions of a run; allocates nothing."""
    environment = make_environment(config.env, board_size=config.board_size, gamma=config.targets.discount)
    n, o = config.network, config.optimiser
    model = make_model(
        environment,
        Support(-1.0, 1.0, n.num_bins),
        kind=n.kind,
        width=n.width,
        num_blocks=n.num_blocks,
        activation=n.activation,
        compute_dtype=precision.resolve(n.compute_dtype).compute_dtype,
    )
    schedule = learner.make_schedule(
        learning_rate=o.learning_rate,
        schedule=o.schedule,
        warmup_updates=o.warmup_updates,
        decay_updates=o.decay_updates,
    )
    return Parts(
        environment=environment,
        model=model,
        search=make_search(config, environment, model, noise=True),
        reanalyze_search=make_search(config, environment, model, noise=False),
        optimiser=learner.make_optimiser(schedule, weight_decay=o.weight_decay, max_gradient_norm=o.max_gradient_norm),
    )


def train_iteration(state: TrainState, *, config: Config, parts: Parts) -> tuple[TrainState, Metrics]:
    """One iteration of MuZero: play T moves of B games, remember them, learn from U batches of windows.

    Runs inside `shard_map`: leaves of `state` are one device's share, and `AXIS` names the devices.
    """
    key = jax.random.fold_in(jax.random.fold_in(state.seed_key, state.iteration), jax.lax.axis_index(AXIS))
    rollout_key, start_key, update_key = jax.random.split(key, 3)

    actor, trajectory = self_play.rollout(
        state.learner.params,
        state.actor,
        rollout_key,
        environment=parts.environment,
        search=parts.search,
        length=config.self_play.rollout_length,
        exploration=config.self_play.exploration,
    )
    memory = replay.add(state.replay, trajectory)
    learn = partial(learn_from, config=config, parts=parts)
    ready = memory.num_stored >= config.frames_to_learn
    learner_state, loss_metrics = jax.lax.cond(
        ready, learn, partial(skip_learning, learn), state.learner, memory, start_key, update_key
    )
    metrics = jax.lax.psum(self_play.statistics(trajectory), AXIS) | loss_metrics
    return TrainState(actor, learner_state, memory, state.iteration + 1, state.seed_key), metrics


def learn_from(
    learner_state: LearnerState,
    memory: ReplayState,
    start_key: Array,
    update_key: Array,
    *,
    config: Config,
    parts: Parts,
) -> tuple[LearnerState, Metrics]:
    """U gradient steps on windows drawn from the ring; metrics are means over them."""
    r, t, o = config.replay, config.targets, config.optimiser
    loss_weights = LossWeights(o.reward_weight, o.value_weight, o.policy_weight, o.reconstruction_weight)
    weights = replay.start_weights(
        memory, window_length=config.window_length, unroll_steps=t.unroll_steps, end_weight=r.end_weight
    )
    batch_size = o.batch_size // jax.lax.axis_size(AXIS)
    slots, games = replay.draw_starts(start_key, weights, (o.updates_per_iteration, batch_size))
    shape, observed = parts.environment.observation_shape, observation_length(config)

    def update(learner_state, step):
        slot, game, key = step
        symmetry_key, reanalyze_key, action_key = jax.random.split(key, 3)
        window = replay.gather(
            memory, slot, game, observation_shape=shape, window_length=config.window_length, observation_length=observed
        )
        staleness = {}
        if r.reanalyze_fraction:
            window, staleness = reanalyze.refresh_share(
                learner_state.params,
                window,
                reanalyze_key,
                search=parts.reanalyze_search,
                share=r.reanalyze_fraction,
                num_frames=config.window_length,  # value targets bootstrap from every frame
            )
        window = window._replace(  # all that the learner reads of these
            search_policy=window.search_policy[:, : t.unroll_steps + 1],
            legal_action_mask=window.legal_action_mask[:, :1],
        )
        if r.symmetries:
            window = augment(window, symmetry_key, parts.environment.symmetries)
        batch = Batch(
            window.observation,
            window.legal_action_mask[:, 0],
            targets.unroll_actions(window, action_key, unroll_steps=t.unroll_steps),
            targets.make(
                window,
                unroll_steps=t.unroll_steps,
                td_steps=t.td_steps,
                td_lambda=t.td_lambda,
                stop_at_exploration=t.stop_at_exploration,
            ),
        )
        learner_state, metrics = learner.update(
            learner_state,
            batch,
            model=parts.model,
            optimiser=parts.optimiser,
            loss=partial(muzero_loss, weights=loss_weights, checkpoint_unroll=o.checkpoint_unroll),
            micro_batch=micro_batch(config, parts.model, batch_size),
            axis_name=AXIS,
        )
        return learner_state, metrics | jax.lax.pmean(staleness, AXIS)

    keys = jax.random.split(update_key, o.updates_per_iteration)
    learner_state, metrics = jax.lax.scan(update, learner_state, (slots, games, keys))
    metrics = jax.tree.map(jnp.mean, metrics)
    metrics["train/updates"] = jnp.float32(o.updates_per_iteration)
    return learner_state, metrics


def micro_batch(config: Config, model: Model, batch_size: int) -> int:
    """Of how many of a device's `batch_size` windows the gradient is computed at once."""
    asked, scales_loss = config.optimiser.micro_batch_size, precision.resolve(config.network.compute_dtype).scales_loss
    if asked or scales_loss:
        return micro_batches.size(batch_size, largest=asked)
    return micro_batches.size_for_cache(batch_size, model.layer_bytes, micro_batches.GRADIENT_BYTES)


def observation_length(config: Config) -> int:
    """How many frames of a window must bring their observation: the first, unless an option reads more."""
    if config.replay.reanalyze_fraction:
        return config.window_length
    return config.targets.unroll_steps + 1 if config.optimiser.reconstruction_weight else 1


def skip_learning(learn: Callable, learner_state: LearnerState, *inputs) -> tuple[LearnerState, Metrics]:
    """Leaves the learner as it is, while the ring fills; same output structure as `learn`, all metrics 0."""
    _, metrics = jax.eval_shape(learn, learner_state, *inputs)
    return learner_state, jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), metrics)


def init(config: Config, parts: Parts) -> TrainState:
    """The state of a run before its first iteration."""
    seed_key = jax.random.key(config.seed)
    actor_key, learner_key = jax.random.split(jax.random.fold_in(seed_key, _INIT))
    actor = self_play.init(parts.environment, actor_key, num_envs=config.self_play.num_envs)
    scale_loss = precision.resolve(config.network.compute_dtype).scales_loss
    learner_state = learner.init(parts.model, parts.optimiser, learner_key, scale_loss=scale_loss)
    _, trajectory = jax.eval_shape(
        partial(self_play.rollout, environment=parts.environment, search=parts.search, length=1, exploration=0.0),
        learner_state.params,
        actor,
        actor_key,
    )
    transition = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[2:], x.dtype), trajectory)
    memory = replay.init(transition, num_envs=config.self_play.num_envs, replay_length=config.replay.replay_length)
    return TrainState(actor, learner_state, memory, jnp.int32(0), seed_key)


def state_specs() -> TrainState:
    """How a TrainState lies over the mesh: games and their ring are split, all else is everywhere (a prefix tree)."""
    everywhere, games = PartitionSpec(), PartitionSpec(AXIS)
    ring = ReplayState(PartitionSpec(None, AXIS), everywhere, everywhere)  # type: ignore
    return TrainState(ActorState(games), everywhere, ring, everywhere, everywhere)  # type: ignore


def abstract_state(config: Config, parts: Parts, mesh: Mesh) -> TrainState:
    """Shapes, dtypes and shardings of the state: what a checkpoint is restored onto and memory is planned from."""
    return make_init(config, parts, mesh).eval_shape()


def make_init(config: Config, parts: Parts, mesh: Mesh) -> Init:
    """`init` compiled so that every leaf is made where it will live; its `eval_shape()` is `abstract_state`."""
    specs, structure = jax.tree.flatten(state_specs(), is_leaf=lambda x: isinstance(x, PartitionSpec))
    shardings = structure.unflatten([NamedSharding(mesh, spec) for spec in specs])
    return jax.jit(partial(init, config, parts), out_shardings=shardings)


def make_chunk(config: Config, parts: Parts, mesh: Mesh) -> Callable[[TrainState], tuple[TrainState, Metrics]]:
    """The one program: `iterations_per_chunk` iterations. The state is donated; metrics are stacked by iteration."""
    iteration = partial(train_iteration, config=config, parts=parts)

    def chunk(state: TrainState):
        return jax.lax.scan(lambda s, _: iteration(s), state, None, length=config.iterations_per_chunk)

    specs = state_specs()
    return jax.jit(shard_map(chunk, mesh, (specs,), (specs, PartitionSpec())), donate_argnums=0)
