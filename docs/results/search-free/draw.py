"""Makes scores.csv and the figure: python docs/results/search-free/draw.py RESULTS.jsonl STARTS.jsonl

The second file has the raw answers of the study of starts, whose default is the preset here. Each line is a run: its
key (game, arm, seed) and the JSON of `evaluate.py exam` and `match`.
"""

import json
import runpy
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
STARTS = runpy.run_path(str(HERE.parent / "starts" / "draw.py"))
ARMS = {
    "default": "MuZero",
    "learned": "search-free, learned model",
    "alphazero": "AlphaZero",
    "rules": "search-free, rules",
}
GAMES = {"hex5": "Hex 5x5", "connect4": "Connect Four"}
MEASURES = {
    "head": "policy head, solved positions",
    "search": "64 simulations, solved positions",
    "mcts1000": "score against MCTS 1,000",
    "match": "score against MuZero",
}


def read(path, other):
    """A row for each run."""
    runs = [json.loads(line) for line in (other.read_text() + path.read_text()).splitlines()]
    for run in runs:
        game, arm, seed = run["key"]
        if game not in GAMES or arm not in ARMS:
            continue
        found = {finding["measure"]: finding["value"] for finding in run["exam_raw"]["findings"]}
        judged = {finding["judge"]: finding["value"] for finding in run["exam_raw"]["findings"]}
        best = "winning-move accuracy, "
        against = {name: run.get(f"{name}_raw") for name in ("match", "heads")}
        yield {
            "game": game,
            "arm": arm,
            "seed": seed,
            "minutes": run["minutes"],
            "head": found[f"{best}policy head"],
            "search": found[f"{best}64 simulations"],
            "mcts100": run["mcts:100"]["score"],
            "mcts1000": run["mcts:1000"]["score"] if "mcts:1000" in run else judged["mcts:1000"],
            "match": against["match"] and against["match"]["score"],
            "heads": against["heads"] and against["heads"]["matches"][0]["score"],
            "equal_minutes": run["equal_minutes"]["match"]["score"] if "equal_minutes" in run else None,
            "against_free": run["against_rules"]["score"] if "against_rules" in run else None,
        }


def main(path, other):
    """Writes the table and the figure, and prints means with the lowest and the highest."""
    import matplotlib.pyplot as plt

    order = list(ARMS)
    rows = sorted(read(path, other), key=lambda row: (row["game"], order.index(row["arm"]), row["seed"]))
    STARTS["write"](HERE / "scores.csv", rows)
    for game in GAMES:
        for name in list(rows[0])[4:]:
            of = {arm: [row[name] for row in rows if (row["game"], row["arm"]) == (game, arm)] for arm in ARMS}
            known = {arm: [value for value in values if value is not None] for arm, values in of.items()}
            base = known["default"]
            for arm, values in known.items():
                p = f", p = {STARTS['permutation_p'](values, base):.3f}" if base and arm != "default" and values else ""
                if values:
                    print(f"{game} {name} {arm}: {np.mean(values):.1%} ({min(values):.1%} to {max(values):.1%}){p}")
    figure, axes = plt.subplots(len(GAMES), len(MEASURES), figsize=(12, 4), squeeze=False)
    for line, (game, title) in zip(axes, GAMES.items(), strict=True):
        for ax, (name, measure) in zip(line, MEASURES.items(), strict=True):
            beside = {arm: words * (ax is line[0]) for arm, words in ARMS.items()}
            STARTS["panel"](ax, rows, game, name, beside, f"{title}:\n{measure}")
    figure.tight_layout()
    figure.savefig(HERE / "search-free.png", dpi=110)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
