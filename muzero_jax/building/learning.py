"""What learning is made of: windows, Reanalyze, targets, losses, the optimiser."""

from collections.abc import Callable
from functools import partial
from typing import Any

from jaxtyping import Array

from muzero_jax.arithmetic import micro_batches
from muzero_jax.arithmetic.devices import AXIS
from muzero_jax.building import searches
from muzero_jax.building.worlds import foretells_discount
from muzero_jax.learning import learner, losses, priorities, reanalyze, replay, symmetries, targets
from muzero_jax.learning.losses import Term
from muzero_jax.storage.config import Config
from muzero_jax.types import (
    Batch,
    Draws,
    Environment,
    LearnerState,
    Metrics,
    Model,
    Params,
    ReplayState,
    Revision,
    Targets,
    Transition,
)


def build_optimiser(config: Config):
    """The optimiser that the config names; its learning rate is given with every update."""
    optimiser = config.optimiser
    return learner.make_optimiser(
        name=optimiser.name, weight_decay=optimiser.weight_decay, max_gradient_norm=optimiser.max_gradient_norm
    )


def build_schedule(config: Config) -> learner.Schedule:
    """The learning rate by the number of updates."""
    optimiser = config.optimiser
    return learner.make_schedule(
        learning_rate=optimiser.learning_rate,
        schedule=optimiser.schedule,
        warmup_updates=optimiser.warmup_updates,
    )


def build_follow(config: Config) -> learner.Follow | None:
    """How the target network follows; None without one."""
    optimiser = config.optimiser
    if optimiser.target_period:
        return partial(learner.copied, period=optimiser.target_period)
    return partial(learner.averaged, decay=optimiser.target_decay) if optimiser.target_decay else None


def build_draw(config: Config) -> Callable[[Array, ReplayState], Draws]:
    """Draws the windows of all batches of an iteration: by priority, or all alike."""
    ring = config.replay
    prioritised = partial(
        priorities.draw, priority_exponent=ring.priority_exponent, importance_exponent=ring.importance_exponent
    )
    return partial(
        prioritised if ring.priority_exponent else replay.draw,
        num_updates=config.optimiser.updates_per_iteration,
        batch_size=config.optimiser.batch_size,
        weigh=partial(
            replay.start_weights,
            window_length=config.window_length,
            unroll_steps=config.unroll_steps,
            end_weight=ring.end_weight if config.unroll_steps else 1,  # it is for the rewards, which nobody learns then
        ),
    )


def observation_length(config: Config) -> int:
    """How many frames of a window must bring their observation: the first, unless an option reads more."""
    reads_all = config.optimiser.reconstruction_weight or config.optimiser.consistency_weight
    unrolled = config.unroll_steps + 1 if reads_all else 1
    return max(unrolled, reanalyzed_frames(config)) if config.reanalyze_fraction else unrolled


def reanalyzed_frames(config: Config) -> int:
    """How many frames of a window Reanalyze searches: those that are learned from, and with short returns the others.

    With long returns hardly any target bootstraps from the rest, and other windows refresh most of it anyway.
    """
    is_short = config.targets.td_steps <= config.targets.unroll_steps
    return config.window_length if is_short else config.unroll_steps + 1


def build_reanalyze(config: Config, environment: Environment, model: Model):
    """Searches a share of the windows again, without root noise; or does nothing."""
    share = config.reanalyze_fraction

    def leave(learner_state: LearnerState, window: Transition, key: Array) -> tuple[Transition, Metrics]:
        return window, {}

    if not share:
        return leave
    search = searches.make_search(config, environment, model, noise=False)
    return partial(reanalyze.refresh_share, search=search, share=share, num_frames=reanalyzed_frames(config))


def build_note(config: Config) -> Callable[[Draws, Transition, Batch], tuple[tuple[Revision, ...], Metrics]]:
    """What the ring is to keep of what learning finds out, and its metrics."""
    share, notes = config.reanalyze_fraction, []
    if share:
        notes.append(partial(reanalyze.note, share=share, num_frames=reanalyzed_frames(config)))
    if config.replay.priority_exponent:
        stops = partial(targets.stops, stop_at_exploration=config.targets.stop_at_exploration)
        notes.append(partial(priorities.note, make_targets=build_targets(config, unroll_steps=0), stops=stops))

    def note(draws: Draws, window: Transition, batch: Batch) -> tuple[tuple[Revision, ...], Metrics]:
        noted = [each(draws, window, batch) for each in notes]
        return tuple(revision for revision, _ in noted), {key: x for _, found in noted for key, x in found.items()}

    return note


