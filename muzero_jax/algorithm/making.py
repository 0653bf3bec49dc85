"""From a config to an `Algorithm`, with its hyperparameters bound."""

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from muzero_jax.algorithm import learning, playing
from muzero_jax.algorithm.heads import build_heads
from muzero_jax.algorithm.record import Algorithm
from muzero_jax.config.config import Config
from muzero_jax.games.catalogue import check_open, check_players, hides
from muzero_jax.learning import learner, losses, replay, self_play
from muzero_jax.ops import precision
from muzero_jax.own import python_file
from muzero_jax.types import Environment, Model

Build = Callable[[Config], Algorithm]
"""`make_algorithm`, or a program's own function instead."""


def make_algorithm(config: Config, environment: Environment | None = None, model: Model | None = None) -> Algorithm:
    """The algorithm that the config names, changed by the user's own files if there are any; allocates nothing.

    Args:
      environment, model: your own, instead of those that the config names. The configured networks predict rewards and
        values within `network.support_range` (1 by default) and clip others, so raise it, scale your game's rewards, or
        bring a model with another support.

    Raises ValueError if the config names something that cannot be built, a file of the user's makes no algorithm, or
    more than two play.
    """
    if config.algorithm.is_record:
        raise ValueError(
            "its algorithm was given by a program and is in no file, so only that program can build it again "
            "(muzero_jax.load(RUN, algorithm=...)); train.py --algorithm FILE makes runs that load by themselves"
        )
    environment = environment or playing.build_environment(config)
    check_players(environment)
    _check_hidden(config, environment)
    model = model or playing.build_model(config, environment)
    algorithm = _configured(config, environment, model._replace(heads=build_heads(config, environment)))
    return changed(algorithm, config)


def _check_hidden(config: Config, environment: Environment) -> None:
    """Raises ValueError if a search would plan in a game with hidden information."""
    if not hides(environment):
        return
    if config.model != "none":
        raise ValueError(
            f"{environment.name} hides something from each player: a search would use it, or miss that the other's "
            "moves depend on it; add --model none --search.policy none (docs/hidden-information.md)"
        )
    if config.evaluation.mcts_simulations:
        check_open(environment, "rollout MCTS (--evaluation.mcts-simulations)")


def changed(algorithm: Algorithm, config: Config) -> Algorithm:
    """The algorithm after the changes of the user's files, one after another; ValueError as `make_algorithm`."""
    files = config.algorithm.files
    changes = {file: python_file.load_function(file, "change") for file in files}
    options = python_file.read_options(config.algorithm.options)
    # Its first two parameters are the algorithm and the config.
    parameters = {file: list(inspect.signature(change).parameters.values())[2:] for file, change in changes.items()}
    if lost := [name for name in options if not any(_takes(name, each) for each in parameters.values())]:
        raise ValueError(f"change of {' and '.join(files)} has no parameter {lost[0]}; leave the option out")
    for file, change in changes.items():
        own = {name: value for name, value in options.items() if _takes(name, parameters[file])}
        found: Any = change(algorithm, config, **own)
        if not isinstance(found, Algorithm):
            what = f"change returns a {type(found).__name__}, but must return a muzero_jax.Algorithm"
            raise ValueError(f"{file}: {what}; usually algorithm._replace(...)")
        algorithm = found
    return algorithm


def _takes(name: str, parameters: Sequence[inspect.Parameter]) -> bool:
    return any(each.name == name or each.kind is each.VAR_KEYWORD for each in parameters)


def _configured(config: Config, environment: Environment, model: Model) -> Algorithm:
    play = config.self_play
    buffer = config.replay
    optimiser = config.optimiser
    starts = playing.build_starts(config)
    return Algorithm(
        environment=environment,
        model=model,
        init_actor=partial(self_play.init, num_envs=play.num_envs, starts=starts),
        init_learner=partial(
            learner.init,
            scale_loss=precision.resolve(config.network.compute_dtype).scales_loss,
            has_target=learning.follow_of(config) is not None,
            has_average=optimiser.average_decay is not None,
        ),
        init_replay=partial(
            replay.init,
            num_envs=play.num_envs,
            replay_length=buffer.replay_length,
            is_prioritised=buffer.priority_exponent > 0,
        ),
        make_simulator=partial(playing.make_simulator, config),
        make_search=partial(playing.make_search, config),
        choose=partial(self_play.choose, exploration=play.exploration, sampled_moves=play.sampled_moves),
        rollout=partial(
            self_play.rollout,
            length=play.rollout_length,
            keeps_state=config.keeps_states,
            starts=starts,
        ),
        min_frames=config.frames_to_learn,
        sample=learning.build_sample(config),
        gather=learning.build_gather(config, environment),
        reanalyze=learning.build_reanalyze(config),
        make_targets=learning.build_targets(config),
        make_batch=learning.build_make_batch(config, model),
        augment=learning.build_augment(config, environment),
        terms=learning.build_terms(config, model),
        loss=partial(losses.loss, checkpoint=optimiser.checkpoint_unroll, batched=learning.unrolls_batched(config)),
        optimiser=learner.make_optimiser(
            name=optimiser.name, weight_decay=optimiser.weight_decay, max_gradient_norm=optimiser.max_gradient_norm
        ),
        update=learning.build_update(config, model),
        write_back=learning.build_write_back(config),
        unroll_steps=config.unroll_steps,
    )
