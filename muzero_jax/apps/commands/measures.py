"""The commands of `evaluate.py`: the flags of each, and below them the function that answers it.

A new one is both, and a row in the table at the end, from which the parser, the help and the page of commands are made.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import jax

from muzero_jax.agent import policy_head_search
from muzero_jax.apps.commands.command_line import command
from muzero_jax.apps.commands.evaluate_flags import (
    CommandFlags,
    Count,
    GameFlags,
    Players,
    RunFlags,
    about,
    choose_plies,
)
from muzero_jax.apps.evaluation import (
    engine_matches,
    exam,
    exhaustive,
    fidelity,
    openings,
    oracle_evaluation,
    pictures,
    players,
    returns,
    tables,
    tournament,
)
from muzero_jax.apps.evaluation.engine_matches import Conditions
from muzero_jax.apps.evaluation.exploitability import MOST_STATES, BestResponses
from muzero_jax.apps.evaluation.matches import are_for_points
from muzero_jax.apps.evaluation.players import PlayerSpec
from muzero_jax.apps.study import comparison, learning_curves
from muzero_jax.apps.study.comparison import AXES, Axis
from muzero_jax.config.fields import Seed, Simulations
from muzero_jax.run import compilation_cache

COMPARED_POSITIONS = 200
"""Positions on which `compare` judges runs; in tic-tac-toe it takes all."""

IN_TABLE = ("wins", "draws", "losses", "score", "ci95", "mean_points", "mean_points_ci95")
BY_SIGN = ("score_as_first", "score_as_second")
"""Figures of a match that are not printed below the table; in a game for points also those that count wins."""


class Answer(NamedTuple):
    """The result of a command."""

    result: dict[str, Any]  # as plain numbers
    text: str | None = None  # as printed; None: one line a field
    draw: Callable[[Path], None] | None = None  # into the file of --plot


@dataclass(frozen=True, kw_only=True)
class ExamFlags(RunFlags):
    """The agent's strength by the best judge of its game: a solver if there is one, else opponents without training."""

    positions: Count = 300
    """most positions to judge, from random games, so that every agent of a game meets the same ones; tic-tac-toe: all;
    backgammon: turns of the agent's own games"""
    games: Count = 64
    """games against each opponent if the game has no better judge, or episodes of a single-player game"""
    seed: Seed = 0
    """seed of positions, of openings and of chance: 0 to 2^32 - 1"""


def examine(a: ExamFlags, mesh, load_agent) -> Answer:
    """Judges the agent by the best judge of its game."""
    agent = load_agent(a.run)
    found = exam.examine(agent, mesh, positions=a.positions, games=a.games, seed=a.seed, say=say)
    return Answer(about(a, agent) | {"findings": [each._asdict() for each in found]}, exam.format_table(found))


@dataclass(frozen=True, kw_only=True)
class MatchFlags(GameFlags, RunFlags):
    """Games against one opponent: colours balanced, every random opening played from both sides."""

    opponent: str = "random"
    """random, greedy and head (the likeliest move of the run's policy head, or one drawn from it), rules:N (its network
    searching with the ground-truth model), sampled:N (moves sampled from its search's policy), mcts:N (rollout MCTS
    with N simulations), expectimax:N, highest-gain and pip-count (games with dice), another agent of the same game
    (RUN, RUN@N, RUN:rules@N, RUN:sampled@N, RUN:greedy, RUN:head, agent:NAME), or another program ("gtp:COMMAND",
    "uci:COMMAND", "usi:COMMAND", "gnubg:COMMAND"). docs/commands.md explains all names"""


@dataclass(frozen=True, kw_only=True)
class ReturnsFlags(RunFlags):
    """The mean return of a run's agent in a single-player game, with its interval, next to another player's."""

    games: Count = 200
    """episodes of each player, rounded up to a multiple of the number of devices"""
    opponent: str = "random"
    """the other player, named as in a match, but not mcts:N or another program. With --num-simulations all runs whose
    names give no number search equally much"""
    seed: Seed = 0
    """seed of openings, of chance, and of moves drawn at random: 0 to 2^32 - 1"""
    max_moves: Count | None = None
    """moves after which an episode is cut off, with the rewards that it has; by default the game ends it"""


