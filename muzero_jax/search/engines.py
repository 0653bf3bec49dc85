"""Tree searches by the name that `--search.engine` gives them: modules with a `gumbel_search` and a `puct_search`."""

from muzero_jax.search import loop_free, mctx_reference, policies

ENGINES = {"own": policies, "loop_free": loop_free, "mctx": mctx_reference}
