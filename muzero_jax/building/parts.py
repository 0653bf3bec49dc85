"""The parts of a run, with their hyperparameters bound."""

from functools import partial

from muzero_jax.arithmetic import precision
from muzero_jax.building import learning, searches, worlds
from muzero_jax.learning import learner, replay, self_play
from muzero_jax.storage.config import Config
from muzero_jax.training import Parts
from muzero_jax.types import Environment, Model


def make_parts(config: Config, *, environment: Environment | None = None, model: Model | None = None) -> Parts:
    """Builds the functions of a run; allocates nothing.

    Args:
      environment: your own game, in place of the one that the config names. The configured networks predict rewards
        and values in [-1, 1] and clip others, so scale its rewards, or bring a model with another support.
      model: your own network, likewise.
    """
    environment = environment or worlds.build_environment(config)
    model = model or worlds.build_model(config, environment)
    optimiser, follow = learning.build_optimiser(config), learning.build_follow(config)
    num_envs, reanalyzes = config.self_play.num_envs, config.reanalyze_fraction > 0
    return Parts(
        environment=environment,
        model=model,
        init_actor=partial(self_play.init, environment, num_envs=num_envs),
        init_learner=partial(
            learner.init,
            model,
            optimiser,
            scale_loss=precision.resolve(config.network.compute_dtype).scales_loss,
            has_target=follow is not None,
        ),
        init_replay=partial(
            replay.init,
            num_envs=num_envs,
            replay_length=config.replay.replay_length,
            is_prioritised=config.replay.priority_exponent > 0,
            is_reanalyzed=reanalyzes,
        ),
        rollout=build_rollout(config, environment, model),
        draw=learning.build_draw(config),
        gather=partial(
            replay.gather,
            observation_shape=environment.observation_shape,
            window_length=config.window_length,
            observation_length=learning.observation_length(config),
        ),
        reanalyze=learning.build_reanalyze(config, environment, model),
        make_batch=learning.build_make_batch(config),
        turn=learning.build_turn(config, environment),
        update=learning.build_update(config, environment, model, optimiser, follow),
        note=learning.build_note(config),
        frames_to_learn=config.frames_to_learn,
    )


def build_rollout(config: Config, environment: Environment, model: Model):
    """Plays T moves of all games, with the search's noise and random moves."""
    play = config.self_play
    return partial(
        self_play.rollout,
        environment=environment,
        search=searches.build_self_play_search(config, environment, model),
        length=play.rollout_length,
        choose=partial(self_play.choose, exploration=play.exploration, sampled_moves=play.sampled_moves),
        keeps_state=config.model == "rules" and config.reanalyze_fraction > 0,
    )
