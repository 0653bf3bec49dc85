"""A game of one's own: a Python file that defines `make()`, or whatever such a `make` returns, as an `Environment`.

That may be an `Environment`, an object with `init` and `step` in pgx's form, or a `Game`, which adds a title, a
notation and a drawing. No table lists it: the config keeps the file's path. The text of the file is what loading
remembers, so a file that has not changed gives the same functions again, and nothing compiles twice.
"""

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.games import chance, random_play, state_shapes, states
from muzero_jax.games.environment import environment_of, make_environment
from muzero_jax.games.game import Game, make_rules
from muzero_jax.own import python_file
from muzero_jax.own.faults import Fault, guarded
from muzero_jax.types import Environment

NUM_GAMES, MOST_MOVES = 16, 512
"""Random games that tell whether turns alternate, and how long games last."""
KINDS = "an Environment, a Game, or an object with init(key) and step(state, action, key)"
FUNCTIONS = ("init", "move", "observe", "legal")
PARTS = ("move", "probabilities", "resolve")
"""Functions of a `Chance`."""
HELP = "docs/your-own-game.md shows an example"


def load_environment(env: str, *, board_size: int | None = None, gamma: float = 1.0) -> Environment:
    """The game that `--env` names: one of the catalogue, or that of a file.

    Raises ValueError, in one sentence that names the file, if it holds no game that can be compiled.
    """
    if not python_file.is_path(env):
        return make_environment(env, board_size=board_size, gamma=gamma)
    path = Path(env)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise ValueError(
            f"cannot read {path} ({reason}); name a game that comes with the code, or a file that defines make()"
        ) from error
    return _load(path, text, board_size, gamma)


def environment_from(made: Any, name: str, *, board_size: int | None = None, gamma: float = 1.0) -> Environment:
    """The environment of anything that `make` may return; `name` is what it is called where it says nothing itself.

    Its states have pgx's form, and a finished game stays as it is. `discount` is None for a game of two whose turns do
    not always alternate in random games.

    Raises ValueError in one sentence.
    """
    if isinstance(made, Environment):
        return _of_environment(made, name, board_size, gamma)
    game = made if isinstance(made, Game) else _plain_game(made, name)
    rules = _checked_rules(game, board_size, name)
    own = game._replace(rules=lambda size: rules)
    environment = _checked(environment_of(own, board_size=board_size, gamma=gamma), name)._replace(game=game)
    if environment.num_players == 2 and not random_play.turns_alternate(random_games(environment)):
        return environment._replace(discount=None)
    return environment


def random_games(environment: Environment) -> random_play.Moves:
    """The random games by which a game of one's own is judged; they compile once."""
    return random_play.play(environment, num_games=NUM_GAMES, max_moves=MOST_MOVES)


@functools.lru_cache(maxsize=8)
def _load(path: Path, text: str, board_size: int | None, gamma: float) -> Environment:
    try:
        return environment_from(_made(path, text), str(path), board_size=board_size, gamma=gamma)
    except Fault:
        raise
    except ValueError as error:
        raise ValueError(f"{path} makes no game that can be trained: {error}") from error


@functools.lru_cache(maxsize=8)
def _made(path: Path, text: str) -> Any:
    """The result of `make`."""
    module = guarded(python_file.run, f"importing {path}")(path, text)
    make = getattr(module, "make", None)
    if not callable(make):
        raise Fault(f"{path} defines no function make(); add one that returns {KINDS} ({HELP})")
    return guarded(make, f"make() of {path}")()


def _plain_game(rules: Any, name: str) -> Game:
    """A game of rules alone."""
    has_step = all(callable(getattr(rules, method, None)) for method in ("init", "step"))
    if not has_step and not chance.is_listed(rules):
        raise Fault(f"make() of {name} returns {_described(rules)}; let it return {KINDS} ({HELP})")
    return Game(Path(name).stem, _title(name), rules=lambda board_size: rules)


def _checked_rules(game: Game, board_size: int | None, name: str) -> Any:
    """The rules of a game, whose states have pgx's form before a move and after it."""
    rules = guarded(make_rules, f"making the rules of {name}")(game, board_size)
    has_chance = chance.is_listed(rules)
    own = {method: guarded(getattr(rules, method), f"{method} of {name}") for method in _methods(has_chance)}
    key, number = jax.random.key(0), jnp.int32(0)
    state = jax.eval_shape(own["init"], key)
    if missing := states.missing_fields(state):
        raise Fault(
            f"the state that init of {name} makes has no {missing[0]}; give it pgx's fields {', '.join(states.FIELDS)}"
        )
    if has_chance:
        made = jax.eval_shape(own["move"], state, number)
        if not isinstance(made, tuple) or len(made) != 2 or hasattr(made, "_fields"):
            raise Fault(f"move of {name} must return two things: the state, and whether chance acts next")
        own["num_outcomes"] = rules.num_outcomes
    elif changes := state_shapes.changes(state, jax.eval_shape(own["step"], state, number, key)):
        raise Fault(f"{name}: {changes[0]}")
    return SimpleNamespace(num_players=getattr(rules, "num_players", None), **own)


def _methods(has_chance: bool) -> tuple[str, ...]:
    return chance.FUNCTIONS if has_chance else ("init", "step")


def _of_environment(made: Environment, name: str, board_size: int | None, gamma: float) -> Environment:
    if board_size is not None or gamma != 1.0:
        flag = "--targets.discount" if board_size is None else "--board-size"
        raise Fault(f"make() of {name} returns an Environment, which decides that itself; leave {flag} out")
    functions = {field: guarded(getattr(made, field), f"{field} of {name}") for field in FUNCTIONS}
    if made.chance:
        parts = {field: guarded(getattr(made.chance, field), f"chance.{field} of {name}") for field in PARTS}
        made = made._replace(chance=made.chance._replace(**parts))
    environment = _checked(made._replace(**functions), name)
    return environment._replace(game=made.game or Game(made.name, _title(made.name)))


def _checked(environment: Environment, name: str) -> Environment:
    """The environment with states in pgx's form and an end that is final, if it can be compiled."""
    if environment.num_players not in (1, 2):
        raise Fault(f"{name} is a game for {environment.num_players} players, but only one or two can be trained")
    if problems := state_shapes.problems(environment):
        raise Fault(problems[0] if name in problems[0] else f"{name}: {problems[0]}")
    state = jax.eval_shape(environment.init, jax.random.key(0))
    lacks = states.missing_fields(state)
    return states.final(states.seated(environment) if lacks else environment)


def _title(name: str) -> str:
    """A game's title, from the name of its file."""
    words = Path(name).stem.replace("_", " ").strip()
    return words[:1].upper() + words[1:]


def _described(value: Any) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"
