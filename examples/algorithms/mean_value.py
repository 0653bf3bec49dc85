"""MuZero's own value of a position: the mean of all simulations at the root, in place of the improved policy's."""


def change(algorithm, world, config):
    """Rates every searched position by its mean simulation value (Schrittwieser et al. 2020, appendix B)."""

    def rated(search):
        def search_and_rate(params, key, roots):
            found = search(params, key, roots)
            return found._replace(value=found.tree.value[0])

        return search_and_rate

    return algorithm._replace(
        self_play_search=rated(algorithm.self_play_search),
        make_search=lambda num_simulations: rated(algorithm.make_search(num_simulations)),
    )
