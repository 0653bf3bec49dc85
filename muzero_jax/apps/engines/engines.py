"""Other programs by name: `gtp:COMMAND`, `uci:COMMAND`, `usi:COMMAND`, `gnubg:COMMAND`, with settings after semicolons.

    gtp:gnugo --mode gtp --level 1
    gtp:mohex; param_mohex max_games 1000              settings of a GTP engine are GTP commands
    uci:fairy-stockfish; Skill Level=0; go nodes 100   settings of a UCI engine are options, or its `go` command
    gnubg:gnubg -t -q                                  settings of GNU Backgammon are its own commands

The command is not run through a shell. Whether an engine plays the game shows only when it is asked to.
"""

import os
import shlex
import shutil
from typing import NamedTuple

from muzero_jax.apps.engines.engine import Engine, EngineProcess
from muzero_jax.apps.engines.gnubg import GnubgEngine
from muzero_jax.apps.engines.gtp import GtpEngine, HexEngine
from muzero_jax.apps.engines.uci import UciEngine
from muzero_jax.games.catalogue import check_for_two, check_open, check_without_chance, game_of, make_notation
from muzero_jax.games.random_play import check_not_dealt
from muzero_jax.types import Environment

GTP = "gtp"
GNUBG = "gnubg"
PROTOCOLS = GTP, "uci", "usi", GNUBG


class EngineSpec(NamedTuple):
    """A parsed engine name."""

    name: str  # as the user wrote it
    protocol: str
    command: tuple[str, ...]
    settings: tuple[str, ...]


def parse(text: str) -> EngineSpec | None:
    """The engine that `text` names, or None if it names none; raises ValueError if that one cannot be started."""
    protocol, _, rest = text.partition(":")
    if protocol not in PROTOCOLS or protocol == text:
        return None
    line, *settings = (part.strip() for part in rest.split(";"))
    try:
        command = [os.path.expanduser(word) for word in shlex.split(line)]
    except ValueError as error:
        raise ValueError(f"the command of {text!r} cannot be read: {str(error).lower()}") from None
    if not command:
        raise ValueError(f"{text!r} names no program; write its command after the colon, as in {protocol}:PROGRAM")
    if shutil.which(command[0]) is None:
        where = "give its full path (Debian's games lie in /usr/games)"
        raise ValueError(f"there is no program {command[0]!r} to play as {text!r}; {where}")
    return EngineSpec(text, protocol, tuple(command), tuple(filter(None, settings)))


def check(spec: EngineSpec, environment: Environment) -> None:
    """Raises ValueError if no engine of this protocol can play the game."""
    check_for_two(environment, "a match with an engine needs")
    check_open(environment, "a match with an engine")
    game = game_of(environment)
    spoken = {game.protocol}
    if game.protocol != GNUBG:
        check_without_chance(environment, "a match with an engine")
        check_not_dealt(environment, "a match with an engine")
        spoken.add(GTP)
    if spec.protocol not in spoken:
        named = f"name the engine as {game.protocol or GTP}:COMMAND"
        raise ValueError(f"{spec.protocol.upper()} has no {game.name}; {named}")


def start(spec: EngineSpec, environment: Environment, *, seconds: float) -> Engine:
    """Starts the engine for games of `environment`, and waits until it has accepted its settings.

    Raises EngineError if that fails; the process is then ended.
    """
    process = EngineProcess(spec.command, spec.name, seconds=seconds, in_order=spec.protocol == GNUBG)
    notation = make_notation(environment)
    game = game_of(environment)
    try:
        if spec.protocol == GTP:
            kind = GtpEngine if notation.swap is None else HexEngine
            komi = (game.points and game.points.komi) or None
            started = kind(process, len(notation.columns), len(notation.rows), komi)
        elif spec.protocol == GNUBG:
            started = GnubgEngine(process, environment)
        else:
            started = UciEngine(process, spec.protocol, game.variant)
        started.greet(spec.settings)
    except BaseException:
        process.close(politely=False)
        raise
    return started
