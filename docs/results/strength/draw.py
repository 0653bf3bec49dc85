"""Draws README's figure of strength from the tournaments beside this file: python docs/results/strength/draw.py"""

import json
from pathlib import Path

from muzero_jax.run import charts

FOLDER = Path(__file__).parent
PICTURE = FOLDER.parents[1] / "pictures" / "strength.svg"
GAMES = {"hex-5x5": "Hex 5x5", "hex-7x7": "Hex 7x7", "connect-four": "Connect Four", "othello": "Othello"}
MARKS = {"mcts:100": "MCTS 100", "mcts:1000": "MCTS 1,000", "mcts:10000": "MCTS 10,000"}
"""Rollout MCTS; a stroke at the left for each game, in its colour, and a label at the middle of its strokes."""
MINUTES = (1, 2, 5, 10, 20, 40)


def main() -> None:
    """A line for each game: Elo over rollout MCTS with 1,000 simulations against minutes of training."""
    minutes = json.loads((FOLDER / "minutes.json").read_text())
    figure = charts.make_figure((7.2, 4.2))
    axes = figure.subplots()
    heights: dict[str, list[float]] = {}
    for (name, title), colour in zip(GAMES.items(), charts.COLOURS, strict=False):
        players = json.loads((FOLDER / f"{name}.json").read_text())["players"]
        by_version = {Path(player["name"]).name.partition("@")[0]: player for player in players}
        points = [(at, by_version[version]) for version, at in minutes[name].items() if version in by_version]
        elo = [player["elo"] for _, player in points]
        ends = [[abs(player["elo_ci95"][end] - player["elo"]) for _, player in points] for end in (0, 1)]
        axes.errorbar(
            [at for at, _ in points], elo, yerr=ends, marker="o", markersize=4, capsize=2, color=colour, label=title
        )
        for player in players:
            if player["name"] in MARKS:
                axes.axhline(player["elo"], xmax=0.03, color=colour, linewidth=2)
                heights.setdefault(player["name"], []).append(player["elo"])
    for name, strokes in heights.items():
        middle = (min(strokes) + max(strokes)) / 2
        where = axes.get_yaxis_transform()
        axes.text(0.035, middle, MARKS[name], transform=where, verticalalignment="center", fontsize=8, color="0.3")
    axes.set(xscale="log", xlabel="minutes of training on one core", ylabel="Elo over rollout MCTS 1,000")
    axes.set_xticks(MINUTES, [str(minute) for minute in MINUTES])
    axes.set_xlim(0.7)
    axes.minorticks_off()
    axes.grid(True, color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    charts.save(figure, PICTURE)


if __name__ == "__main__":
    main()