def play_match(a: MatchFlags | ReturnsFlags, mesh, load_agent) -> Answer:
    """Plays a match; scores are the agent's. In a single-player game it measures returns instead."""
    if players.names_a_way_to_play(str(a.run)):
        raise ValueError(
            f"--run takes a run or an agent, and {a.run} also says how it plays; name it as --opponent instead, or in "
            f"a two-player game as a player of a tournament ({command('evaluate')} tournament {a.run} ...)"
        )
    agent = load_agent(a.run)
    rival = players.load(players.parse(a.opponent), agent, load_agent)
    if isinstance(a, ReturnsFlags) or agent.environment.num_players == 1:
        return measure_returns(a, mesh, agent, rival)
    host = players.enter(PlayerSpec("agent"), agent)
    plies = choose_plies(a, agent)
    entrants = (agent.environment, host, rival, mesh)
    conditions = engine_conditions(a, [rival])
    match = engine_matches.make_match(*entrants, num_games=a.games, opening_plies=plies, conditions=conditions)
    if isinstance(match, engine_matches.EngineMatch):
        say("starting the engine, compiling our search, then playing ...")
    else:
        start = time.monotonic()
        say(f"compiling the match ({compilation_cache.HOW_LONG}) ...")
        match.compile(agent.params, rival.params)
        say(f"compiled in {time.monotonic() - start:.1f} s; playing ...")
    report = make_progress_report("games finished")
    result = match(agent.params, rival.params, jax.random.key(a.seed), report)
    hidden = IN_TABLE + BY_SIGN if are_for_points([result]) else IN_TABLE
    rest = {name: value for name, value in result.items() if name not in hidden}
    rest |= about(a, agent) | {"player": host.player.name}
    note = f"\n{tables.REPEATED}" if result["games"] < a.games else ""
    text = f"{tables.strength({a.opponent: result})}{note}\n\n{tables.fields(rest)}"
    return Answer(result | rest | {"opponent": a.opponent}, text)


def measure_returns(a: MatchFlags | ReturnsFlags, mesh, agent, rival) -> Answer:
    """The agent's returns in a single-player game, and those of another player of the same game."""
    environment = agent.environment

    def measure(player, params):
        say(f"{player.name}: compiling, then playing {a.games} episodes ...")
        report = make_progress_report("episodes finished")
        limits = {"num_games": a.games, "seed": a.seed, "max_moves": getattr(a, "max_moves", None)}
        episodes = returns.play(environment, player, params, mesh, **limits, report=report)
        return returns.summarise(environment, episodes)

    player = players.searching(agent)
    result = measure(player, agent.params)
    other = measure(rival.player, rival.params)
    rest = about(a, agent) | {"player": player.name, "opponent": a.opponent}
    text = returns.format_table({player.name: result, a.opponent: other})
    return Answer(result | rest | {"opponent_result": other}, text)


def engine_conditions(a: GameFlags, entrants):
    """The conditions under which other programs play."""
    if a.sgf is not None and not any(entrant.is_engine for entrant in entrants):
        raise ValueError("--sgf records only games against another program (gtp:COMMAND, uci:COMMAND); leave it out")
    return Conditions(a.engine_seconds, a.engine_processes, a.sgf, say)


@dataclass(frozen=True, kw_only=True)
class ExploitabilityFlags(RunFlags):
    """What a best response wins against the policy head, exactly, in a game with hidden information."""

    most_states: Count = MOST_STATES
    """states of a game beyond which it is refused; the 283,859 of Dark Hex on 3x3 take a minute"""


def find_best_responses(a: ExploitabilityFlags, mesh, load_agent) -> Answer:
    """Finds a best response in each seat."""
    agent = load_agent(a.run)
    say("compiling, then walking through the whole game, once for each seat ...")
    search = policy_head_search(agent.model)
    reports = {what: make_progress_report(what) for what in ("states", "information states")}
    judge = BestResponses(
        agent.environment, search, most_states=a.most_states, report=lambda what, count: reports[what](count)
    )
    found = judge.examine(agent.params)
    return Answer(found.result() | about(a, agent), found.text())


