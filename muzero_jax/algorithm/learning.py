"""Builds the stages of learning from a config: windows, Reanalyze, targets, losses, the optimiser."""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

import jax.numpy as jnp
import optax
from jaxtyping import Array

from muzero_jax.config.config import Config
from muzero_jax.learning import chance, learner, losses, priorities, reanalyze, replay, symmetries, targets
from muzero_jax.learning.losses import Term
from muzero_jax.networks.value_transform import squash
from muzero_jax.ops import micro_batches
from muzero_jax.ops.devices import device_kind
from muzero_jax.ops.mesh import largest_divisor
from muzero_jax.types import (
    Batch,
    Environment,
    LearnerState,
    LossOf,
    Metrics,
    Model,
    ReplayState,
    Sample,
    Targets,
    Transition,
    WriteBack,
)


class DeviceChoices(NamedTuple):
    """The fastest of several equivalent ways to compute, for a kind of device; results agree up to rounding.

    Layers and array operations choose theirs in `ops`. The search engine is a setting, which `presets` chooses.
    """

    searchsorted: Literal["scan", "scan_unrolled"]  # `jnp.searchsorted`'s method, where windows are sampled
    written_out: bool  # returns as one kernel, without a loop. On a CPU a loop is as fast, and compiles sooner
    batched: Literal["always", "dense", "never"]  # which networks imagine a window's moves all at once


DEVICE_CHOICES = {
    "CPU": DeviceChoices("scan", written_out=False, batched="never"),
    # Larger Hex, whose networks are not dense, keeps these two busy anyway, and batched moves cost a tenth more work.
    "TPU": DeviceChoices("scan_unrolled", written_out=True, batched="dense"),
    "small GPU": DeviceChoices("scan_unrolled", written_out=True, batched="dense"),
    "large GPU": DeviceChoices("scan_unrolled", written_out=True, batched="always"),
}


def device_choices() -> DeviceChoices:
    """The choices for the device that programs are made for."""
    return DEVICE_CHOICES[device_kind()]


def build_sample(config: Config) -> Callable[[Array, ReplayState], Sample]:
    """Samples the windows of all batches of an iteration, with or without priorities."""
    buffer = config.replay
    prioritised = partial(
        priorities.sample, priority_exponent=buffer.priority_exponent, importance_exponent=buffer.importance_exponent
    )
    return partial(
        prioritised if buffer.priority_exponent else replay.sample,
        num_updates=config.optimiser.updates_per_iteration,
        batch_size=config.optimiser.batch_size,
        method=device_choices().searchsorted,
        weigh=partial(
            replay.start_weights,
            window_length=config.window_length,
            unroll_steps=config.unroll_steps,
            end_weight=buffer.end_weight if config.unroll_steps else 1,  # ends teach rewards, which need an unroll
        ),
    )


def build_gather(config: Config, environment: Environment) -> Callable[..., Transition]:
    """Reads windows, with only as many of their observations as the losses or Reanalyze read."""
    searched = reanalyzed_frames(config) if config.reanalyze_fraction else 0

    def gather(buffer: ReplayState, sample: Sample, *, num_frames: int) -> Transition:
        return replay.gather(
            buffer,
            sample,
            observation_shape=environment.observation_shape,
            window_length=config.window_length,
            observation_length=max(num_frames, searched),
        )

    return gather


def reanalyzed_frames(config: Config) -> int:
    """How many frames of a window Reanalyze searches: the K + 1 that are learned, or all of them if returns are short.

    With long returns hardly any target bootstraps from the rest, and other windows refresh most of it anyway.
    """
    is_short = config.targets.td_steps <= max(config.unroll_steps, 1)
    return config.window_length if is_short else config.unroll_steps + 1


