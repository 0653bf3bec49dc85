"""The flags of `train.py`: the fields of config and session, their help, and what a wrong flag was meant for."""

import ast
import dataclasses
import difflib
import inspect
import re
import shlex
import textwrap
import typing
from typing import Annotated, Any, NamedTuple

import tyro

from muzero_jax.run.session import Session
from muzero_jax.storage.config import Config

MOST_NEEDED = (
    "--env --board-size --model --minutes --frames --updates --seed --run-dir --resume --overwrite --init-from "
    "--offline --device --devices --autotune --search.num-simulations --network.file --algorithm.file --network.width "
    "--optimiser.learning-rate"
).split()
"""The flags that `--help` shows."""
NICKNAMES = {
    "--lr": "--optimiser.learning-rate",
    "--sims": "--search.num-simulations",
    "--simulations": "--search.num-simulations",
    "--num-simulations": "--search.num-simulations",
    "--iterations": "--max-iterations",
    "--steps": "--updates",
    "--time": "--minutes",
    "--game": "--env",
    "--size": "--board-size",
    "--games": "--self-play.num-envs",
    "--envs": "--self-play.num-envs",
    "--layers": "--network.num-blocks",
    "--channels": "--network.width",
    "--optimiser": "--optimiser.name",
    "--optimizer": "--optimiser.name",
    "--cpu": "--device cpu",
    "--gpu": "--device gpu",
}
"""Words that people type, and the flag that they mean."""
BUILT_IN_ALONE = ("kind", "width", "num_blocks", "activation")
"""Fields of the network's config that a network of one's own is not told."""
HELP, HELP_ALL = ("-h", "--help"), "--help-all"


class Command(NamedTuple):
    """All flags: those of the run, which it keeps, and those of this call alone."""

    config: Annotated[Config, tyro.conf.arg(name="")]
    session: Annotated[Session, tyro.conf.arg(name="")]


class Flag(NamedTuple):
    """One flag, for a person."""

    name: str  # "--search.num-simulations"
    value: str  # what it takes: "INT"; empty for a switch
    sentence: str
    default: Any


def all_flags(default: Command) -> list[Flag]:
    """Every flag, with the default that it has here."""
    return [*_flags(default.config), *_flags(default.session)]


def differing(config: Config, base: Config) -> list[str]:
    """The flags that make `config` of `base`, as one types them: "--network.width 64", "--replay.no-symmetries"."""
    old = {flag.name: flag.default for flag in _flags(base)}
    changed = (flag for flag in _flags(config) if flag.default != old[flag.name])
    return [_typed(flag.name, flag.default) for flag in changed]


def _typed(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else _negated(name)
    return shlex.join([name, *map(str, value if isinstance(value, tuple) else [value])])


def help_text(default: Command, *, everything: bool) -> str:
    """The text of `--help`, or `--help-all`: a line and a sentence for each flag."""
    flags = all_flags(default)
    shown = flags if everything else [flag for name in MOST_NEEDED for flag in flags if flag.name == name]
    lines = [line for flag in shown for line in _lines(flag)]
    rest = len(flags) - len(shown)
    more = f"{HELP_ALL} shows the other {rest}. docs/config.md and docs/commands.md explain them."
    off = "A switch is turned off by --no-FLAG, in a group by --GROUP.no-FLAG."
    return "\n".join([*lines, "", *([more] if rest else []), off])


def spelled_out(arguments: list[str]) -> list[str]:
    """The arguments with `--network FILE` written as `--network.file FILE`, and `--algorithm FILE` likewise."""
    return [re.sub(r"^--(network|algorithm)(?==|$)", r"--\1.file", word) for word in arguments]


def check_names(arguments: list[str], default: Command) -> None:
    """Raises ValueError, with the flag that was probably meant, for the first word that is like a flag but none."""
    flags = all_flags(default)
    names = {flag.name for flag in flags} | {_negated(flag.name) for flag in flags if not flag.value}
    for word in arguments:
        name = name_of(word)
        if name.startswith("--") and name not in names:
            raise ValueError(f"there is no flag {name}{_meant(name, names)}; {HELP_ALL} lists every flag")


def check_network(arguments: list[str], config: Config) -> None:
    """Raises ValueError for a flag of the built-in networks where the network is somebody's own file."""
    if config.network.file is None:
        return
    typed = set(map(name_of, arguments))
    for name in BUILT_IN_ALONE:
        if (flag := name_of(f"--network.{name}")) in typed:
            raise ValueError(f"{flag} does not reach a network of your own; give it as --network.options {name}=...")


def name_of(word: str) -> str:
    """The flag that a word begins with, in our spelling: "--a-b" of "--a_b=3"."""
    return word.split("=")[0].replace("_", "-")


def _meant(name: str, names: set[str]) -> str:
    """The flag that a wrong one was probably meant for, as the middle of a sentence; empty if none comes near."""
    ends = [known for known in sorted(names) if known.split(".")[-1] in (name[2:], f"num-{name[2:]}")]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    last_words = {known.split(".")[-1]: known for known in names}
    near_ends = [last_words[end] for end in difflib.get_close_matches(name.split(".")[-1].lstrip("-"), last_words, n=1)]
    choice = next(iter([NICKNAMES[name]] if name in NICKNAMES else [*ends, *near, *near_ends]), None)
    return f" (did you mean {choice}?)" if choice else ""


def _negated(name: str) -> str:
    """--no-FLAG, which for a flag of a group is --group.no-flag."""
    group, _, last = name[2:].rpartition(".")
    return f"--{group}{'.' if group else ''}no-{last}"


def _flags(record: Any, prefix: str = "") -> list[Flag]:
    sentences, hints = _sentences(type(record)), typing.get_type_hints(type(record))
    flags: list[Flag] = []
    for field in dataclasses.fields(record):
        value, name = getattr(record, field.name), f"{prefix}{field.name}".replace("_", "-")
        if dataclasses.is_dataclass(value):
            flags += _flags(value, f"{name}.")
        else:
            flags.append(Flag(f"--{name}", _takes(hints[field.name]), sentences.get(field.name, ""), value))
    return flags


def _takes(hint: Any) -> str:
    """The value that a flag takes, by its field's type."""
    options = [option for option in typing.get_args(hint) if option is not type(None)]
    if typing.get_origin(hint) is typing.Literal:
        return "{" + ",".join(options) + "}"
    if typing.get_origin(hint) is tuple:
        return f"[{_takes(options[0])} ...]"
    if options:
        return _takes(options[0])
    return "" if hint is bool else hint.__name__.upper()


def _sentences(cls: type) -> dict[str, str]:
    """The docstrings under the fields of a dataclass, each in one line."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body  # type: ignore
    pairs = ((field, text) for field, text in zip(body, body[1:], strict=False) if isinstance(field, ast.AnnAssign))
    return {
        field.target.id: " ".join(text.value.value.split())  # type: ignore
        for field, text in pairs
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }


def _lines(flag: Flag) -> list[str]:
    value = " ".join(map(str, flag.default)) if isinstance(flag.default, tuple) else flag.default
    is_shown = value is not None and value is not False and value != "" and "default:" not in flag.sentence
    sentence = f"{flag.sentence} [{'on' if value is True else value}]" if is_shown else flag.sentence
    return [
        f"{flag.name} {flag.value}".rstrip(),
        *textwrap.wrap(sentence, 100, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False),
    ]
