"""Makes scores.csv and the figure from the study's raw answers: python docs/results/starts/draw.py RESULTS.jsonl

Each line of that file is a run: its key (game, arm, seed) and the JSON of `evaluate.py exam`, `openings` and `match`.
"""

import csv
import itertools
import json
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ARMS = ("default", "random25", "random", "archive", "regret")
MEASURES = ("head", "search", "openings", "mcts100", "lost_length", "mcts1000", "match")


def read(path):
    """A row for each run."""
    for line in path.open():
        run = json.loads(line)
        game, arm, seed = run["key"]
        found = {finding["measure"]: finding["value"] for finding in run["exam_raw"]["findings"]}
        ends = ("head", "simulations")  # of the measures of exact play, which larger games do not have
        head, search = (next((v for name, v in found.items() if name.endswith(end)), None) for end in ends)
        judged = {finding["judge"]: finding["value"] for finding in run["exam_raw"]["findings"]}
        match, openings, weak = run.get("match_raw"), run.get("openings_raw"), run["mcts:100"]
        yield {
            "game": game,
            "arm": arm,
            "seed": seed,
            "minutes": run["minutes"],
            "head": head,
            "search": search,
            "openings": openings["right"] if openings else None,
            "mcts100": weak["score"],
            "lost_length": weak.get("mean_length_lost"),  # moves of the games that it lost to MCTS 100
            "mcts1000": run["mcts:1000"]["score"] if "mcts:1000" in run else judged["mcts:1000"],
            "match": match["score"] if match else None,
            "games": match["games"] if match else None,
        }


def permutation_p(one, other):
    """The exact two-sided p of a difference of means."""
    pooled = np.array([*one, *other])
    seen = abs(np.mean(one) - np.mean(other))
    picks = list(itertools.combinations(range(len(pooled)), len(one)))
    far = sum(abs(pooled[list(pick)].mean() - np.delete(pooled, pick).mean()) >= seen - 1e-12 for pick in picks)
    return far / len(picks)


def write(path, rows):
    """The rows as a table of comma-separated values."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: round(v, 5) if isinstance(v, float) else v for k, v in row.items()} for row in rows)


def panel(ax, rows, game, name, arms, title):
    """A point for each run of a game, by one measure, and a line for each arm with the words that `arms` has for it."""
    for place, arm in enumerate(arms):
        values = [r[name] for r in rows if (r["game"], r["arm"]) == (game, arm) and r[name] is not None]
        ax.plot(values, [place] * len(values), "o", alpha=0.7)
    ax.set_yticks(range(len(arms)), arms.values())
    ax.set_ylim(len(arms) - 0.5, -0.5)
    ax.set_title(title, fontsize=9)
    ax.grid(True, color="0.9")


def main(path):
    """Writes the table and the figure."""
    import matplotlib.pyplot as plt

    rows = sorted(read(Path(path)), key=lambda row: (row["game"], ARMS.index(row["arm"]), row["seed"]))
    write(HERE / "scores.csv", rows)
    games = [game for game in dict.fromkeys(row["game"] for row in rows)]
    whole = [game for game in games if sum(row["game"] == game for row in rows) >= 12]
    for game in games:
        for name in MEASURES:
            of = {arm: [r[name] for r in rows if (r["game"], r["arm"]) == (game, arm)] for arm in ARMS}
            values = {arm: v for arm, v in of.items() if v and None not in v}
            text = ", ".join(f"{arm} {np.mean(v):.4f} ({min(v):.3f} to {max(v):.3f})" for arm, v in values.items())
            base = values.get("default")
            ps = {arm: permutation_p(v, base) for arm, v in values.items() if base and arm != "default"}
            print(game, name, text, {arm: round(p, 4) for arm, p in ps.items()})
    figure, axes = plt.subplots(len(whole), 3, figsize=(9, 2.4 * len(whole)), squeeze=False)
    titles = {"search": "winning-move accuracy", "mcts1000": "score against MCTS 1,000", "match": "against the default"}
    for line, game in zip(axes, whole, strict=True):
        is_solved = any(r["search"] is not None for r in rows if r["game"] == game)
        own = titles if is_solved else {"openings": "openings judged rightly"} | dict(list(titles.items())[1:])
        for ax, (name, title) in zip(line, own.items(), strict=True):
            panel(ax, rows, game, name, {arm: arm * (ax is line[0]) for arm in ARMS}, f"{game}: {title}")
    figure.tight_layout()
    figure.savefig(HERE / "starts.png", dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
