"""Pictures of a tournament and of a model's fidelity, drawn from the results that `--json` prints."""

from pathlib import Path
from typing import Any

from muzero_jax.apps.evaluation import tournament
from muzero_jax.apps.evaluation.matches import are_for_points
from muzero_jax.run import charts

BLUE, RED = "#0072b2", "#d55e00"
PANELS = {
    "value_drift": "Value: mean |drift|",
    "policy_drift": "Policy: total variation, legal moves",
    "illegal_prior": "Prior on illegal moves",
    "win_found_rate": "Winning moves whose reward is predicted",
    "false_win_rate": "Other moves predicted to win",
    "same_observation_rate": "Reconstruction equals the observation",
}


def plot_tournament(result: dict[str, Any], path: Path) -> None:
    """Draws `tournament.play`'s result: Elo or mean points with 95% intervals, and the cross table, strongest first."""
    ranked = tournament.ranked(result)
    players = ranked["players"]
    is_for_points = are_for_points(players)
    measure = "mean_points" if is_for_points else "elo"
    size = 0.5 * len(players)
    figure = charts.make_figure((8 + size, 2.2 + size))
    rating, table = figure.subplots(1, 2, width_ratios=(1.3, 1))
    means = [player[measure] for player in players]
    ends = [[abs(player[f"{measure}_ci95"][end] - player[measure]) for player in players] for end in (0, 1)]
    rating.errorbar(means, range(len(players)), xerr=ends, fmt="o", color=BLUE, ecolor="0.55", capsize=3)
    rating.set_yticks(range(len(players)), [player["name"] for player in players])
    rating.set_ylim(len(players) - 0.5, -0.5)
    what = "mean points of a game" if is_for_points else f"Elo ({result['anchor']} = 0)"
    rating.set(xlabel=f"{what}, 95% intervals")
    rating.grid(True, axis="x", color="0.9")
    rating.spines[["top", "right"]].set_visible(False)
    _draw_cross_table(table, ranked["cross_table"], is_for_points)
    charts.save(figure, path)


def plot_fidelity(result: dict[str, Any], path: Path) -> None:
    """Draws `fidelity.examine`'s result: a panel for each quantity, over depth, for both kinds of moves."""
    lines = result["lines"]
    keys = [key for key in PANELS if any(row[key] is not None for rows in lines.values() for row in rows)]
    figure = charts.make_figure((11.0, 3.1 * -(-len(keys) // 3)))
    axes = figure.subplots(-(-len(keys) // 3), 3, squeeze=False).ravel()
    for panel, key in zip(axes, keys, strict=False):
        for (kind, rows), colour in zip(lines.items(), (BLUE, RED), strict=True):
            points = [(row["depth"], row[key]) for row in rows if row[key] is not None]
            panel.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=4, label=f"{kind} moves")
        panel.set_title(PANELS[key], loc="left", fontsize=9, fontweight="bold")
        top = max(0.1, 1.1 * panel.dataLim.ymax)
        panel.set(xlabel="unroll depth", ylim=(-top / 20, top))
        panel.grid(True, color="0.9")
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=9)
    for panel in axes[len(keys) :]:
        panel.set_visible(False)
    charts.save(figure, path)


def _draw_cross_table(axes: Any, scores: list[list[float | None]], is_for_points: bool) -> None:
    """Scores of the row against the column in per cent, or mean points; blue if the row is ahead, red if behind."""
    even = 0.0 if is_for_points else 0.5
    shown = [[even if score is None else score for score in row] for row in scores]
    reach = 1.6 * max(0.5, *(abs(score - even) for row in shown for score in row))
    axes.imshow(shown, cmap="RdBu", vmin=even - reach, vmax=even + reach, aspect="auto")
    for i, row in enumerate(scores):
        for j, score in enumerate(row):
            text = "" if score is None else f"{score:+.2f}" if is_for_points else f"{100 * score:.0f}"
            axes.text(j, i, text, ha="center", va="center", fontsize=9)
    axes.set_xticks(range(len(scores)), range(1, len(scores) + 1))
    axes.set_yticks(range(len(scores)), range(1, len(scores) + 1))
    unit = "points a game" if is_for_points else "score (%)"
    axes.set_title(f"{unit} of the row against the column", loc="left", fontsize=10)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
