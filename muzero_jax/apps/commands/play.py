"""Plays against a trained agent: python experiments/play.py --agent hex_5x5 --web

You play in the terminal by default. `--web` serves a board for the browser at 127.0.0.1. `--engine` speaks the Go Text
Protocol on stdin and stdout (with HexGui's commands for Hex), or UCI if the game is chess and the first line is `uci`;
stdout then carries nothing else. `--tree out.svg` draws the search tree of a position (the opening, or after
`--moves`), and `--film out.svg` draws a game that the agent plays against itself.
"""

import itertools
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import jax
from msgspec import Meta
from rich.console import Console

from muzero_jax.agent import Agent, load_agent
from muzero_jax.apps.commands import parser
from muzero_jax.apps.engines import gtp, protocol, uci
from muzero_jax.apps.play import film, placement, solo, terminal, thinking, tree_picture, web_server
from muzero_jax.apps.play.position import opening_of
from muzero_jax.apps.play.web_session import WebGame
from muzero_jax.config.config import AGENT_PREFIX
from muzero_jax.config.fields import Device, NotNegativeFloat, PositiveFloat, PositiveInt, Seed
from muzero_jax.games.catalogue import make_notation
from muzero_jax.own.files import check_writable, write_whole
from muzero_jax.own.trust import Trust
from muzero_jax.run import compilation_cache
from muzero_jax.storage import agent_file


@dataclass(frozen=True)
class PlayFlags:
    """How to play."""

    run: Path | None = None
    """run directory of the agent, or RUN/versions/N for the agent after iteration N"""
    agent: str | None = None
    """name of an included agent, or a .safetensors file; instead of --run"""
    board_size: int | None = None
    """board size, if the agent's network fits every board; default: the size that it was trained on"""
    engine: bool = False
    """speak GTP (or UCI) on stdin and stdout, so that other programs can use the agent"""
    notation: Literal["standard", "action"] = "standard"
    """standard: write moves as the game's players do; action: write action numbers"""
    num_simulations: Annotated[int, Meta(ge=1, le=thinking.MOST_SIMULATIONS)] | None = None
    """simulations per move; default: the agent's own evaluation.num_simulations. With --time-per-move: the maximum"""
    time_per_move: PositiveFloat | None = None
    """seconds per move: the agent makes as many simulations (a power of two) as this machine manages in that time"""
    temperature: NotNegativeFloat | None = None
    """0: play the best move; 1: sample moves from the search policy; larger: more at random, smaller: less. Default: 0,
    or 1 in a game with hidden information"""
    seed: Seed = 0
    """seed of random moves and of chance; with 0 the dice differ each time"""
    colour: str | None = None
    """your side in the terminal, by name or initial (black or b, X, red); default: you are asked"""
    web: bool = False
    """serve a board for the browser on this machine, until Ctrl-C"""
    port: Annotated[int, Meta(ge=0, le=65535)] = 8000
    """port for --web; 0: any free port"""
    tree: Path | None = None
    """draw a search tree into this SVG file"""
    film: Path | None = None
    """draw a game that the agent plays against itself into this SVG file"""
    film_pictures: PositiveInt = 300
    """most pictures that --film draws; of a longer game it shows this many moves"""
    moves: str = ""
    """moves that lead to the position where --tree or --film begins ("a1 b2"), in the game's notation"""
    depth: PositiveInt = 4
    """depth of the tree that --tree draws, in moves"""
    width: PositiveInt = 4
    """moves that --tree draws at each node: the most visited ones"""
    trust_code: bool = False
    """run the Python files that somebody else's run or agent names; read these files first"""
    device: Device = "auto"
    """kind of device to run on; auto: an accelerator or the CPU, whichever searches faster"""
    devices: int | None = None
    """number of devices to start; a search uses one of them"""
    compilation_cache: bool = True
    """keep compiled programs in your cache folder, so that the next start takes seconds"""


def main(arguments: list[str], build: Callable | None = None) -> int:
    """Runs the command; returns its exit status.

    Args:
      build: makes your own game, network or algorithm, as `make_algorithm` makes the configured one.
    """
    a = parser.read(PlayFlags, arguments, __doc__)
    check(a)
    out = protocol.claim_stdout() if a.engine else None
    if a.compilation_cache:
        compilation_cache.enable()
    position, thinker, moves = load(a, build)
    check_game(a, position)
    if out is not None:
        serve(a, position, thinker, moves, out, lambda size: load(replace(a, board_size=size), build))
    elif a.web:
        serve_page(a, position, thinker, moves)
    elif a.tree or a.film:
        draw(a, position, thinker, moves)
    else:
        play_in_terminal(a, position, thinker, moves)
    return 0


def check(a: PlayFlags) -> None:
    """Raises ValueError for flags that contradict each other, and for files that cannot be written."""
    if a.run and a.agent:
        raise ValueError("--run and --agent both name who plays; leave one of them out")
    if a.run is None and a.agent is None:
        known = ", ".join(agent_file.shipped())
        raise ValueError(f"name one to play against: --agent NAME ({known}) or --run DIRECTORY")
    if a.agent and a.agent not in agent_file.shipped() and Path(a.agent).is_dir():
        raise ValueError(f"{a.agent} is a folder, and --agent takes a name or a file; give a run as --run {a.agent}")
    if a.engine + a.web + (a.tree is not None) + (a.film is not None) > 1:
        raise ValueError("choose one of --engine, --web, --tree and --film")
    if a.moves and not (a.tree or a.film):
        raise ValueError("--moves is for --tree and --film, which begin after them")
    if a.colour and (a.engine or a.web or a.tree or a.film):
        raise ValueError("--colour is for the terminal; the page asks for it, and otherwise nobody plays")
    if a.time_per_move and a.web:
        raise ValueError("--time-per-move is not for --web, whose page has a choice of simulations; leave it out")
    for flag, path in (("--tree", a.tree), ("--film", a.film)):
        if path and path.suffix.lower() != ".svg":
            raise ValueError(f"{flag} draws SVG: name a file that ends in .svg, not {path.name}")
        if path:
            check_writable(path, flag)


