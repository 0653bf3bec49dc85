"""The catalogue: all games by name. What is true of one game stands in that game's file."""

import difflib

import jax
import jax.numpy as jnp
import pgx

from muzero_jax.games import outside
from muzero_jax.games.backgammon import BACKGAMMON
from muzero_jax.games.chess import CHESS, GARDNER_CHESS
from muzero_jax.games.connect_four import CONNECT_FOUR
from muzero_jax.games.game import Game
from muzero_jax.games.game_2048 import GAME_2048
from muzero_jax.games.go import GO_9X9, GO_19X19
from muzero_jax.games.hex import HEX
from muzero_jax.games.liars_dice import LIARS_DICE, LIARS_DICE_2
from muzero_jax.games.minatar import MINATAR, MINATAR_HIDDEN
from muzero_jax.games.notation import ACTION, STANDARD, Notation, numbers, of_page
from muzero_jax.games.othello import OTHELLO
from muzero_jax.games.phantom import PHANTOM_GAMES
from muzero_jax.games.poker import KUHN_POKER, LEDUC_HOLDEM
from muzero_jax.games.shogi import ANIMAL_SHOGI, SHOGI
from muzero_jax.games.tic_tac_toe import TIC_TAC_TOE
from muzero_jax.own.faults import Fault, shown
from muzero_jax.types import Environment

_OF_STONES = TIC_TAC_TOE, CONNECT_FOUR, OTHELLO, HEX, GO_9X9, GO_19X19
_OTHERS = CHESS, GARDNER_CHESS, ANIMAL_SHOGI, SHOGI, BACKGAMMON, GAME_2048, *MINATAR
_HIDDEN = KUHN_POKER, LEDUC_HOLDEM, LIARS_DICE, LIARS_DICE_2, *PHANTOM_GAMES
GAMES: dict[str, Game] = {game.name: game for game in (*_OF_STONES, *_OTHERS, *_HIDDEN)}
_VIEWS = {game.name: game for game in MINATAR_HIDDEN}
"""Games with pgx's own observation, which `find` knows but lists of games leave out."""


def find(name: str) -> Game:
    """The game called `name`; ValueError if there is none."""
    if game := GAMES.get(name) or _VIEWS.get(name):
        return game
    if outside.is_outside(name):
        return outside.find(name)
    others = f"or one of another library ({', '.join(f'{library}:list' for library in outside.LIBRARIES)})"
    choices = f"choose one of {', '.join(GAMES)}, {others}."
    if name in pgx.available_envs():
        reason = "is a game of pgx that is not supported, because more than two play"
        raise ValueError(f"{name!r} {reason}; {choices}")
    closest = difflib.get_close_matches(name.lower().replace("-", "_"), GAMES, n=1, cutoff=0.0)[0]
    raise ValueError(f"There is no game {shown(name)!r} (did you mean {closest!r}?); {choices}")


def game_of(environment: Environment) -> Game:
    """The `Game` of an environment; of one that a program made without it, a `Game` with all defaults."""
    return environment.game or Game(environment.name, environment.name)


def check_players(environment: Environment) -> None:
    """Raises Fault unless one or two play: the sign of `discount` and of values knows only two sides."""
    if environment.num_players not in (1, 2):
        players = environment.num_players
        raise Fault(f"{environment.name} is a game for {players} players, but only one or two can be trained")


def check_for_two(environment: Environment, what: str) -> None:
    """Raises ValueError if this is a single-player game; `what`, say "a match needs", begins what needs two players."""
    if environment.num_players != 2:
        raise ValueError(
            f"{environment.name} is a single-player game, and {what} two; evaluate.py returns "
            "measures its agent, and muzero_jax.load(RUN).analyse(state) asks it"
        )


def hides(environment: Environment) -> bool:
    """Whether the game has hidden information (`Game.hidden`)."""
    return game_of(environment).hidden


def check_open(environment: Environment, what: str) -> None:
    """Raises ValueError, saying that `what` would use hidden information, in a game that has it."""
    if hides(environment):
        raise ValueError(
            f"{environment.name} hides something from each player, and {what} would use it; an agent's policy head "
            "(RUN:head), random and evaluate.py exploitability do not (docs/hidden-information.md)"
        )


def check_without_chance(environment: Environment, what: str) -> None:
    """Raises ValueError, saying that `what` is for games without chance, if a move of this one needs a key."""
    if needs_key(environment):
        raise ValueError(f"{what} is for games without chance, and {environment.name} has it; play a match instead")


def needs_key(environment: Environment) -> bool:
    """Whether a move needs a random key, because the rules have chance, listed or not."""
    if environment.chance is not None:
        return True
    state = jax.eval_shape(environment.init, jax.random.key(0))
    try:
        jax.eval_shape(lambda state: environment.move(state, jnp.int32(0), None), state)
    except Exception:  # rules may raise anything without a key
        return True
    return False


def make_notation(environment: Environment, kind: str = STANDARD) -> Notation:
    """How moves of an environment are written; `kind` is STANDARD or ACTION."""
    game = game_of(environment)
    shape = (0, 0) if environment.board is None else environment.board.shape
    notation = (game.notation or of_page(game.view.page))(shape, environment.num_actions)
    if kind == ACTION:
        write, read = numbers(environment.num_actions)
        return notation._replace(write=write, read=read)
    return notation
