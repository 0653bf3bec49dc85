"""TD(lambda) with a schedule: value targets rely on the games' results at first, and later more on the search."""

from muzero_jax.learning import targets


def change(algorithm, config, first=1.0, last=0.7):
    """Lets lambda fall linearly over the run's budget (Sutton & Barto 2018, section 12.3)."""

    def make_targets(window, progress):
        return targets.make(
            window,
            unroll_steps=config.unroll_steps,
            td_steps=config.targets.td_steps,
            td_lambda=first + (last - first) * progress,
            stop_at_exploration=config.targets.stop_at_exploration,
            search_value_weight=config.targets.search_value_weight,
        )

    return algorithm._replace(make_targets=make_targets)
