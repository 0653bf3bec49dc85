"""Measures a trained agent: python experiments/evaluate.py match --run runs/hex-5-seed0 --opponent mcts:1000

The agent searches without noise. Each command has its own flags: python experiments/evaluate.py match --help
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax

from muzero_jax.agent import load_agent
from muzero_jax.apps.commands.command_line import command
from muzero_jax.apps.commands.evaluate_flags import (
    CommandFlags,
    CompareFlags,
    ExamFlags,
    ExhaustiveFlags,
    FidelityFlags,
    GameFlags,
    MatchFlags,
    OpeningsFlags,
    OracleFlags,
    ReturnsFlags,
    RunFlags,
    TournamentFlags,
    parse_flags,
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
from muzero_jax.apps.evaluation.matches import are_for_points
from muzero_jax.apps.evaluation.players import PlayerSpec
from muzero_jax.apps.study import comparison, learning_curves
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.own.files import make_new_folder
from muzero_jax.own.trust import Trust
from muzero_jax.run import charts, compilation_cache
from muzero_jax.run.machine import count_devices

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


def main(arguments: list[str], build: Callable | None = None) -> int:
    """Runs the command; returns its exit status.

    Args:
      build: makes your own game, network or algorithm, as `algorithm.make` makes the configured one.
    """
    asked, answer = parse(arguments)
    num_devices = count_devices(asked.devices)
    if plot := getattr(asked, "plot", None):
        charts.check_path(plot)
    if isinstance(asked, GameFlags) and asked.sgf is not None:
        make_new_folder(asked.sgf, "--sgf")
    if asked.compilation_cache:
        compilation_cache.enable()
    mesh = make_mesh(num_devices)
    load = partial(
        load_agent,
        num_simulations=asked.num_simulations,
        build=build,
        board_size=asked.board_size,
        trust=Trust(all_code=asked.trust_code),
    )
    found = answer(asked, mesh, load)
    print(json.dumps(found.result) if asked.json else found.text or tables.fields(found.result), flush=True)
    if plot and found.draw:  # after printing the result, because the disk may be full
        found.draw(plot)
    return 0


def examine(a: ExamFlags, mesh, load_agent) -> Answer:
    """Judges the agent by the best judge of its game."""
    agent = load_agent(a.run)
    found = exam.examine(agent, mesh, positions=a.positions, games=a.games, seed=a.seed, say=say)
    return Answer(about(a, agent) | exam.result(found), exam.format_table(found))


def play_match(a: MatchFlags | ReturnsFlags, mesh, load_agent) -> Answer:
    """Plays a match; scores are the agent's. In a single-player game it measures returns instead."""
    if players.names_a_way_to_play(str(a.run)):
        raise ValueError(
            f"--run takes a run or an agent, and {a.run} also says how it plays, which a tournament takes: "
            f"{command('evaluate')} tournament {a.run} {a.opponent}"
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
        episodes = returns.play(environment, player, params, mesh, num_games=a.games, seed=a.seed, report=report)
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


def try_every_reply(a: ExhaustiveFlags, mesh, load_agent) -> Answer:
    """Tries every reply; results are the agent's."""
    agent = load_agent(a.run)
    player = players.searching(agent)
    say("compiling, then trying every reply ...")
    result = exhaustive.examine(agent.environment, player, agent.params, say)
    return Answer(result | about(a, agent) | {"opponent": "exhaustive", "player": player.name})


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


def judge_openings(a: OpeningsFlags, mesh, load_agent) -> Answer:
    """Compares the agent's values of Hex's opening moves with the solved ones."""
    agent = load_agent(a.run)
    say("compiling, then searching ...")
    result = openings.examine(agent)
    return Answer(about(a, agent) | result, openings.format_table(result))


def measure_fidelity(a: FidelityFlags, mesh, load_agent) -> Answer:
    """Compares the run's learned model with the ground-truth model."""
    agent = load_agent(a.run)
    say("compiling, then comparing ...")
    result = fidelity.examine(agent, num_positions=a.positions, unroll_steps=a.unroll_steps, seed=a.seed)
    draw = partial(pictures.plot_fidelity, result)
    return Answer(about(a, agent) | result, fidelity.format_table(result), draw)


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


COMMANDS: dict[str, tuple[type[CommandFlags], Callable[..., Answer]]] = {
    "exam": (ExamFlags, examine),
    "match": (MatchFlags, play_match),
    "returns": (ReturnsFlags, play_match),
    "tournament": (TournamentFlags, play_tournament),
    "oracle": (OracleFlags, ask_oracle),
    "fidelity": (FidelityFlags, measure_fidelity),
    "exhaustive": (ExhaustiveFlags, try_every_reply),
    "openings": (OpeningsFlags, judge_openings),
    "compare": (CompareFlags, compare_runs),
}


def parse(arguments: Sequence[str]) -> tuple[CommandFlags, Callable[..., Answer]]:
    """The flags of a command line, and the function that answers it; ValueError for a mistake in it."""
    name, flags = parse_flags(arguments, {name: kind for name, (kind, _) in COMMANDS.items()}, __doc__ or "")
    return flags, COMMANDS[name][1]


def about(a: RunFlags, agent) -> dict[str, Any]:
    """Which agent was measured."""
    return {"run": str(a.run), "iteration": agent.iteration}


def choose_plies(a: GameFlags, agent) -> int:
    """Random moves before each game."""
    return agent.config.evaluation.opening_plies if a.opening_plies is None else a.opening_plies


def say(line: str) -> None:
    """Prints progress to stderr, because stdout has only the result."""
    print(line, file=sys.stderr, flush=True)


def make_progress_report(what: str, interval: float = 5.0) -> Callable[[int, int], None]:
    """A function `report(done, total)` that prints progress at most every `interval` seconds."""
    said_at = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal said_at
        if time.monotonic() - said_at > interval:
            said_at = time.monotonic()
            say(f"{done} of {total} {what}")

    return report
