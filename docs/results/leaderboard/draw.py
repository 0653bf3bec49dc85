"""Draws the leaderboard's figure from tables of docs/: python docs/results/leaderboard/draw.py

A panel is a game, or one board of Hex. A point is a cell of a table, at the FLOPs that the agent's training took, and a
dotted line is the result of a player that was not trained here, by the measure of the same colour.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.run import charts

DOCS = Path(__file__).parents[2]
PICTURE = DOCS / "pictures" / "leaderboard.svg"

LEADERBOARD = "leaderboard.md"
EXAMINER = "results/2026-11-29-independent.md"
EARLIER = "results/2026-11-26-independent.md"
OURS = "other-programs.md"
CHANCE = "chance.md"
ARCADE = "results/arcade/README.md"

SOLVED = "winning-move accuracy"
ROLLOUTS = "MCTS 1,000"
SCORE = "score"
RETURN = "mean return"
MEANINGS = {
    SOLVED: "winning-move accuracy",
    ROLLOUTS: "score against rollout MCTS with 1,000 simulations",
    SCORE: "score against the program that is named",
    RETURN: "mean return",
}
COLOURS = dict(zip((ROLLOUTS, SCORE, SOLVED, RETURN), charts.COLOURS, strict=False))
SHORT = """Numbers: after MoHex playouts, after OpenSpiel simulations of its
MCTS, after Fairy(-Stockfish) nodes or a skill level, after Rhino and
GNU Go levels. HexHex plays its network's first choice."""
OWN_SCALE = {"2048": ((0, 25_000, 50_000), "{:,.0f}"), "Pong": ((-10, 0, 10), "{:.0f}")}  # ticks, and how they read
COLUMNS = 4
MIDDLE = 1e15  # FLOPs; labels stand on the side that has more room
TEXT = {"fontsize": 7.5, "color": "0.2", "in_layout": False}


class Result(NamedTuple):
    """Where a result stands: the column, and the row of the page's tables that begins with these cells."""

    page: str
    column: str
    begins: tuple[str, ...]
    label: str = ""


def solved(agent: str, board: str, label: str = "", page: str = EXAMINER) -> Result:
    """An agent in the examiner's solved positions."""
    return Result(page, SOLVED, (f"`{agent}`", board), label)


def rollouts(agent: str, label: str = "") -> Result:
    """An agent in the leaderboard's last table."""
    return Result(LEADERBOARD, ROLLOUTS, (agent,), label)


def examined(agent: str, opponent: str, label: str) -> Result:
    """A match that the examiner played."""
    return Result(EXAMINER, SCORE, (agent, opponent), label)


def played(game: str, player: str, opponent: str, label: str) -> Result:
    """A match that we played."""
    return Result(OURS, SCORE, (game, player, opponent), label)


