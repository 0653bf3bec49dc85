"""Everybody against everybody: players named by short specs, a round robin on the device, a cross table, an Elo scale.

    RUN[@N]          a run's agent, searching with N simulations (default: its own evaluation budget)
    RUN:rules[@N]    the same network and search, planning with the true rules
    RUN:greedy       its policy head
    rules:N, greedy  the same of the first run that is named
    mcts:N, random   rollout MCTS; uniformly random legal moves

RUN is a run's directory (its newest checkpoint), RUN/versions/N what it was after iteration N, or RUN/versions all of
its versions, each a player.

Pairs whose players differ in nothing but their weights, as runs of one preset do, share one compiled match.
"""

from collections.abc import Callable, Hashable
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from muzero_jax.evaluation import arena, elo, opponents
from muzero_jax.evaluation.arena import Agent, ShardedMatch
from muzero_jax.evaluation.matches import wilson_interval
from muzero_jax.storage import run_directory
from muzero_jax.types import Params, Player

Result = dict[str, Any]
"""`players`, `cross_table`, `matches`, `anchor` and the settings, as plain numbers and lists."""

SPECS = (
    "RUN, RUN@N, RUN:rules@N, RUN:greedy, rules:N, greedy, mcts:N or random, where RUN is a run directory, a version "
    "of one (RUN/versions/1200) or all of them (RUN/versions)"
)


class Entrant(NamedTuple):
    """One player of a tournament."""

    name: str
    player: Player
    params: Params
    program: Hashable  # equal for players that differ in their params alone


class Field(NamedTuple):
    """Who takes part, and the first run among them, whose game it is."""

    entrants: list[Entrant]
    host: Agent


def enter(specs: tuple[str, ...], num_simulations: int | None = None) -> Field:
    """The players that `specs` name; `num_simulations` is the budget of runs that give none.

    Raises:
      ValueError: fewer than two players or no run, a spec that names nobody, one player twice, runs of several games.
    """
    parsed = [player for spec in specs for player in _players(*_parse(spec))]
    if len(parsed) < 2:
        raise ValueError("--tournament needs two players or more")
    runs = list(dict.fromkeys(run for run, _, _ in parsed if run is not None))
    if not runs:
        raise ValueError("--tournament needs a run directory among its players, which says what game it is")
    agents = {run: arena.load_agent(Path(run), num_simulations) for run in runs}
    for run in runs[1:]:
        arena.check_same_game(agents[runs[0]].config, agents[run].config, run)
    entrants = []
    for run, kind, budget in parsed:
        agent = agents[run or runs[0]]
        budget = budget or num_simulations or agent.config.evaluation.num_simulations
        entrants.append(_make_entrant(agent, run or runs[0], kind, budget))
    names = [entrant.name for entrant in entrants]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} plays in --tournament twice; name every player once")
    return Field(entrants, agents[runs[0]])


def play(
    field: Field,
    mesh: Mesh,
    *,
    num_games: int,
    opening_plies: int,
    seed: int,
    anchor: str | None = None,
    report: Callable[[int, int], None] = lambda played, total: None,
) -> Result:
    """Every pair plays `num_games` games (rounded up as in `arena.sharded_match`), each opening with both colours.

    Args:
      anchor: the player whose Elo is 0; by default `random` if it plays, else the first.
      report: called with (matches played, matches in all).

    Raises ValueError if the anchor does not play.
    """
    entrants = field.entrants
    names = [entrant.name for entrant in entrants]
    anchor_index = _find_anchor(names, anchor)
    pairs = list(combinations(range(len(entrants)), 2))
    programs: dict[Hashable, ShardedMatch] = {}
    matches = []
    for played, (i, j) in enumerate(pairs):
        report(played, len(pairs))
        a, b = entrants[i], entrants[j]
        program = a.program, b.program
        if program not in programs:
            programs[program] = arena.sharded_match(
                field.host.parts, a.player, b.player, mesh, num_games=num_games, opening_plies=opening_plies
            )
        key = jax.random.fold_in(jax.random.key(seed), played)
        matches.append({"a": a.name, "b": b.name} | programs[program](a.params, b.params, key))
    settings = {"games_per_pair": matches[0]["games"], "opening_plies": opening_plies, "seed": seed}
    return settings | summarise(names, matches, anchor=anchor_index)


def summarise(names: list[str], matches: list[dict[str, Any]], *, anchor: int = 0) -> Result:
    """Scores and ratings of the players, from `evaluation.summarise`'s dicts with the names of `a` and `b`.

    `cross_table[i][j]` is player i's score against j in [0, 1], None on the diagonal and where a pair did not meet.
    """
    indices = [(names.index(match["a"]), names.index(match["b"])) for match in matches]
    points = [(match["score"] * match["games"], (1 - match["score"]) * match["games"]) for match in matches]
    wins = elo.win_matrix(len(names), [(*pair, *both) for pair, both in zip(indices, points, strict=True)])
    ratings = elo.rate(wins, anchor=anchor)
    games = wins + wins.T
    rows = []
    for i, name in enumerate(names):
        total = float(games[i].sum())
        score = float(wins[i].sum()) / total
        rows.append(
            {
                "name": name,
                "games": round(total),
                "score": score,
                "ci95": list(wilson_interval(score, round(total))),
                "elo": float(ratings.elo[i]),
                "elo_ci95": [float(ratings.low[i]), float(ratings.high[i])],
            }
        )
    table = [[float(w / g) if g else None for w, g in zip(*row, strict=True)] for row in zip(wins, games, strict=True)]
    return {"anchor": names[anchor], "players": rows, "cross_table": table, "matches": matches}


