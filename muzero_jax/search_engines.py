"""Tree searches by the name that `--search.engine` gives them: modules with a `gumbel_search` and a `puct_search`."""

from muzero_jax import loop_free_search, mctx_search, search

ENGINES = {"own": search, "loop_free": loop_free_search, "mctx": mctx_search}
