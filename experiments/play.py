"""Plays against a trained agent: python experiments/play.py --run runs/hex-5-seed0

In the terminal by default. `--engine` speaks the Go Text Protocol on stdin and stdout, with HexGui's dialect for Hex,
or UCI if the game is chess and the first line is `uci`; then stdout carries nothing else.
"""

import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments.command_line import report_errors
from muzero_jax import devices


@dataclass(frozen=True)
class Arguments:
    """How to play."""

    run: Path
    """run directory of the agent"""
    engine: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """speak GTP (or UCI) on stdin and stdout, for other programs"""
    notation: Literal["standard", "action"] = "standard"
    """moves as the game's players write them, or as plain action numbers; shogi has the latter only"""
    num_simulations: int | None = None
    """search budget a move; default: the run's evaluation.num_simulations. With --time-per-move, the most"""
    time_per_move: float | None = None
    """seconds a move: as many simulations (a power of two) as they allow on this machine"""
    temperature: float = 0.0
    """0 plays the best move; above, moves are drawn from the search policy, at 1 as it is"""
    seed: int = 0
    """of the moves drawn at a temperature"""
    colour: Literal["b", "w"] | None = None
    """yours, in the terminal; asked for if left out"""
    devices: int | None = None


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = tyro.cli(Arguments, args=arguments, description=__doc__)
    check(a)
    out = None
    if a.engine:
        from muzero_jax.play import protocol

        out = protocol.claim_stdout()
    devices.configure_devices(a.devices)
    position, thinker, moves = load(a)
    if out is not None:
        serve(a, position, thinker, moves, out)
    else:
        play_in_terminal(a, position, thinker, moves)
    return 0


def check(a: Arguments) -> None:
    """Raises ValueError for flags that make no sense."""
    if a.time_per_move is not None and not 0 < a.time_per_move < float("inf"):
        raise ValueError(f"--time-per-move is {a.time_per_move}, but must be positive")
    if not 0 <= a.temperature < float("inf"):
        raise ValueError(f"--temperature is {a.temperature}, but must not be negative")
    if a.seed < 0:
        raise ValueError(f"--seed is {a.seed}, but must not be negative")
    if a.engine and a.colour:
        raise ValueError("--colour is for the terminal; an engine plays the colour that it is asked for")


def load(a: Arguments):
    """The game, the agent and the notation that the flags ask for."""
    from muzero_jax import arena
    from muzero_jax.play import notation, position, thinking

    agent = arena.load_agent(a.run, a.num_simulations)
    thinker = thinking.make_thinker(
        agent,
        num_simulations=a.num_simulations or agent.config.evaluation.num_simulations,
        most_simulations=a.num_simulations or thinking.MOST_SIMULATIONS,
        temperature=a.temperature,
        seed=a.seed,
    )
    game = position.Position(agent.parts.environment)
    if a.time_per_move:
        thinker.prepare(game, a.time_per_move)
    return game, thinker, notation.make_notation(agent.parts.environment, a.notation)


def serve(a: Arguments, position, thinker, moves, out) -> None:
    """Speaks to a program until it has had enough. The first line tells UCI from GTP where both are possible."""
    from muzero_jax.play import chess_moves, gtp, protocol, uci

    lines = protocol.read_lines(sys.stdin.buffer)
    first = next(lines, "")
    rest: Iterator[str] = itertools.chain([first], lines)
    speaks_uci = position.name in chess_moves.SIZES and a.notation == "standard" and first.split()[:1] == ["uci"]
    if speaks_uci:
        uci.serve(uci.UciSession(position, thinker, moves, seconds=a.time_per_move), rest, out)
    else:
        gtp.serve(gtp.GtpSession(position, thinker, moves, seconds=a.time_per_move), rest, out)


def play_in_terminal(a: Arguments, position, thinker, moves) -> None:
    """Plays with a person until they have had enough."""
    from rich.console import Console

    from muzero_jax.play import protocol, terminal

    colour = None if a.colour is None else terminal.colour_of(a.colour, position.name)
    game = terminal.TerminalGame(position, thinker, moves, Console(), colour=colour, seconds=a.time_per_move)
    try:
        game.run(protocol.read_lines(sys.stdin.buffer))
    except KeyboardInterrupt:
        print()


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:]))
