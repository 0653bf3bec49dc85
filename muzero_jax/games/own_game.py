"""Your own game, from a Python file that defines `make()`, as an `Environment`.

`make` may return an `Environment`, an object with `init` and `step` in pgx's form, or a `Game`, which adds a title, a
notation and a drawing. The config keeps the file's path. Loading is cached by the file's text, so that an unchanged
file gives the same functions again, and nothing compiles twice.
"""

import functools
from pathlib import Path
from typing import Any

import jax

from muzero_jax.games import chance, random_play, state_shapes, states
from muzero_jax.games.catalogue import check_players, game_of
from muzero_jax.games.environment import environment_of, make_environment
from muzero_jax.games.game import Game, make_rules
from muzero_jax.own import python_file
from muzero_jax.own.faults import Fault, guarded
from muzero_jax.types import Environment

NUM_GAMES, MOST_MOVES = 16, 512
"""Random games that are played to see whether turns alternate and how long games last; most moves of each."""


def load_environment(env: str, *, board_size: int | None = None, gamma: float = 1.0) -> Environment:
    """The game that `--env` names: one of the catalogue, or the game of a file.

    Raises ValueError, which names the file, if its game cannot be compiled.
    """
    if not python_file.is_path(env):
        return make_environment(env, board_size=board_size, gamma=gamma)
    source = python_file.read(Path(env))
    environment = _load(env, source, board_size, gamma)
    python_file.SOURCES[env] = source  # also of a cached game, which did not run again
    return environment


def environment_from(made: Any, name: str, *, board_size: int | None = None, gamma: float = 1.0) -> Environment:
    """The environment of anything that `make` may return; `name` is used if the result has no name.

    Its states have pgx's form, and a finished game stays as it is. Of two-player games, random games show whether they
    are for points and, if the rules give no `Environment`, whether turns always alternate: else
    `discount` is None.

    Raises ValueError if it cannot be compiled.
    """
    return guarded(_environment_from, f"the game of {name}")(made, name, board_size, gamma)


def random_games(environment: Environment) -> random_play.Moves:
    """The random games that show how a user's game behaves; they compile once."""
    return random_play.play(environment, num_games=NUM_GAMES, max_moves=MOST_MOVES)


@functools.lru_cache(maxsize=8)
def _load(path: str, source: bytes, board_size: int | None, gamma: float) -> Environment:
    return environment_from(_made(path, source), path, board_size=board_size, gamma=gamma)


@functools.lru_cache(maxsize=8)
def _made(path: str, source: bytes) -> Any:
    """The result of `make`; `source`, the file's text, is the cache's key."""
    del source
    return python_file.load_function(path, "make")()


def _environment_from(made: Any, name: str, board_size: int | None, gamma: float) -> Environment:
    if isinstance(made, Environment):
        if board_size is not None or gamma != 1.0:
            flag = "--targets.discount" if board_size is None else "--board-size"
            raise Fault(f"make() of {name} returns an Environment, whose own setting counts; leave {flag} out")
        game = made.game or Game(made.name, _title(made.name))
        return _as_random_games_show(_checked(made, name), game, has_discount=True)
    game = made if isinstance(made, Game) else _plain_game(made, name)
    rules = make_rules(game, board_size)
    lacking = [part for part in chance.ListedRules.__annotations__ if not hasattr(rules, part)]
    if lacking and hasattr(rules, "num_outcomes") and not hasattr(rules, "step"):
        raise Fault(f"the game of {name} has num_outcomes, but no {lacking[0]}, which listed chance needs")
    if missing := states.missing_fields(jax.eval_shape(rules.init, jax.random.key(0))):
        raise Fault(
            f"the state that init of {name} makes has no {missing[0]}; give it pgx's fields {', '.join(states.FIELDS)}"
        )
    environment = environment_of(game._replace(rules=lambda size: rules), board_size=board_size, gamma=gamma)
    return _as_random_games_show(_checked(environment, name), game, has_discount=False)


def with_points(environment: Environment) -> Environment:
    """The environment of a program, whose `game.is_for_points` is set if random games show it; others as they are."""
    if environment.game is not None:
        return environment
    return _as_random_games_show(environment, game_of(environment), has_discount=True)


def _as_random_games_show(environment: Environment, game: Game, *, has_discount: bool) -> Environment:
    """The environment with its game, after one look at random games if two play: whether it is for points, and unless
    it `has_discount`, whether turns alternate.
    """
    if environment.num_players == 1:
        return environment._replace(game=game)
    moves = random_games(environment)
    if not game.is_for_points:
        game = game._replace(is_for_points=random_play.is_for_points(moves))
    is_constant = has_discount or random_play.turns_alternate(moves)
    return environment._replace(game=game, discount=environment.discount if is_constant else None)


def _plain_game(rules: Any, name: str) -> Game:
    """A game from rules without a `Game`."""
    if not (hasattr(rules, "init") and (hasattr(rules, "step") or hasattr(rules, "num_outcomes"))):
        what = "None" if rules is None else f"an object of type {type(rules).__name__}"
        raise Fault(
            f"make() of {name} returns {what}; let it return an Environment, a Game, or an object with init(key) and "
            "step(state, action, key) (docs/your-own-game.md shows an example)"
        )
    return Game(Path(name).stem, _title(name), rules=lambda board_size: rules)


def _checked(environment: Environment, name: str) -> Environment:
    """The environment with states in pgx's form and final ends; Fault if it cannot be compiled."""
    try:
        check_players(environment)
        state_shapes.check(environment)
    except Fault as fault:
        raise Fault(f"{name}: {fault}") from None
    in_form = states.in_form(environment)
    return states.final(environment) if in_form is environment else in_form


def _title(name: str) -> str:
    """A game's title, from the name of its file."""
    words = Path(name).stem.replace("_", " ").strip()
    return words[:1].upper() + words[1:]
