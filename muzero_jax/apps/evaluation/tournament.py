"""Tournaments: a round robin, a cross table and an Elo scale.

Pairs of players that differ only in their weights, such as runs of one preset, share one compiled match.
"""

from collections.abc import Callable, Hashable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh

from muzero_jax.agent import load_agent
from muzero_jax.apps.evaluation import elo, engine_matches, players
from muzero_jax.apps.evaluation.arena import Report, Summary, silent
from muzero_jax.apps.evaluation.engine_matches import Conditions
from muzero_jax.apps.evaluation.matches import are_for_points, points_of, wilson_interval
from muzero_jax.apps.evaluation.players import Agent, Entrant, LoadAgent
from muzero_jax.apps.evaluation.tables import REPEATED, align, percent, percent_interval, signed

Result = dict[str, Any]
"""`players`, `cross_table`, `matches`, `anchor` and the settings, as plain numbers and lists."""


class Entrants(NamedTuple):
    """The players, and the first run among them, which determines the game."""

    entrants: list[Entrant]
    host: Agent


def enter(names: tuple[str, ...], load_agent: LoadAgent = load_agent) -> Entrants:
    """The players with these names (`players`).

    Raises:
      ValueError: fewer than two players, no run, an unknown name, a player named twice, or runs of several games.
    """
    specs = [spec for name in names for spec in players.parse_all(name)]
    if len(specs) < 2:
        raise ValueError("a tournament needs two players or more")
    agents = {run: load_agent(Path(run)) for run in dict.fromkeys(spec.run for spec in specs) if run is not None}
    if not agents:
        raise ValueError("name at least one run among the players, because a run determines the game")
    host = next(iter(agents.values()))
    for run, agent in agents.items():
        players.check_same_game(host.config, agent.config, run)
    entrants = [players.enter(spec, agents[spec.run] if spec.run else host) for spec in specs]
    taken = [entrant.name for entrant in entrants]
    if twice := [name for name in taken if taken.count(name) > 1]:
        raise ValueError(f"{twice[0]} plays in the tournament twice; name every player once")
    return Entrants(entrants, host)


def play(
    field: Entrants,
    mesh: Mesh,
    *,
    num_games: int,
    opening_plies: int,
    seed: int,
    anchor: str | None = None,
    conditions: Conditions,
    report: Report = silent,
) -> Result:
    """Every pair plays `num_games` games (rounded up as in `arena.ShardedMatch`), each opening with both colours.

    Args:
      anchor: the player whose Elo is 0; by default `random` if it plays, else the first player.
      conditions: for engines; the records of each match with an engine get a separate folder.
      report: called with (matches played, matches in all).

    If a tournament is interrupted, `conditions.say` gets its standing. Raises ValueError if the anchor does not play.
    """
    names = [entrant.name for entrant in field.entrants]
    anchor = anchor or ("random" if "random" in names else names[0])
    if anchor not in names:
        raise ValueError(f"--anchor {anchor} does not play; the players are {', '.join(names)}")
    pairs = list(combinations(field.entrants, 2))
    environment = field.host.environment
    counts = {"num_games": num_games, "opening_plies": opening_plies}
    programs: dict[Hashable, Callable[..., Summary]] = {}
    matches: list[dict[str, Any]] = []

    try:
        for played, (a, b) in enumerate(pairs):
            report(played, len(pairs))
            program = (a.program, b.program)
            key = jax.random.fold_in(jax.random.key(seed), played)
            if program not in programs or a.is_engine or b.is_engine:
                own = conditions.of_match(played)
                programs[program] = engine_matches.make_match(environment, a, b, mesh, **counts, conditions=own)
            matches.append({"a": a.name, "b": b.name} | programs[program](a.params, b.params, key))
    except (ValueError, OSError, RuntimeError, KeyboardInterrupt):  # errors that a user may cause
        if matches:
            met = [name for name in names if any(name in (match["a"], match["b"]) for match in matches)]
            standing = format_table(summarise(met, matches, anchor if anchor in met else met[0]))
            conditions.say(f"{len(matches)} of {len(pairs)} matches had ended:\n{standing}")
        raise
    settings = {"games_per_pair": num_games, "opening_plies": opening_plies, "seed": seed}
    return settings | summarise(names, matches, anchor)