def build_targets(
    config: Config, *, unroll_steps: int, search_value_weight: float = 0.0
) -> Callable[[Transition], Targets]:
    """Makes the targets of K + 1 predictions of each window."""
    wanted = config.targets
    return partial(
        targets.make,
        unroll_steps=unroll_steps,
        td_steps=wanted.td_steps,
        td_lambda=wanted.td_lambda,
        stop_at_exploration=wanted.stop_at_exploration,
        search_value_weight=search_value_weight,
    )


def build_make_batch(config: Config) -> Callable[[Transition, Array, Array], Batch]:
    """Makes the batch of a gradient step from windows."""
    unroll_steps = config.unroll_steps
    return partial(
        targets.make_batch,
        make_targets=build_targets(
            config, unroll_steps=unroll_steps, search_value_weight=config.targets.search_value_weight
        ),
        unroll_steps=unroll_steps,
        legal_length=unroll_steps + 1 if config.model == "learned_legality" else 1,
    )


def build_turn(config: Config, environment: Environment):
    """Turns windows by a random symmetry of the game's board; or leaves them."""

    def leave(batch: Batch, key: Array) -> Batch:
        return batch

    if environment.board is None or not config.replay.symmetries:
        return leave
    return partial(symmetries.turn, symmetries=environment.board.symmetries)


def build_update(
    config: Config,
    environment: Environment,
    model: Model,
    optimiser: Any,
    follow: learner.Follow | None,
):
    """One gradient step on the configured losses."""
    loss, schedule = build_loss(config, environment, model), build_schedule(config)

    def update(learner_state: LearnerState, batch: Batch) -> tuple[LearnerState, Metrics]:
        return learner.update(
            learner_state,
            batch,
            loss=loss,
            optimiser=optimiser,
            schedule=schedule,
            follow=follow,
            micro_batch=micro_batch(config, model, batch.actions.shape[0]),
            axis_name=AXIS,
        )

    return update


def build_loss(config: Config, environment: Environment, model: Model) -> learner.LossOf:
    """The weighted sum of MuZero's losses and of those that options add."""
    terms = build_terms(config, environment, model)
    names = {term.name for term in terms}

    def loss(params: Params, batch: Batch) -> tuple[Array, Metrics]:
        outputs = losses.unroll(
            model,
            params,
            batch,
            reconstruct="reconstruction" in names,
            consistency="consistency" in names,
            checkpoint=config.optimiser.checkpoint_unroll,
        )
        return losses.total(outputs, batch, terms)

    return loss


def build_terms(config: Config, environment: Environment, model: Model) -> list[Term]:
    """The losses, each with its weight; with the true rules those of value and policy alone: nothing is unrolled."""
    weights = config.optimiser

    def scalar(loss):
        return partial(loss, scalar_loss=model.scalar_loss)

    judgement = [
        Term("value", scalar(losses.value_loss), weights.value_weight),
        Term("policy", losses.policy_loss, weights.policy_weight),
    ]
    if config.model == "rules":
        return judgement
    terms = [
        Term("reward", scalar(losses.reward_loss), weights.reward_weight),
        *judgement,
        Term("root_value", scalar(losses.root_value_loss), 0.0),
    ]
    if weights.reconstruction_weight:
        terms.append(Term("reconstruction", losses.reconstruction_loss, weights.reconstruction_weight))
    if weights.consistency_weight:
        terms.append(Term("consistency", losses.consistency_loss, weights.consistency_weight))
    if config.model == "learned_legality":
        terms.append(Term("legality", losses.legality_loss, weights.legality_weight))
    if foretells_discount(config, environment):
        terms.append(Term("discount", losses.discount_loss, weights.discount_weight))
    return terms


def micro_batch(config: Config, model: Model, batch_size: int) -> int:
    """How many of a device's `batch_size` windows the gradient is computed of at once."""
    asked = config.optimiser.micro_batch_size
    if asked:
        return micro_batches.size(batch_size, largest=asked)
    return micro_batches.size_for_cache(batch_size, model.layer_bytes, micro_batches.GRADIENT_BYTES)
