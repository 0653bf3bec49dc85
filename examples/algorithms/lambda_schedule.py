"""TD(lambda) with a schedule: value targets rely on the games' results at first, and later more on the search."""


def change(algorithm, config, first=1.0, last=0.7):
    """Lets lambda fall linearly over the run's budget (Sutton & Barto 2018, section 12.3)."""

    def make_targets(window, progress):
        return algorithm.make_targets(window, progress, td_lambda=first + (last - first) * progress)

    return algorithm._replace(make_targets=make_targets)
