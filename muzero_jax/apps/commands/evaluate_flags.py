"""Flags that several commands of `evaluate.py` have, and what follows from them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

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


def about(a: RunFlags, agent) -> dict[str, Any]:
    """Which agent was measured."""
    return {"run": str(a.run), "iteration": agent.iteration}


def choose_plies(a: GameFlags, agent) -> int:
    """Random moves before each game."""
    return agent.config.evaluation.opening_plies if a.opening_plies is None else a.opening_plies