def summarise(names: list[str], matches: list[dict[str, Any]], anchor: str) -> Result:
    """Scores and ratings of the players, from `matches.summarise`'s dicts with the names `a` and `b`.

    `cross_table[i][j]` is player i's score against j in [0, 1]; None on the diagonal and if the pair did not meet. A
    player's score weighs all its opponents equally, although some pairs have fewer distinct games. In a game for points
    there are mean points of a game instead, and no Elo, because its model knows games only as won, drawn or lost.
    """
    if are_for_points(matches):
        return {"anchor": anchor, "matches": matches} | _points(names, matches)
    seats = [(names.index(match["a"]), names.index(match["b"])) for match in matches]
    points = [(match["score"] * match["games"], (1 - match["score"]) * match["games"]) for match in matches]
    wins = elo.win_matrix(len(names), [(*pair, *both) for pair, both in zip(seats, points, strict=True)])
    ratings = [field.tolist() for field in elo.rate(wins, anchor=names.index(anchor))]
    games = wins + wins.T
    table = [[float(w / g) if g else None for w, g in zip(*row, strict=True)] for row in zip(wins, games, strict=True)]
    rows = []
    for name, scores, played, rating, *ends in zip(names, table, games, *ratings, strict=True):
        score = float(np.mean([score for score in scores if score is not None]))
        size = np.count_nonzero(played) ** 2 / (1 / played[played > 0]).sum()  # effective number of games
        interval = list(wilson_interval(score, size))
        row = {"name": name, "games": round(played.sum()), "score": score, "ci95": interval}
        rows.append(row | {"elo": rating, "elo_ci95": ends})
    return {"anchor": anchor, "players": rows, "cross_table": table, "matches": matches}


def _points(names: list[str], matches: list[dict[str, Any]]) -> Result:
    """The players' mean points of a game, weighing all opponents equally, and the cross table of them."""
    table: list[list[float | None]] = [[None] * len(names) for _ in names]
    met: dict[str, list[tuple[float, float, int]]] = {name: [] for name in names}  # mean, half width, games
    for match in matches:
        a, b = match["a"], match["b"]
        mean, low, _ = points_of(match)
        for one, other, sign in ((a, b, 1), (b, a, -1)):
            table[names.index(one)][names.index(other)] = sign * mean
            met[one].append((sign * mean, mean - low, match["games"]))
    rows = []
    for name, found in met.items():
        means, half_widths, games = np.array(found).T
        mean = float(means.mean())
        half_width = float(np.sqrt((half_widths**2).sum()) / len(found))
        interval = [mean - half_width, mean + half_width]
        rows.append({"name": name, "games": int(games.sum()), "mean_points": mean, "mean_points_ci95": interval})
    return {"players": rows, "cross_table": table}


def ranked(result: Result) -> Result:
    """The result with its players from strongest to weakest, as rows and as columns of the cross table."""
    players = result["players"]
    measure = "mean_points" if are_for_points(players) else "elo"
    order = sorted(range(len(players)), key=lambda i: -players[i][measure])
    table = [[result["cross_table"][i][j] for j in order] for i in order]
    return result | {"players": [players[i] for i in order], "cross_table": table}


def format_table(result: Result) -> str:
    """The players from strongest to weakest: Elo and score with intervals, and the score against each other player.

    In a game for points: mean points of a game instead.
    """
    result = ranked(result)
    players = result["players"]
    is_for_points = are_for_points(players)
    titles = ["points a game", "95%"] if is_for_points else ["Elo", "95%", "score", "95%"]
    rows = [["", "", *titles, *map(str, range(1, len(players) + 1))]]
    for place, (player, scores) in enumerate(zip(players, result["cross_table"], strict=True), start=1):
        cells = _points_cells(player, scores) if is_for_points else _elo_cells(player, scores, result["anchor"])
        rows.append([str(place), player["name"], *cells])
    return "\n".join([*align(rows, "><>"), "", *_notes(result)])


def _elo_cells(player: Mapping[str, Any], scores: list[float | None], anchor: str) -> list[str]:
    low, high = player["elo_ci95"]
    interval = "anchor" if player["name"] == anchor else f"[{low:z.0f}, {high:z.0f}]"
    cells = [f"{player['elo']:z.0f}", interval, percent(player["score"]), percent_interval(player["ci95"])]
    return cells + ["-" if score is None else f"{100 * score:.1f}" for score in scores]


def _points_cells(player: Mapping[str, Any], means: list[float | None]) -> list[str]:
    low, high = map(signed, player["mean_points_ci95"])
    return [signed(player["mean_points"]), f"[{low}, {high}]", *map(signed, means)]


def _notes(result: Result) -> list[str]:
    """How to read the table, and what to beware of."""
    if are_for_points(result["players"]):
        notes = [
            "The row's mean points of a game. There is no Elo, whose model knows games only as won, drawn or lost."
        ]
    else:
        notes = [f"Elo by Bradley-Terry, draws as half wins, {result['anchor']} = 0; scores of the row in per cent."]
        if any(score in (0.0, 1.0) for row in result["cross_table"] for score in row):
            notes.append(
                "Some pair's games were all won by one side: its Elo difference is held finite by Jeffreys' prior, and"
                " is a lower bound rather than an estimate."
            )
    counted = sorted(match["games"] for match in result["matches"])
    if counted[0] < result.get("games_per_pair", counted[-1]):
        notes.append(f"{counted[0]} to {counted[-1]} games of a pair differ. {REPEATED}")
    if illegal := sum(match.get("illegal_actions", 0) for match in result["matches"]):
        notes.append(f"ILLEGAL MOVES were chosen {illegal} times.")
    return notes
