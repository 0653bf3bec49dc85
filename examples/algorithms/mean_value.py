"""MuZero's own value of a position: the mean of all simulations at the root, instead of the improved policy's value."""


def change(algorithm, config):
    """Rates every searched position by its mean simulation value (Schrittwieser et al. 2020, appendix B)."""

    def rated(search):
        def search_and_rate(params, key, roots):
            found = search(params, key, roots)
            if found.tree is None:
                raise ValueError("mean_value.py reads the search tree: choose --search.engine own, and no playout cap")
            return found._replace(value=found.tree.value[0])

        return search_and_rate

    return algorithm._replace(make_search=lambda *arguments: rated(algorithm.make_search(*arguments)))