def check_game(a: PlayFlags, position) -> None:
    """Raises ValueError for a way to play that the game does not have."""
    if position.environment.num_players == 1 and (a.engine or a.colour):
        raise ValueError(f"{position.name} is a single-player game; leave out --engine and --colour")
    if position.game.hidden and a.engine:
        raise ValueError(f"{position.name} hides something from each player, which GTP would show; leave out --engine")
    if position.dice is not None and a.engine:
        raise ValueError(f"{position.name} has chance or a deal, for which GTP has no command; play it in the terminal")


def load(a: PlayFlags, build: Callable | None = None):
    """The game, the agent and the notation that the flags ask for."""
    path = a.run or Path(f"{AGENT_PREFIX}{(a.agent or '').removeprefix(AGENT_PREFIX)}")
    trust = Trust(all_code=a.trust_code)
    agent = load_agent(path, a.num_simulations, build, a.board_size, trust)
    game, thinker = seat(a, agent)
    return game, thinker, make_notation(agent.environment, a.notation)


def seat(a: PlayFlags, agent: Agent):
    """The game and the agent, on the device that `--device` names; for auto, on the one that searches fastest here."""

    def on(device):
        thinker = thinking.make_thinker(
            agent._replace(params=jax.device_put(agent.params, device)),
            num_simulations=agent.num_simulations,
            most_simulations=a.num_simulations or thinking.MOST_SIMULATIONS,
            temperature=a.temperature,
            seed=a.seed,
        )
        return opening_of(agent.environment, a.seed or secrets.randbelow(2**32)), thinker

    def search(seated):
        game, thinker = seated
        budget = agent.num_simulations
        thinker.search(game, min(thinking.FIRST_BUDGET, budget) if a.time_per_move else budget)

    # --tree needs one search, and to measure the devices would take several.
    is_measured = a.device == "auto" and not (a.tree or a.film)
    choice = placement.candidates() if is_measured else jax.devices()[:1]
    return placement.place(on, search, choice, lambda line: print(line, file=sys.stderr, flush=True))


def serve(a: PlayFlags, position, thinker, moves, out, resize: Callable) -> None:
    """Speaks to a program until it quits. If the game has both protocols, the first line tells UCI from GTP."""
    if a.time_per_move:
        thinker.prepare(position, a.time_per_move)
    lines = protocol.read_lines(sys.stdin.buffer)
    first = next(lines, "")
    speaks_uci = position.game.read_fen and a.notation == "standard" and first.split()[:1] == ["uci"]
    kind = uci.UciSession if speaks_uci else partial(gtp.GtpSession, resize=resize)
    kind(position, thinker, moves, seconds=a.time_per_move).serve(itertools.chain([first], lines), out)


def serve_page(a: PlayFlags, position, thinker, moves) -> None:
    """Serves the board in the browser until Ctrl-C."""
    game = WebGame(position, thinker, moves)
    listener = web_server.listen(a.port)
    print(f"compiling the search ({compilation_cache.HOW_LONG}) ...", flush=True)
    thinker.prepare(position)
    print(f"play at http://{web_server.HOST}:{listener.getsockname()[1]} (Ctrl-C ends)", flush=True)
    try:
        web_server.make_server(game).run(sockets=[listener])
    except KeyboardInterrupt:
        print()


def draw(a: PlayFlags, position, thinker, moves) -> None:
    """Draws the search tree after --moves, or the game that follows, into a file."""
    for text in a.moves.split():
        try:
            position = position.play(moves.read(position.state, text))
        except ValueError as error:
            raise ValueError(f"--moves: {text} is move {len(position.plies) + 1}: {error}") from None
    analyse = partial(thinker.analyse, seconds=a.time_per_move)
    if a.tree:
        found = analyse(position)
        write_whole(a.tree, tree_picture.picture(found, position, moves, depth=a.depth, width=a.width).svg)
    if a.film:
        write_whole(a.film, film.film(analyse, position, moves, a.film_pictures).svg)
    print(f"drew {a.tree or a.film}")


def play_in_terminal(a: PlayFlags, position, thinker, moves) -> None:
    """Plays with a person until they quit."""
    colour = None if a.colour is None else terminal.colour_of(a.colour, position)
    if a.colour is not None and colour is None:
        raise ValueError(f"--colour is {a.colour}, but must be {' or '.join(position.game.view.colours)}")
    print(f"compiling the search ({compilation_cache.HOW_LONG}) ...", flush=True)
    thinker.prepare(position, a.time_per_move)
    kind = solo.SoloGame if position.environment.num_players == 1 else terminal.TerminalGame
    game = kind(position, thinker, moves, Console(), colour=colour, seconds=a.time_per_move)
    try:
        game.run(protocol.read_lines(sys.stdin.buffer))
    except KeyboardInterrupt:
        print()