def build_reanalyze(config: Config) -> Callable[..., tuple[Transition, tuple[WriteBack, ...], Metrics]]:
    """Searches a share of the windows again, without root noise; or does nothing."""
    share = config.reanalyze_fraction
    if not share:
        return lambda learner_state, sample, window, key, *, search: (window, (), {})
    return partial(reanalyze.refresh, share=share, num_frames=reanalyzed_frames(config))


def build_write_back(config: Config) -> Callable[[Sample, Transition, Batch], tuple[tuple[WriteBack, ...], Metrics]]:
    """Finds the new priorities of an update's windows, with metrics; or does nothing."""
    if not config.replay.priority_exponent:
        return lambda sample, window, batch: ((), {})
    return partial(
        priorities.updated,
        make_returns=build_returns(config, unroll_steps=0),  # even if values also learn from the search's
        stops=build_stops(config),
    )


def build_targets(config: Config) -> Callable[..., Targets]:
    """Makes the targets of K + 1 predictions of each window, in the same way throughout the run.

    A variant may give another lambda: (windows, progress, td_lambda=...) -> the targets.
    """
    make = build_returns(config, unroll_steps=config.unroll_steps)
    stops = build_stops(config)
    own_weight = config.targets.search_value_weight
    largest = config.network.support_range

    def share(x: Array) -> Array:
        return squash(x) / squash(jnp.float32(largest)) if config.network.squash else x / largest

    def make_targets(
        window: Transition, progress: Array, *, td_lambda: float | Array = config.targets.td_lambda
    ) -> Targets:
        wanted = make(window, td_lambda=td_lambda, search_value_weight=own_weight)
        returns = make(window, td_lambda=td_lambda) if own_weight else wanted
        if config.search.policy == "none":
            played = targets.played_returns(window, returns, stops(window))
            wanted = wanted._replace(by_action={"action_value": played / largest})
        if config.self_play.starts == "regret":
            regret = targets.regret(window, returns, stops(window), share=share)
            wanted = wanted._replace(extras=wanted.extras | {"regret": regret})
        return wanted

    return make_targets


def build_stops(config: Config) -> Callable[[Transition], Array]:
    """Finds where returns end: windows [N, L, ...] -> mask [N, L]."""
    return partial(targets.stops, stop_at_exploration=config.targets.stop_at_exploration)


def build_returns(config: Config, *, unroll_steps: int) -> Callable[..., Targets]:
    """Makes targets whose values are pure returns, without a share of the search's value."""
    wanted = config.targets
    return partial(
        targets.make,
        unroll_steps=unroll_steps,
        td_steps=wanted.td_steps,
        td_lambda=wanted.td_lambda,
        stop_at_exploration=wanted.stop_at_exploration,
        written_out=device_choices().written_out,
    )


def build_make_batch(config: Config, model: Model) -> Callable[..., Batch]:
    """Makes the batch of an update: (windows, targets, weights, key, num_frames=...) -> the batch."""
    sample_codes = None
    if model.num_codes and config.learns_dynamics:  # known outcomes, or random codes beside an encoder's
        sample_codes = partial(chance.sample_codes, num_codes=model.num_codes, known=not model.encode_chance)
    return partial(targets.make_batch, unroll_steps=config.unroll_steps, sample_codes=sample_codes)


def build_augment(config: Config, environment: Environment) -> Callable[[Batch, Array], Batch]:
    """Applies a random symmetry of the game's board to each window, or none."""
    if environment.board is None or not config.replay.symmetries:
        return lambda batch, key: batch
    found = environment.board.symmetries
    if config.model != "learned_outcomes":
        found = found._replace(outcome_permutation=None)  # codes that an encoder finds are not outcomes
    elif found.outcome_permutation is None and found.action_permutation.shape[0] > 1:
        raise ValueError(
            f"{environment.name} does not say what its symmetries do to the outcomes of chance, which --model "
            "learned_outcomes learns from; add --replay.no-symmetries"
        )
    return partial(symmetries.augment, symmetries=found)


