"""Draws the ablation as dots beside the band of its first row: python docs/results/family/draw.py

The band reaches from the lowest to the highest score of all runs with the first row's flags: the three of the ablation,
and the six that repeated them on another day. A change whose dot lies in it cannot be told apart from the first row.
"""

import csv
import re
from pathlib import Path

from muzero_jax.run import charts

RESULTS = Path(__file__).parents[1]
PICTURE = RESULTS.parent / "pictures" / "ablation.svg"
STUDIES = ("family", "one-side")
REPEATED = RESULTS / "2026-11-24-bounded-values.md"
FIRST = "learned"
CHANGES = {
    FIRST: "MuZero, the first row",
    "from-one-side": "canonical observations",
    "rules": "AlphaZero",
    "consistency": "consistency loss",
    "discount": "predicted discount",
    "legality": "predicted legal moves",
    "search-value": "a quarter of the search's value",
    "prioritised": "prioritised replay",
    "reanalyze": "Reanalyze",
    "reanalyze-values": "Reanalyze, search's value",
    "target-network": "Reanalyze, search's value, target network",
    "sampled-moves": "greedy after 6 moves",
    "playout-cap": "playout cap",
    "puct": "PUCT",
    "muon": "Muon",
}
"""Groups of the two studies, as the page names them; the others have another number of frames."""
LEFT = 55
"""The axis begins here, in percent; what lies below becomes an arrow with its numbers."""


def final_scores() -> tuple[dict[str, list[float]], dict[str, float]]:
    """The score in percent of each seed of a group against MCTS 1,000, and the FLOPs of a group's run."""
    scores: dict[str, list[float]] = {}
    flops: dict[str, float] = {}
    for study in STUDIES:
        with (RESULTS / study / "scores.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                if row["is_final"] == "True" and row["metric"] == "mcts:1000":
                    scores.setdefault(row["group"], []).append(100 * float(row["score"]))
                    flops[row["group"]] = float(row["flops"])
    return scores, flops


def repeated_scores() -> list[float]:
    """The scores of the runs that repeated the first row, without and with the bound on values."""
    row = re.search(r"^\| Hex 5x5 \| MCTS 1,000 \|(.*)", REPEATED.read_text(encoding="utf-8"), re.MULTILINE)
    assert row
    return [float(score) for score in re.findall(r"([\d.]+)%[,:]", row[1])]  # the mean, after a colon, ends the cell


def main() -> None:
    """A dot for the mean of a change's seeds on a line from its lowest to its highest, with the best on top."""
    scores, flops = final_scores()
    first = scores[FIRST] + repeated_scores()
    low, high = min(first), max(first)
    means = {group: sum(scores[group]) / len(scores[group]) for group in CHANGES}
    groups = sorted(CHANGES, key=means.__getitem__)
    figure = charts.make_figure((7.2, 4.2))
    axes = figure.subplots()
    axes.axvspan(low, high, color="0.88", label=f"{len(first)} runs of the first row:\n{low:.1f} to {high:.1f}%")
    for height, group in enumerate(groups):
        mean, lowest, highest = means[group], min(scores[group]), max(scores[group])
        colour = charts.COLOURS[0] if mean > high else charts.COLOURS[1] if mean < low else "0.3"
        if mean < LEFT:
            axes.plot(LEFT + 0.6, height, marker="<", color=colour)
            axes.text(LEFT + 1.4, height, f"{mean:.1f} [{lowest:.1f}, {highest:.1f}]", va="center", fontsize=9)
        else:
            axes.plot([lowest, highest], [height, height], color=colour, linewidth=1.5)
            axes.plot(mean, height, "o", color=colour, markersize=6)
    axes.set_yticks(range(len(groups)), [CHANGES[group] for group in groups])
    axes.get_yticklabels()[groups.index(FIRST)].set_fontweight("bold")
    cost = axes.secondary_yaxis("right")
    cost.set_yticks(range(len(groups)), [f"{flops[group] / flops[FIRST]:.2g}" for group in groups])
    cost.tick_params(length=0)
    cost.spines["right"].set_visible(False)
    axes.set_title("cost", loc="right", fontsize=10)
    axes.set(xlim=(LEFT, 95), xlabel="score against rollout MCTS 1,000 (%)")
    axes.grid(True, color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    charts.save(figure, PICTURE)


if __name__ == "__main__":
    main()
