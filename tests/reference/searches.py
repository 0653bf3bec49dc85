"""The searches with defaults for tests, in any engine: few simulations and no noise."""

from muzero_jax.algorithm.playing import GUMBEL_SEARCHES, PUCT_SEARCHES
from muzero_jax.types import QTransform

BUDGET = 24
PUCT = {"pb_c_init": 1.25, "pb_c_base": 19652.0}


def gumbel(world, engine="own", *, num_simulations=BUDGET, value_scale=0.4, rescale_values=False, **changes):
    """`policies.gumbel_search`, of four considered actions."""
    usual = {"max_num_considered_actions": 4, "gumbel_scale": 0.0, "improved_value": True}
    qtransform = QTransform(value_scale, 50.0, rescale_values)
    search = GUMBEL_SEARCHES[engine]
    return search(world, num_simulations=num_simulations, qtransform=qtransform, **(usual | changes))


def puct(world, engine="own", *, num_simulations=BUDGET, **changes):
    """`policies.puct_search`."""
    usual = {"dirichlet_fraction": 0.0, "dirichlet_alpha": 0.3, "temperature": 0.0, **PUCT}
    return PUCT_SEARCHES[engine](world, num_simulations=num_simulations, **(usual | changes))
