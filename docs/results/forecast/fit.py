"""Can a law forecast how strong an agent of another game becomes? python docs/results/forecast/fit.py

Reads curves.csv, the evaluations of runs by the presets, and prints for each game when it won half of its games against
MCTS 100, then both attempts to forecast a game that was left out. Draws curves.png.
"""

import csv
from pathlib import Path

import numpy as np
from scipy import stats

HERE = Path(__file__).parent
SLOPE = 1.8
"""Of log10 (score / (1 - score)) over log10 of the work, which is typical of these games."""
GAMES = {  # actions, mean length of random games
    "hex3": (10, 7.8),
    "hex4": (17, 13.4),
    "hex5": (26, 22.6),
    "hex6": (37, 30.1),
    "hex7": (50, 42.6),
    "tic_tac_toe": (9, 8.1),
    "connect_four": (7, 19.6),
    "othello": (65, 60.6),
    "animal_shogi": (132, 66.1),
    "nim": (12, 8.0),
}


def read():
    """For each game its evaluations against MCTS 100 [n, 3]: frames, FLOPs, score."""
    with (HERE / "curves.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["opponent"] == "mcts:100"]
    return {
        game: np.array([[float(r[c]) for c in ("frames", "flops", "score")] for r in rows if r["game"] == game])
        for game in GAMES
    }


def middle(points, work):
    """Where the law with the common slope has one half: the median over the evaluations."""
    score = (points[:, 2] * 128 + 0.5) / 129
    return np.median(np.log10(points[:, work]) - np.log10(score / (1 - score)) / SLOPE)


def share(decades):
    """The score so many decades after the middle."""
    return 1 / (1 + 10 ** (-SLOPE * decades))


def forecast(found, work):
    """For each game the 90% interval of its largest budget, by all other games, and of a hundred times as much."""
    for out in GAMES:
        others = [game for game in GAMES if game != out]
        features = np.array([[1, *np.log10(GAMES[game])] for game in others])
        own = np.array([1, *np.log10(GAMES[out])])
        middles = np.array([middle(found[game], work) for game in others])
        weights, *_ = np.linalg.lstsq(features, middles, rcond=None)
        free = len(others) - features.shape[1]
        variance = ((middles - features @ weights) ** 2).sum() / free
        spread = np.sqrt(variance * (1 + own @ np.linalg.pinv(features.T @ features) @ own)) * stats.t.ppf(0.95, free)
        last = found[out][:, 1].max()
        final = found[out][found[out][:, 1] > 0.98 * last]
        after = np.log10(final[:, work].mean()) - own @ weights
        interval, later = ([share(x - spread), share(x + spread)] for x in (after, after + 2))
        yield out, final[:, 2].mean(), interval, later


def main():
    """Prints the tables and draws the figure."""
    import matplotlib.pyplot as plt

    found = read()
    for game, points in found.items():
        ordered = points[points[:, 0].argsort()]
        below, above = ordered[ordered[:, 2] < 0.5], ordered[ordered[:, 2] >= 0.5]
        ends = [
            f"{frames:,.0f} frames, {flops:.1e} FLOPs: {score:.0%}"
            for frames, flops, score in (*below[-1:], *above[:1])
        ]
        print(f"{game:13s} {len(points):3d} evaluations; {'; '.join(ends)}; at the end {ordered[-1, 2]:.0%}")
    for work, name in ((1, "FLOPs"), (0, "frames")):
        print(f"\nby {name}, actions and length")
        rows = list(forecast(found, work))
        for game, score, (low, high), (later_low, later_high) in rows:
            holds = "holds" if low <= score <= high else "fails"
            print(
                f"{game:13s} {score:.0%} in [{low:.0%}, {high:.0%}] {holds}; x100 [{later_low:.0%}, {later_high:.0%}]"
            )
        held = sum(low <= score <= high for _, score, (low, high), _ in rows)
        print(f"{held} of {len(rows)}, mean width {np.mean([high - low for *_, (low, high), _ in rows]):.2f}")
    figure, axis = plt.subplots(figsize=(7, 4))
    for index, (game, points) in enumerate(found.items()):
        ordered = points[points[:, 1].argsort()]
        axis.semilogx(ordered[:, 1], ordered[:, 2], "os^vD"[index % 5], markersize=3.5, label=game, alpha=0.7)
    axis.set(xlabel="FLOPs of the network in self-play and learning", ylabel="score against MCTS 100")
    axis.grid(True, color="0.9")
    axis.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    figure.savefig(HERE / "curves.png", dpi=110)


if __name__ == "__main__":
    main()