@dataclass(frozen=True, kw_only=True)
class ExhaustiveFlags(RunFlags):
    """Plays the agent against every possible sequence of replies, with both colours; for tiny games."""


def try_every_reply(a: ExhaustiveFlags, mesh, load_agent) -> Answer:
    """Tries every reply; results are the agent's."""
    agent = load_agent(a.run)
    player = players.searching(agent)
    say("compiling, then trying every reply ...")
    result = exhaustive.examine(agent.environment, player, agent.params, say)
    return Answer(result | about(a, agent) | {"opponent": "exhaustive", "player": player.name})


@dataclass(frozen=True, kw_only=True)
class TournamentFlags(GameFlags):
    """A round robin with a cross table and an Elo scale."""

    players: Annotated[tuple[str, ...], Players]
    """players, named like the opponent of a match; at least one must be a run: RUN (a run directory), RUN/versions/N
    (that run after iteration N), RUN/versions (all of its versions), agent:NAME (a trained agent)"""
    anchor: str | None = None
    """the player whose Elo is set to 0, named as in the table; default: random if it plays, else the first player"""
    plot: Path | None = None
    """draw the table into this file (.png, .svg, .pdf)"""


def play_tournament(a: TournamentFlags, mesh, load_agent) -> Answer:
    """Plays a round robin."""
    field = tournament.enter(a.players, load_agent)
    say("compiling and playing the first match ...")
    result = tournament.play(
        field,
        mesh,
        num_games=a.games,
        opening_plies=choose_plies(a, field.host),
        seed=a.seed,
        anchor=a.anchor,
        conditions=engine_conditions(a, field.entrants),
        report=make_progress_report("matches played"),
    )
    return Answer(result, tournament.format_table(result), partial(pictures.plot_tournament, result))


@dataclass(frozen=True, kw_only=True)
class OpeningsFlags(RunFlags):
    """Opening values: the agent's value of every first move of Hex, and how many are right (solved from 3x3 to 7x7)."""


def judge_openings(a: OpeningsFlags, mesh, load_agent) -> Answer:
    """Compares the agent's values of Hex's opening moves with the solved ones."""
    agent = load_agent(a.run)
    say("compiling, then searching ...")
    result = openings.examine(agent)
    return Answer(about(a, agent) | result, openings.format_table(result))


@dataclass(frozen=True, kw_only=True)
class FidelityFlags(RunFlags):
    """How far the learned model drifts from the ground-truth model, depth by depth and in the search tree."""

    unroll_steps: Count = 8
    """greatest depth, in moves"""
    positions: Count = 500
    """most start positions, taken from the agent's own games"""
    seed: Seed = 0
    """seed of the start positions: 0 to 2^32 - 1"""
    plot: Path | None = None
    """draw the drift into this file (.png, .svg, .pdf)"""


def measure_fidelity(a: FidelityFlags, mesh, load_agent) -> Answer:
    """Compares the run's learned model with the ground-truth model."""
    agent = load_agent(a.run)
    say("compiling, then comparing ...")
    result = fidelity.examine(agent, num_positions=a.positions, unroll_steps=a.unroll_steps, seed=a.seed)
    draw = partial(pictures.plot_fidelity, result)
    return Answer(about(a, agent) | result, fidelity.format_table(result), draw)


@dataclass(frozen=True, kw_only=True)
class OracleFlags(RunFlags):
    """Moves judged by exact play (tic-tac-toe, Connect Four after 16 moves, Hex up to 5x5)."""

    player: str = "agent"
    """whose moves to judge: agent (its policy head, and its search at every budget), or a player as in a tournament"""
    positions: Count = 500
    """most positions to judge, half from random games and half from the agent's; in tic-tac-toe all are judged"""
    budgets: tuple[Simulations, ...] | None = None
    """simulations per move of the agent's searches; default: num-simulations if given, else 16 64 256"""
    seed: Seed = 0
    """seed of the positions that are drawn: 0 to 2^32 - 1"""


