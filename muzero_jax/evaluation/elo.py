"""Ratings from results: Bradley-Terry by maximum likelihood, in Elo, with intervals.

A draw is half a win for both, so the likelihood is the binomial's where it should be narrower: with draws the intervals
are a little wide, never narrow. A player who won every game has no finite rating by itself: `fit_elo` adds draws that
nobody played to every pair, `rate` maximises the likelihood times Jeffreys' prior (Firth 1993), which adds few of them
and those where the games tell most. Where all games of a pair are won, the far end of an interval is the prior's.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import optimize, special

ELO_PER_NAT = 400 / np.log(10)
Z95 = 1.959964
MOST_ROUNDS = 50
"""Of fit and prior in turn; they agree after a handful."""


class Ratings(NamedTuple):
    """Elo of P players relative to the anchor, which is 0 by definition and so has no interval."""

    elo: Float[np.ndarray, " P"]
    low: Float[np.ndarray, " P"]  # the ends of each rating's 95% interval
    high: Float[np.ndarray, " P"]


def elo_difference(score: float, *, clip: float = 1e-3) -> float:
    """The rating difference that makes `score` s expected, 400 log10(s / (1 - s)), with s clipped (1e-3: +-1200)."""
    clipped = float(np.clip(score, clip, 1 - clip))
    return ELO_PER_NAT * float(np.log(clipped / (1 - clipped)))


def rate(wins: ArrayLike, *, anchor: int = 0) -> Ratings:
    """Ratings of the players of `wins` (as in `fit_elo`) relative to player `anchor`, with 95% intervals.

    The intervals are normal ones from the Fisher information at the maximum, of each difference from the anchor by
    itself: of 20 ratings one is expected to lie outside. They hold if Bradley-Terry does, that is if strength is one
    number; a cross table shows where it is not.

    Raises:
        ValueError: as `fit_elo`.
    """
    wins = _checked(wins)
    games = wins + wins.T
    ratings = np.zeros(len(wins))
    for _ in range(MOST_ROUNDS):
        before = ratings
        prior = _leverage(games, ratings) / 2
        ratings = _maximise(wins + prior, ratings)
        if np.abs(ratings - before).max() * ELO_PER_NAT < 0.01:
            break
    error = np.sqrt(np.maximum(_variance(games, ratings)[anchor], 0)) * ELO_PER_NAT
    elo = (ratings - ratings[anchor]) * ELO_PER_NAT
    return Ratings(elo, elo - Z95 * error, elo + Z95 * error)


def fit_elo(wins: ArrayLike, *, prior_draws: float = 1.0) -> Float[np.ndarray, " P"]:
    """Bradley-Terry ratings in Elo by maximum likelihood; player 0 is the anchor at 0.

    `wins` is [P, P]: `wins[i, j]` counts i's wins over j, a draw as half a win for both. Every pair that met gets
    `prior_draws` more draws, which keeps the rating of a player who always won finite.

    Raises:
        ValueError: not a square matrix of counts, or players that no chain of matches connects.
    """
    wins = _checked(wins)
    return ELO_PER_NAT * _maximise(wins + prior_draws / 2 * (wins + wins.T > 0), np.zeros(len(wins)))


def win_matrix(num_players: int, matches: Sequence[tuple[int, int, float, float]]) -> Float[np.ndarray, "P P"]:
    """`wins` as `fit_elo` and `rate` take it, from matches (i, j, points of i, points of j)."""
    wins = np.zeros((num_players, num_players))
    for i, j, points, against in matches:
        wins[i, j] += points
        wins[j, i] += against
    return wins


def _maximise(wins: np.ndarray, start: np.ndarray) -> np.ndarray:
    """The ratings [P] in nats, the first of them 0, that make `wins` likeliest; `start` is a first guess like them."""
    if len(wins) < 2:
        return np.zeros(len(wins))
    fit = optimize.minimize(
        _loss_and_gradient,
        start[1:],
        args=(wins,),
        jac=True,
        hess=_hessian,
        method="trust-exact",
        options={"gtol": 1e-10},
    )
    return np.append(0.0, fit.x)


def _loss_and_gradient(free: np.ndarray, wins: np.ndarray) -> tuple[float, np.ndarray]:
    """Of a game in the mean, at ratings 0 and `free` [P - 1]."""
    deficit = _deficit(np.append(0.0, free))
    loss = (wins * np.logaddexp(0, deficit)).sum()
    gradient = ((wins + wins.T) * special.expit(-deficit) - wins).sum(axis=1)[1:]
    return loss / wins.sum(), gradient / wins.sum()


def _hessian(free: np.ndarray, wins: np.ndarray) -> np.ndarray:
    return _information(wins + wins.T, np.append(0.0, free))[1:, 1:] / wins.sum()


def _information(games: np.ndarray, ratings: np.ndarray) -> np.ndarray:
    """Fisher's information [P, P] about ratings in nats, games p (1 - p) a pair, as a graph's Laplacian."""
    curvature = _curvature(games, ratings)
    return np.diag(curvature.sum(axis=1)) - curvature


def _curvature(games: np.ndarray, ratings: np.ndarray) -> np.ndarray:
    deficit = _deficit(ratings)
    return games * special.expit(deficit) * special.expit(-deficit)


def _deficit(ratings: np.ndarray) -> np.ndarray:
    """The opponent's rating less one's own [P, P]."""
    return ratings[None, :] - ratings[:, None]


def _variance(games: np.ndarray, ratings: np.ndarray) -> np.ndarray:
    """Of the difference between any two ratings [P, P], in nats."""
    covariance = np.linalg.pinv(_information(games, ratings), rcond=1e-13, hermitian=True)
    diagonal = np.diag(covariance)
    return diagonal[:, None] + diagonal[None, :] - 2 * covariance


def _leverage(games: np.ndarray, ratings: np.ndarray) -> np.ndarray:
    """How many draws Jeffreys' prior adds to each pair [P, P]: P - 1 in all, of which a pair gets its information."""
    return _curvature(games, ratings) * _variance(games, ratings)


def _checked(wins: ArrayLike) -> Float[np.ndarray, "P P"]:
    """A copy of the counts, without games against oneself."""
    wins = np.array(wins, float)
    if wins.ndim != 2 or wins.shape[0] != wins.shape[1] or not np.isfinite(wins).all() or (wins < 0).any():
        raise ValueError("Elo ratings need a square matrix of win counts, with wins[i, j] those of player i over j.")
    met = wins + wins.T + np.eye(len(wins)) > 0
    if not (np.linalg.matrix_power(met.astype(float), len(wins)) > 0).all():
        raise ValueError("Elo ratings need players whom a chain of matches connects; let each play the anchor.")
    np.fill_diagonal(wins, 0)
    return wins
