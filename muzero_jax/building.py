"""Where a config becomes functions: the one place that reads hyperparameters.

A variant is another function put in here. Your own game or network is an argument of `make_parts`.
"""

from functools import partial

import jax
from jaxtyping import Array

from muzero_jax.arithmetic import micro_batches, precision
from muzero_jax.arithmetic.devices import AXIS
from muzero_jax.games.environment import make_environment
from muzero_jax.learning import learner, losses, reanalyze, replay, self_play, symmetries, targets
from muzero_jax.learning.losses import Term
from muzero_jax.networks import contract
from muzero_jax.networks.model import make_model
from muzero_jax.networks.value_transform import Support
from muzero_jax.search import narrow, simulator
from muzero_jax.search.engines import ENGINES
from muzero_jax.storage import python_file
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import (
    Batch,
    Environment,
    LearnerState,
    Metrics,
    Model,
    Params,
    QTransform,
    ReplayState,
    SearchFn,
    Transition,
)


def make_parts(config: Config, *, environment: Environment | None = None, model: Model | None = None) -> Parts:
    """Builds the functions of a run; allocates nothing.

    Args:
      environment: your own game, in place of the one that the config names. The configured networks predict rewards
        and values in [-1, 1] and clip others, so scale its rewards, or bring a model with another support.
      model: your own network, likewise.
    """
    environment = environment or build_environment(config)
    model = model or build_model(config, environment)
    scales_loss = precision.resolve(config.network.compute_dtype).scales_loss
    optimiser = build_optimiser(config)
    return Parts(
        environment=environment,
        model=model,
        init_actor=partial(self_play.init, environment, num_envs=config.self_play.num_envs),
        init_learner=partial(learner.init, model, optimiser, scale_loss=scales_loss),
        init_replay=partial(replay.init, num_envs=config.self_play.num_envs, replay_length=config.replay.replay_length),
        rollout=partial(
            self_play.rollout,
            environment=environment,
            search=make_search(config, environment, model, noise=True),
            length=config.self_play.rollout_length,
            exploration=config.self_play.exploration,
        ),
        draw=build_draw(config),
        gather=partial(
            replay.gather,
            observation_shape=environment.observation_shape,
            window_length=config.window_length,
            observation_length=observation_length(config),
        ),
        reanalyze=build_reanalyze(config, environment, model),
        make_batch=partial(
            targets.make_batch,
            unroll_steps=config.targets.unroll_steps,
            td_steps=config.targets.td_steps,
            td_lambda=config.targets.td_lambda,
            stop_at_exploration=config.targets.stop_at_exploration,
        ),
        turn=build_turn(config, environment),
        update=build_update(config, model, optimiser),
        frames_to_learn=config.frames_to_learn,
    )


def build_environment(config: Config) -> Environment:
    """The game that the config names."""
    return make_environment(config.env, board_size=config.board_size, gamma=config.targets.discount)