def follow_of(config: Config) -> learner.Follow | None:
    """The rule by which the target network follows the network; None without a target network."""
    optimiser = config.optimiser
    if optimiser.target_period:
        return partial(learner.copied, period=optimiser.target_period)
    return partial(learner.averaged, decay=optimiser.target_decay) if optimiser.target_decay else None


def build_update(config: Config, model: Model) -> Callable[..., tuple[LearnerState, Metrics]]:
    """One gradient step; ValueError for small parts of a batch that a loss needs whole."""
    own = config.optimiser
    if own.micro_batch_size and model.encode_chance:
        raise ValueError(
            "--optimiser.micro-batch-size does not go with codes of chance that are learned, which need whole batches; "
            "leave it out, or add --network.chance-codes 0"
        )
    schedule = learner.make_schedule(
        learning_rate=own.learning_rate, schedule=own.schedule, warmup_updates=own.warmup_updates
    )
    follow = follow_of(config)
    average = partial(learner.averaged_from_the_start, decay=own.average_decay) if own.average_decay else None

    def update(
        learner_state: LearnerState,
        batch: Batch,
        progress: Array,
        *,
        loss: LossOf,
        optimiser: optax.GradientTransformation,
    ) -> tuple[LearnerState, Metrics]:
        return learner.update(
            learner_state,
            batch,
            schedule(progress, learner_state.num_updates),
            loss=loss,
            optimiser=optimiser,
            follow=follow,
            average=average,
            micro_batch=micro_batch(config, model, batch.actions.shape[0]),
        )

    return update


def unrolls_batched(config: Config) -> bool:
    """Whether networks that can imagine a window's moves all at once do so, if that is faster (`device_choices`)."""
    pays = device_choices().batched
    is_dense = config.network.kind != "fully_convolutional"
    return not config.optimiser.checkpoint_unroll and (pays == "always" or (pays == "dense" and is_dense))


def build_terms(config: Config, model: Model) -> tuple[Term, ...]:
    """The losses of MuZero (Schrittwieser et al. 2020, equation 1 and appendix G), and those that options add.

    Without learned dynamics only what is read of positions is learned, because nothing is unrolled.
    """
    weights = config.optimiser
    terms = [
        Term("value", losses.value_loss, weights.value_weight),
        Term("policy", losses.policy_loss, weights.policy_weight),
    ]
    if weights.advantage_weight:
        scale = 1 / (config.search.kl_weight + config.search.entropy_weight)
        terms.append(Term("advantage", partial(losses.advantage_loss, scale=scale), weights.advantage_weight))
    if not config.learns_dynamics:
        return (*terms, *(losses.head_term(head) for head in model.heads if head.at == "position"))
    terms += [
        Term("reward", losses.reward_loss, weights.reward_weight),
        Term("root_value", losses.root_value_loss, 0.0),
    ]
    if weights.reconstruction_weight:
        terms.append(Term("reconstruction", losses.reconstruction_loss, weights.reconstruction_weight, "all"))
    if config.compares_embeddings:
        terms.append(Term("consistency", losses.consistency_loss, weights.consistency_weight, "all"))
    terms += map(losses.head_term, model.heads)
    if model.num_codes:
        terms += [
            Term("chance", chance.chance_loss, weights.chance_weight),
            Term("afterstate_value", chance.afterstate_value_loss, weights.value_weight),
        ]
    if model.encode_chance is not None:
        terms.append(Term("commitment", chance.commitment_loss, weights.commitment_weight))
    return tuple(terms)


def micro_batch(config: Config, model: Model, batch_size: int) -> int:
    """How many of a device's `batch_size` windows one gradient computation takes at once."""
    micro_batch_size = config.optimiser.micro_batch_size
    if config.compares_embeddings or model.encode_chance:  # they standardise or centre over the whole batch
        return batch_size
    if micro_batch_size:
        return largest_divisor(micro_batch_size, batch_size)
    return micro_batches.size_for_cache(batch_size, model.layer_bytes, micro_batches.GRADIENT_BYTES)