PANELS = {
    "Tic-tac-toe": [Result(LEADERBOARD, SOLVED, ("`tic_tac_toe`",))],  # perfect play scores half against MCTS
    "Hex 5x5": [
        solved("hex", "Hex 5x5", "hex"),
        solved("hex_5x5", "Hex 5x5", "hex_5x5", EARLIER),
        rollouts("`hex_5x5`", "hex_5x5"),
        rollouts("`hex_5x5_rules`, AlphaZero", "hex_5x5_rules"),
    ],
    "Hex 6x6": [
        rollouts("`hex_6x6`", "hex_6x6"),
        solved("hex", "Hex 6x6", "hex"),
        solved("hex_6x6", "Hex 6x6", "hex_6x6", EARLIER),
    ],
    "Hex 7x7": [
        solved("hex", "Hex 7x7"),
        examined("`hex`, 7x7", "MoHex 2.0, 1,000 playouts", "MoHex 1,000"),
    ],
    "Hex 9x9": [
        solved("hex", "Hex 9x9"),
        examined("`hex`, 9x9", "MoHex 2.0, 1,000 playouts", "MoHex 1,000"),
        Result(LEADERBOARD, SOLVED, ("MCTS 1,000", "Hex 9x9"), "MCTS 1,000"),
    ],
    "Hex 11x11": [
        rollouts("`hex`, on 11x11"),
        examined("`hex`, 11x11", "MoHex 2.0, 1,000 playouts", "MoHex 1,000"),
        examined("`hex`, 11x11", "HexHex, its network's first choice", "HexHex"),
    ],
    "Connect Four": [
        rollouts("`connect_four`"),
        examined("`connect_four`", "OpenSpiel's MCTS, 1,000 simulations", "OpenSpiel 1,000"),
        solved("connect_four", "Connect Four, all phases of the game"),
    ],
    "Othello": [
        played("Othello", "`othello`", "Rhino 0.16.1, level 1", "Rhino 1"),
        rollouts("`othello`"),
        played("Othello", "`othello`", "Rhino 0.16.1, level 3", "Rhino 3"),
        examined("`othello`", "Rhino 0.16.1, level 3", "Rhino 3"),
        played("Othello", "rollout MCTS 1,000", "Rhino 0.16.1, level 3", "MCTS against Rhino 3"),
    ],
    "Go 9x9": [
        examined("`go_9x9`", "GNU Go 3.8, level 1", "GNU Go 1"),
        examined("`go_9x9`", "GNU Go 3.8, level 10", "GNU Go 10"),
    ],
    "Animal shogi": [
        played("animal shogi", "`animal_shogi`", "Fairy-Stockfish 11.1, 1,000 nodes", "Fairy 1,000"),
        played("animal shogi", "`animal_shogi`", "Fairy-Stockfish 11.1, 3,000 nodes", "3,000"),
        played("animal shogi", "`animal_shogi`", "Fairy-Stockfish 11.1, 10,000 nodes", "10,000"),
        played("animal shogi", "rollout MCTS 100", "Fairy-Stockfish 11.1, 1,000 nodes", "MCTS 100 against 1,000"),
    ],
    "Gardner chess": [
        played("Gardner chess", "`gardner_chess`", "Fairy-Stockfish 11.1, 10 nodes", "Fairy 10"),
        played("Gardner chess", "`gardner_chess`", "Fairy-Stockfish 11.1, skill level 0, 0.1 s a move", "skill 0"),
        played("Gardner chess", "`gardner_chess`", "Fairy-Stockfish 11.1, 100 nodes", "100"),
    ],
    "Backgammon": [played("backgammon", "`backgammon`", "GNU Backgammon 1.07, 0-ply", "GNU Backgammon")],
    "2048": [
        rollouts("`2048`, AlphaZero"),
        *(Result(CHANCE, RETURN, (f"`{player}`",), player) for player in ("expectimax:2", "random")),
    ],
    "Pong": [
        rollouts("`octax_pong`, 8 simulations"),
        Result(ARCADE, "PPO, as many minutes", ("Pong",), "PPO"),
        Result(ARCADE, "random play", ("Pong",), "random"),
    ],
}
NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?"


def tables(page: str) -> Iterator[dict[str, str]]:
    """The rows of a page's tables, by column; of a link the text."""
    header: list[str] = []
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            header = []
            continue
        cells = [cell.strip() for cell in re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line)[1:-1].split("|")]
        header = header or cells
        yield dict(zip(header, cells, strict=False))


def measured(result: Result) -> list[float]:
    """The number in a result's cell, with the ends of its 95% interval if it has one."""
    cells = [
        row[result.column]
        for row in tables(result.page)
        if result.column in row and tuple(row.values())[: len(result.begins)] == result.begins
    ]
    assert len(cells) == 1, f"{result} has {len(cells)} rows"
    if found := re.search(rf"({NUMBER})%? \[({NUMBER}), ({NUMBER})\]", cells[0]):
        return [float(part.replace(",", "")) for part in found.groups()]
    if cells[0] == "the best move in each":  # of all positions
        return [100.0]
    numbers = [float(part.replace(",", "")) for part in re.findall(NUMBER, cells[0])]
    return [100 * numbers[0] / numbers[1]] if " of " in cells[0] else numbers[:1]


