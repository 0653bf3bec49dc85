"""Environments of other libraries as single-player games: `--env gymnax:CartPole-v1`, `--env octax:pong`.

A library has one module, which turns an environment into rules in pgx's form (`outside_states`). Only environments
with one player and one discrete action a move are supported. The observation becomes one array. A time limit is a
truncation: values bootstrap across it.
"""

import difflib
import importlib
from string import digits
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.games.game import Game
from muzero_jax.games.layout import NO_CELLS
from muzero_jax.games.state_shapes import check_alike
from muzero_jax.own.faults import first_line

SEPARATOR = ":"
LIST = "list"
LIBRARIES = {
    "atari": "ale-py",
    "craftax": "craftax",
    "gymnax": "gymnax six",
    "jumanji": "jumanji six",
    "octax": "octax opencv-python-headless",
}
"""Libraries, each with the packages that pip installs. `LIBRARY_games.py` has the `NAMES` of its environments, their
`make_rules`, and optionally `facts`, a function from a name to further fields of its `Game`, and `OPTIONS`, words that
may follow a name after colons, one of each kind: those that differ in a number only are of one kind."""


def is_outside(name: str) -> bool:
    """Whether a name is that of another library's environment."""
    return name.partition(SEPARATOR)[0] in LIBRARIES and SEPARATOR in name


def find(name: str) -> Game:
    """The game `LIBRARY:NAME` or `LIBRARY:NAME:OPTION`; ValueError if there is none, or if it cannot be trained."""
    library, _, inner = name.partition(SEPARATOR)
    try:
        module = importlib.import_module(f"muzero_jax.games.{library}_games")
    except ModuleNotFoundError as error:
        raise ValueError(
            f"{name} needs the package {error.name}, which is not installed; pip install {LIBRARIES[library]} brings it"
        ) from error
    given, *options = inner.split(SEPARATOR)
    known = getattr(module, "OPTIONS", ())
    if inner == LIST:
        also = f"; each also with {', '.join(SEPARATOR + option for option in known)}" if known else ""
        raise ValueError(f"{library} has {', '.join(module.NAMES)}{also}")
    if given not in module.NAMES:
        closest = difflib.get_close_matches(given, sorted(module.NAMES), n=3, cutoff=0.0)
        raise ValueError(f"{library} has no environment {given!r} (did you mean {' or '.join(closest)}?)")
    if unknown := [option for option in options if option not in known]:
        raise ValueError(f"{library} has no option {unknown[0]!r}; it has {', '.join(known) or 'none'}")
    if len({option.rstrip(digits) for option in options}) < len(options):
        raise ValueError(f"{name} has two options of one kind; keep one")
    try:
        rules = module.make_rules(given, *options)
        key, action = jax.eval_shape(lambda: (jax.random.key(0), jnp.int32(0)))
        state = jax.eval_shape(rules.init, key)
        check_alike(state, jax.eval_shape(rules.step, state, action, key))
    except Exception as error:  # environments may raise anything; some load levels from the network
        problem = f"{type(error).__name__}: {first_line(error)[:120]}"
        raise ValueError(
            f"{name} cannot be trained ({problem}); only one player with one discrete action a move is supported"
        ) from error
    facts: dict[str, Any] = module.facts(given, *options) if hasattr(module, "facts") else {"title": inner}
    return Game(name=name, rules=lambda board_size: rules, layout=NO_CELLS, **facts)