def ask_oracle(a: OracleFlags, mesh, load_agent) -> Answer:
    """Judges the agent's moves, or other players', by exact play."""
    if a.budgets is not None and a.num_simulations is not None:
        raise ValueError("give --budgets or --num-simulations, not both: the second is one budget")
    agent = load_agent(a.run)
    if a.player == "agent":
        default = oracle_evaluation.BUDGETS if a.num_simulations is None else (a.num_simulations,)
        candidates = oracle_evaluation.agent_candidates(agent, default if a.budgets is None else a.budgets)
    else:
        specs = players.parse_all(a.player, others="agent, ")
        candidates = [oracle_evaluation.named_candidate(s, agent, load_agent) for s in specs]
    report = make_progress_report("positions solved")
    result = oracle_evaluation.examine(
        agent, candidates, num_positions=a.positions, seed=a.seed, report=report, say=say
    )
    result |= about(a, agent)
    return Answer(result, oracle_evaluation.format_table(result))


@dataclass(frozen=True, kw_only=True)
class CompareFlags(CommandFlags):
    """Final scores and learning curves of several runs; runs that differ only in their seed form a group."""

    runs: Annotated[tuple[Path, ...], Players]
    """run directories"""
    metric: tuple[str, ...] = ()
    """what to compare: the score against an opponent of the runs (mcts:100), any key of metrics.jsonl (train/loss,
    openings_right), or winning-moves (the winning-move accuracy of the final weights, in tic-tac-toe, Connect Four and
    Hex up to 5x5); default: the final matches, or the mean return in single-player games"""
    axis: tuple[Axis, ...] = AXES
    """horizontal axes of the curves"""
    plot: Path | None = None
    """draw the learning curves into this file (.png, .svg, .pdf)"""


def compare_runs(a: CompareFlags, mesh, load_agent) -> Answer:
    """Compares groups of runs by what they logged, or by the winning-move accuracy, which is measured here."""
    judged = None
    if comparison.WINNING_MOVES in a.metric:
        say("solving positions, then judging the runs on them ...")
        found = oracle_evaluation.winning_move_accuracies(
            [load_agent(run) for run in a.runs],
            num_positions=COMPARED_POSITIONS,
            seed=0,
            report=make_progress_report("positions solved"),
        )
        judged = dict(zip(a.runs, found, strict=True))
    points = comparison.read_runs(a.runs, a.metric, judged)
    lacking = ", ".join(str(run) for run in a.runs if str(run) not in {point.run for point in points})
    if not points:
        raise ValueError(
            f"no scores of {' '.join(a.metric) or 'strength'} yet in {lacking}; train these runs for longer"
        )
    if lacking:
        say(f"left out, because they have no scores yet: {lacking}")

    def draw(plot: Path) -> None:
        wanted = [metric for metric in a.metric if metric != comparison.WINNING_MOVES]
        learning_curves.plot(comparison.read_runs(a.runs, wanted), plot, wanted=wanted, axes=a.axis)

    return Answer(comparison.result(points), comparison.report(points), draw)


def say(line: str) -> None:
    """Prints progress to stderr, because stdout has only the result."""
    print(line, file=sys.stderr, flush=True)


def make_progress_report(what: str, interval: float = 5.0) -> Callable[..., None]:
    """A function `report(done, total)` that prints progress at most every `interval` seconds."""
    said_at = time.monotonic()

    def report(done: int, total: int | None = None) -> None:
        nonlocal said_at
        if time.monotonic() - said_at > interval:
            said_at = time.monotonic()
            say(f"{done:,} {what} so far" if total is None else f"{done} of {total} {what}")

    return report


COMMANDS: dict[str, tuple[type[CommandFlags], Callable[..., Answer]]] = {
    "exam": (ExamFlags, examine),
    "match": (MatchFlags, play_match),
    "returns": (ReturnsFlags, play_match),
    "tournament": (TournamentFlags, play_tournament),
    "oracle": (OracleFlags, ask_oracle),
    "fidelity": (FidelityFlags, measure_fidelity),
    "exploitability": (ExploitabilityFlags, find_best_responses),
    "exhaustive": (ExhaustiveFlags, try_every_reply),
    "openings": (OpeningsFlags, judge_openings),
    "compare": (CompareFlags, compare_runs),
}