def format_table(result: Result) -> str:
    """The players from strongest to weakest: Elo with its interval, score, and the score against each of the others."""
    players, table = result["players"], result["cross_table"]
    order = sorted(range(len(players)), key=lambda i: -players[i]["elo"])
    width = max(len(player["name"]) for player in players)
    titles = [f"{'':>3}{'':<{width}}", f"{'Elo':>6}", f"{'95%':>16}", f"{'score':>7}", f"{'95%':>14}"]
    lines = ["  ".join([*titles, *(f"{place:>5}" for place in range(1, len(order) + 1))])]
    for place, i in enumerate(order, start=1):
        player = players[i]
        (low, high), (elo_low, elo_high) = player["ci95"], player["elo_ci95"]
        cells = [f"{place:>2} {player['name']:<{width}}", f"{player['elo']:z6.0f}"]
        is_anchor = player["name"] == result["anchor"]
        cells.append(f"{'anchor' if is_anchor else f'[{elo_low:z.0f}, {elo_high:z.0f}]':>16}")
        cells.append(f"{100 * player['score']:6.1f}%")
        cells.append(f"{f'[{100 * low:.1f}, {100 * high:.1f}]':>14}")
        cells.extend("    -" if table[i][j] is None else f"{100 * table[i][j]:5.1f}" for j in order)
        lines.append("  ".join(cells))
    return "\n".join([*lines, *_remarks(result)])


def _remarks(result: Result) -> list[str]:
    """What a reader of the ratings must know."""
    notes = [f"\nElo by Bradley-Terry, draws as half wins, {result['anchor']} = 0; scores of the row in per cent."]
    if any(score in (0.0, 1.0) for row in result["cross_table"] for score in row):
        notes.append(
            "Some pair's games were all won by one side: its Elo difference is held finite by Jeffreys' prior, and is"
            " a lower bound rather than an estimate."
        )
    illegal = sum(match.get("illegal_actions", 0) for match in result["matches"])
    return notes + ([f"ILLEGAL MOVES were chosen {illegal} times."] if illegal else [])


def _find_anchor(names: list[str], anchor: str | None) -> int:
    if anchor is None:
        return names.index("random") if "random" in names else 0
    if anchor not in names:
        raise ValueError(f"--anchor {anchor} does not play; the players are {', '.join(names)}")
    return names.index(anchor)


def _parse(spec: str) -> tuple[str | None, str, int | None]:
    """(run or None, kind, budget): kind is random, mcts, greedy, rules or agent; a ValueError lists the forms."""
    if arena.is_run(spec):
        return str(Path(spec)), "agent", None
    if spec in ("random", "greedy"):
        return None, spec, None
    kind, budget = arena.split_budget(spec)
    if kind in ("mcts", "rules") and budget:
        return None, kind, budget
    rest, budget = arena.split_budget(spec, "@")
    if arena.is_run(rest):
        return str(Path(rest)), "agent", budget
    run, _, kind = rest.rpartition(":")
    if arena.is_run(run) and (kind == "rules" or (kind == "greedy" and budget is None)):
        return str(Path(run)), kind, budget
    raise ValueError(f"there is no player {spec!r}: give {SPECS}")


def _players(run: str | None, kind: str, budget: int | None) -> list[tuple[str | None, str, int | None]]:
    """One player, or one for each version if the run is a folder of them."""
    versions = None if run is None else run_directory.versions_in(Path(run))
    if versions is None:
        return [(run, kind, budget)]
    if not versions:
        raise ValueError(f"there are no versions in {run}; leave it out or name a run directory")
    return [(str(version), kind, budget) for version in versions]


def _make_entrant(agent: Agent, run: str, kind: str, budget: int) -> Entrant:
    """The player of `agent`'s game that a parsed spec means; players without a network carry no params."""
    config, parts = agent.config, agent.parts
    match kind:
        case "random":
            return Entrant(kind, opponents.random_player(parts.environment), None, kind)
        case "mcts":
            player = opponents.rollout_mcts_player(parts.environment, num_simulations=budget)
            return Entrant(f"mcts:{budget}", player, None, (kind, budget))
        case "greedy":
            name, player = f"{run}:greedy", opponents.greedy_prior_player(parts.environment, parts.model)
        case "rules":
            name, player = f"{run}:rules@{budget}", arena.make_agent(config, parts, budget, true_rules=True)
        case _:
            name, player = f"{run}@{budget}", arena.make_agent(config, parts, budget)
    return Entrant(name, player, agent.params, (kind, budget, config.network, config.search, config.targets))