def name_of(cell: str) -> str:
    """The agent that a cell begins with; empty if it begins with none."""
    found = re.match(r"`(\w+)`", cell)
    return found[1] if found else ""


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Heights of labels, given from the highest down, moved down until a gap lies between any two."""
    moved: list[float] = []
    for height in heights:
        moved.append(min(height, moved[-1] - gap) if moved else height)
    return moved


def draw_panel(axes: Any, results: Sequence[Result], flops: dict[str, float], is_return: bool) -> None:
    """Points with 95% intervals, filled if the examiner judged; their labels stand in the order of `results`."""
    points = []
    for result in results:
        value, *ends = measured(result)
        colour = COLOURS[RETURN if is_return else result.column]
        text = f"{result.label}: " if result.label else ""
        text += f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
        text += "" if is_return else "%"
        agent = next((name for name in map(name_of, result.begins) if name in flops), None)
        if agent:
            points.append((flops[agent], value, text, colour))
            face = colour if result.page in (EXAMINER, EARLIER) else "white"
            bars = [[value - ends[0]], [ends[1] - value]] if ends else None
            style = {"marker": "o", "markersize": 5, "capsize": 2, "linewidth": 1.2}
            axes.errorbar(flops[agent], value, bars, color=colour, markerfacecolor=face, zorder=3, **style)
        else:
            axes.axhline(value, color=colour, linestyle=":", linewidth=1.2)
            x, align = (0.02, "left") if points[0][0] > MIDDLE else (0.98, "right")
            axes.annotate(text, (x, value), (0, 1), axes.get_yaxis_transform(), "offset points", ha=align, **TEXT)
    low, high = axes.get_ylim()
    heights = spread([value for _, value, _, _ in points], (high - low) / 10)
    for (at, value, text, colour), height in zip(points, heights, strict=True):
        x, align, end = (at / 1.5, "right", 1) if at > MIDDLE else (at * 1.5, "left", 0)
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3, "relpos": (end, 0.5)}
        axes.annotate(text, (at, value), (x, height), arrowprops=line, ha=align, va="center", **TEXT)


def explain(axes: Any) -> None:
    """The meaning of colours, marks and short names, where there is no panel."""
    from matplotlib.lines import Line2D

    marks = {
        **{label: {"color": COLOURS[kind], "marker": "o"} for kind, label in MEANINGS.items()},
        "judged by an examiner outside this project": {"color": "0.3", "marker": "o"},
        "judged by us": {"color": "0.3", "marker": "o", "markerfacecolor": "white"},
        "another player, in the colour of its measure": {"color": "0.3", "linestyle": ":"},
    }
    handles = [Line2D([], [], **{"linestyle": "", "markersize": 5, **mark}) for mark in marks.values()]
    legend = axes.legend(
        handles, marks, loc="upper left", borderaxespad=0, frameon=False, fontsize=8, labelspacing=0.25
    )
    note = axes.text(0.0, 0.0, SHORT, transform=axes.transAxes, fontsize=7.5, va="bottom")
    for artist in (legend, note):
        artist.set_in_layout(False)  # it is wider than a panel
    axes.set_axis_off()


def main() -> None:
    """A panel for each of PANELS, and the meaning of colours and marks."""
    rows = [row for row in tables(LEADERBOARD) if "FLOPs" in row and name_of(row["agent"])]
    flops = {name_of(row["agent"]): float(row["FLOPs"]) for row in rows}
    figure = charts.make_figure((8.8, 7.6))
    panels = figure.subplots(-(-len(PANELS) // COLUMNS), COLUMNS, sharex=True).flat
    for number, (game, results) in enumerate(PANELS.items()):
        axes = panels[number]
        ticks, form = OWN_SCALE.get(game, ((0, 50, 100), "{:.0f}%"))
        margin = 0.04 * (ticks[-1] - ticks[0])
        axes.set(xscale="log", xlim=(1e13, 3e16), ylim=(ticks[0] - margin, ticks[-1] + margin))
        axes.set_yticks(ticks, [form.format(tick) for tick in ticks])
        axes.set_xticks([10.0**power for power in range(13, 17)])
        axes.minorticks_off()
        axes.tick_params(labelsize=8, labelbottom=number + COLUMNS >= len(PANELS))
        axes.grid(True, color="0.92")
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(f"{game}, mean return" if game in OWN_SCALE else game, loc="left", fontsize=9, fontweight="bold")
        draw_panel(axes, results, flops, game in OWN_SCALE)
    explain(panels[len(PANELS)])
    panels[len(PANELS) + 1].set_axis_off()
    figure.supxlabel("FLOPs of the network in the agent's training", fontsize=9)
    charts.save(figure, PICTURE)


if __name__ == "__main__":
    main()
