"""The commands of `evaluate.py` with their flags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from muzero_jax.apps.commands import parser
from muzero_jax.apps.study.comparison import AXES, Axis
from muzero_jax.config.fields import Device, Fact, PositiveFloat, Seed, Simulations

Count = Annotated[int, Meta(ge=1, le=1_000_000)]
Players = Fact(positional=True)


@dataclass(frozen=True, kw_only=True)
class CommandFlags:
    """The flags of every command."""

    num_simulations: Simulations | None = None
    """simulations per move for each run whose name gives no number; default: its own evaluation.num_simulations"""
    board_size: int | None = None
    """board size, for runs whose network fits every board; default: the size that they were trained on"""
    json: bool = False
    """print the result as one JSON object"""
    trust_code: bool = False
    """run the Python files that somebody else's run or agent names; read these files first"""
    device: Device = "auto"
    """kind of device to run on; auto: the best that JAX finds"""
    devices: int | None = None
    """number of devices to use; default: every CPU core, or every accelerator"""
    compilation_cache: bool = True
    """keep compiled programs in your cache folder, so that the same command starts in seconds the next time"""


@dataclass(frozen=True, kw_only=True)
class RunFlags(CommandFlags):
    """The flags of commands that measure one run."""

    run: Path
    """the agent: a run directory, RUN/versions/N (that run after iteration N), or agent:NAME (an included agent)"""


@dataclass(frozen=True, kw_only=True)
class GameFlags(CommandFlags):
    """The flags of commands that play games."""

    games: Count = 256
    """games of the match, or of each pair in a tournament, rounded up to a multiple of two games per device. Repeated
    games do not count if the game has no dice and no player is random, mcts:N or sampled:N"""
    opening_plies: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    """random moves at the start of each game; default: the (first) run's evaluation.opening_plies"""
    seed: Seed = 0
    """seed of openings, and of moves drawn at random: 0 to 2^32 - 1"""
    engine_seconds: PositiveFloat = 60.0
    """seconds that another program (gtp:COMMAND, uci:COMMAND) may take for a move; if it takes more, the match ends"""
    engine_processes: Count = 1
    """number of games played at once against another program, each with its own process"""
    sgf: Path | None = None
    """new folder for SGF files of all games against another program"""


@dataclass(frozen=True, kw_only=True)
class MatchFlags(GameFlags, RunFlags):
    """Games against one opponent: colours balanced, every random opening played from both sides."""

    opponent: str = "random"
    """random, greedy (the run's policy head), rules:N (its network searching with the ground-truth model), sampled:N
    (moves sampled from its search's policy), mcts:N (rollout MCTS with N simulations), expectimax:N, highest-gain and
    pip-count (games with dice), another agent of the same game (RUN, RUN@N, RUN:rules@N, RUN:sampled@N, RUN:greedy,
    agent:NAME), or another program ("gtp:COMMAND", "uci:COMMAND", "usi:COMMAND", "gnubg:COMMAND"). docs/commands.md
    explains all names"""


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


@dataclass(frozen=True, kw_only=True)
class ExhaustiveFlags(RunFlags):
    """Plays the agent against every possible sequence of replies, with both colours; for tiny games."""


@dataclass(frozen=True, kw_only=True)
class OpeningsFlags(RunFlags):
    """Opening values: the agent's value of every first move of Hex, and how many are right (solved from 3x3 to 7x7)."""


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


def parse_flags(
    arguments: Sequence[str], kinds: Mapping[str, type[CommandFlags]], description: str
) -> tuple[str, CommandFlags]:
    """The command that the first word names, and its flags, of the class in `kinds`; `--help` prints and exits.

    Raises ValueError for an unknown command.
    """
    name, *others = arguments or [parser.HELP]
    if name in ("-h", parser.HELP):
        lines = (f"  {name:<12}{(kind.__doc__ or '').splitlines()[0]}" for name, kind in kinds.items())
        print("\n".join([description.strip(), "", *lines, "", f"COMMAND {parser.HELP} shows the flags."]))
        raise SystemExit(0)
    if name not in kinds:
        raise ValueError(f"{name!r} is no command of evaluate.py; choose {', '.join(kinds)}")
    return name, parser.read(kinds[name], others)
