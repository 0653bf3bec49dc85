"""The parts of a run: a game, a network and an algorithm, put together."""

from functools import partial

from muzero_jax.building import updates
from muzero_jax.building.algorithms import build
from muzero_jax.learning import learner, replay, self_play
from muzero_jax.learning.algorithm import Algorithm, World
from muzero_jax.ops import precision
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts


def make_parts(config: Config, world: World | None = None, algorithm: Algorithm | None = None) -> Parts:
    """Builds the functions of a run; allocates nothing.

    Args:
      world: your own game or network, in place of those that the config names. The configured networks predict rewards
        and values within `network.support_range` (1 by default) and clip others. So raise it, or scale your game's
        rewards, or bring a model with another support.
      algorithm: your own, made for that world; by default the one that the config names.

    Raises ValueError in one sentence if the config names what cannot be built.
    """
    (environment, model), algorithm = build(config, world, algorithm)
    num_envs, loss = config.self_play.num_envs, updates.build_loss(config, model, algorithm.terms)
    return Parts(
        environment=environment,
        model=model,
        init_actor=partial(self_play.init, environment, num_envs=num_envs),
        init_learner=partial(
            learner.init,
            model,
            algorithm.optimiser,
            scale_loss=precision.resolve(config.network.compute_dtype).scales_loss,
            has_target=updates.build_follow(config) is not None,
        ),
        init_replay=partial(
            replay.init,
            num_envs=num_envs,
            replay_length=config.replay.replay_length,
            is_prioritised=config.replay.priority_exponent > 0,
            is_reanalyzed=config.reanalyze_fraction > 0,
        ),
        rollout=partial(
            self_play.rollout,
            environment=environment,
            search=algorithm.self_play_search,
            length=config.self_play.rollout_length,
            choose=algorithm.choose,
            keeps_state=config.model == "rules" and config.reanalyze_fraction > 0,
        ),
        sample=updates.build_sample(config),
        gather=partial(
            replay.gather,
            observation_shape=environment.observation_shape,
            window_length=config.window_length,
            observation_length=updates.observation_length(config, model, algorithm.terms),
        ),
        reanalyze=updates.build_reanalyze(config, algorithm.make_search),
        make_batch=updates.build_make_batch(config, model, algorithm),
        augment=updates.build_augment(config, environment),
        update=partial(algorithm.update, loss=loss, optimiser=algorithm.optimiser),
        write_back=algorithm.write_back,
        frames_to_learn=config.frames_to_learn,
    )
