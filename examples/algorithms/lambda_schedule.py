"""TD(lambda) with a schedule: value targets trust the games at first, and the search more and more."""

import jax.numpy as jnp

from muzero_jax.learning import targets


def change(algorithm, world, config, first=1.0, last=0.7, num_updates=5000):
    """Lets lambda fall linearly over so many updates (Sutton & Barto 2018, section 12.3)."""

    def make_targets(window, updates_made):
        progress = jnp.minimum(updates_made / num_updates, 1.0)
        return targets.make(
            window,
            unroll_steps=config.unroll_steps,
            td_steps=config.targets.td_steps,
            td_lambda=first + (last - first) * progress,
            stop_at_exploration=config.targets.stop_at_exploration,
            search_value_weight=config.targets.search_value_weight,
        )

    return algorithm._replace(make_targets=make_targets)