def build_model(config: Config, environment: Environment) -> Model:
    """The network that the config names, or that the user's own file makes, for a game with outcomes in [-1, 1]."""
    network, support = config.network, Support(-1.0, 1.0, config.network.num_bins)
    if network.file:
        make_own = python_file.load_function(network.file, "make_model")
        model = make_own(environment, support, **python_file.read_options(network.options))
        return contract.checked(model, environment, source=network.file)
    return make_model(
        environment,
        support,
        kind=network.kind,
        width=network.width,
        num_blocks=network.num_blocks,
        activation=network.activation,
        compute_dtype=precision.resolve(network.compute_dtype).compute_dtype,
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

    With `true_rules` it plans with the game itself in place of the learned dynamics. A larger budget than self-play's
    considers more root actions, as the square root of the ratio.
    """
    search, model = config.search, micro_batches.for_inference(model)
    if true_rules:
        world = simulator.true_rules(environment, model)
    else:
        world = simulator.learned_model(model, environment.discount)
    engine = ENGINES[search.engine]
    budget = num_simulations or search.num_simulations
    num_considered = round(search.max_num_considered_actions * max(1.0, budget / search.num_simulations) ** 0.5)
    if search.policy == "gumbel":
        make = partial(
            engine.gumbel_search,
            num_simulations=budget,
            max_num_considered_actions=min(num_considered, environment.num_actions),
            gumbel_scale=search.gumbel_scale if noise else 0.0,
            qtransform=QTransform(search.value_scale, search.maxvisit_init, search.rescale_values),
            improved_value=search.improved_value,
        )
    else:
        make = partial(
            engine.puct_search,
            num_simulations=budget,
            dirichlet_fraction=search.dirichlet_fraction if noise else 0.0,
            dirichlet_alpha=search.dirichlet_alpha,
            pb_c_init=search.pb_c_init,
            pb_c_base=search.pb_c_base,
            temperature=search.temperature if noise else 0.0,
        )
    slots = narrow.num_slots(search.max_children, environment.num_actions)
    return make(world) if slots == environment.num_actions else narrow.narrow(make, world, slots, noise=noise)


def build_draw(config: Config):
    """Draws the starts of all windows of an iteration, each device those of its share of the batches."""
    optimiser = config.optimiser

    def draw(key: Array, ring: ReplayState) -> tuple[Array, Array]:
        return replay.draw(
            key,
            ring,
            (optimiser.updates_per_iteration, optimiser.batch_size // jax.lax.axis_size(AXIS)),
            window_length=config.window_length,
            unroll_steps=config.targets.unroll_steps,
            end_weight=config.replay.end_weight,
        )

    return draw


def observation_length(config: Config) -> int:
    """How many frames of a window must bring their observation: the first, unless an option reads more."""
    if config.replay.reanalyze_fraction:
        return config.window_length
    return config.targets.unroll_steps + 1 if config.optimiser.reconstruction_weight else 1


def build_reanalyze(config: Config, environment: Environment, model: Model):
    """Searches a share of the windows again, without root noise; or does nothing."""
    share = config.replay.reanalyze_fraction

    def leave(params: Params, window: Transition, key: Array) -> tuple[Transition, Metrics]:
        return window, {}

    if not share:
        return leave
    search = make_search(config, environment, model, noise=False)
    return partial(
        reanalyze.refresh_share,
        search=search,
        share=share,
        num_frames=config.window_length,  # value targets bootstrap from every frame
    )


def build_turn(config: Config, environment: Environment):
    """Turns windows by a random symmetry of the game's board; or leaves them."""

    def leave(batch: Batch, key: Array) -> Batch:
        return batch

    if environment.board is None or not config.replay.symmetries:
        return leave
    return partial(symmetries.turn, symmetries=environment.board.symmetries)


def build_update(config: Config, model: Model, optimiser):
    """One gradient step on the configured losses."""
    loss, schedule = build_loss(config, model), build_schedule(config)

    def update(learner_state: LearnerState, batch: Batch) -> tuple[LearnerState, Metrics]:
        return learner.update(
            learner_state,
            batch,
            loss=loss,
            optimiser=optimiser,
            schedule=schedule,
            micro_batch=micro_batch(config, model, batch.actions.shape[0]),
            axis_name=AXIS,
        )

    return update


def build_loss(config: Config, model: Model) -> learner.LossOf:
    """The weighted sum of MuZero's losses; with a weight for it also the reconstruction's."""
    optimiser = config.optimiser
    terms = [
        Term("reward", partial(losses.reward_loss, scalar_loss=model.scalar_loss), optimiser.reward_weight),
        Term("value", partial(losses.value_loss, scalar_loss=model.scalar_loss), optimiser.value_weight),
        Term("policy", losses.policy_loss, optimiser.policy_weight),
        Term("root_value", partial(losses.root_value_loss, scalar_loss=model.scalar_loss), 0.0),
    ]
    if optimiser.reconstruction_weight:
        terms.append(Term("reconstruction", losses.reconstruction_loss, optimiser.reconstruction_weight))

    def loss(params: Params, batch: Batch) -> tuple[Array, Metrics]:
        outputs = losses.unroll(
            model,
            params,
            batch,
            reconstruct=optimiser.reconstruction_weight > 0,
            checkpoint=optimiser.checkpoint_unroll,
        )
        return losses.total(outputs, batch, terms)

    return loss


def micro_batch(config: Config, model: Model, batch_size: int) -> int:
    """How many of a device's `batch_size` windows the gradient is computed of at once."""
    asked = config.optimiser.micro_batch_size
    if asked:
        return micro_batches.size(batch_size, largest=asked)
    return micro_batches.size_for_cache(batch_size, model.layer_bytes, micro_batches.GRADIENT_BYTES)
