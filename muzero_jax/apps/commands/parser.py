"""Reads all command lines; the flags are the fields of dataclasses.

`read_words` takes a line apart, `split` collects the texts that were typed for each field, and `override` turns them
into values of a dataclass. A flag is `--group.field VALUE` or `--group.field=VALUE`, with - or _ in it; a switch is
turned off by `--group.no-field`.
"""

import ast
import dataclasses
import difflib
import functools
import inspect
import textwrap
import typing
from collections.abc import Iterable, Sequence
from dataclasses import MISSING
from typing import Any, NamedTuple, TypeVar

from muzero_jax.config.fields import Field, decode, fields_of, typed, value_at

Record = TypeVar("Record")
FlagTexts = dict[str, Any]
"""What was typed, by the field's dotted name: a text, a bool for a switch, or a list of texts. The key `HELP` or
`HELP_ALL` is True if help is asked for."""
HELP = "--help"
HELP_ALL = "--help-all"


class Flag(NamedTuple):
    """One flag as the help shows it."""

    name: str  # "--search.num-simulations"
    value: str  # what it takes: "INT"; empty for a switch
    sentence: str
    default: Any
    field: Field


class Words(list[str]):
    """A command line that was taken apart already: the words before the first flag, and each flag with its words."""

    first: list[str]
    flags: list[tuple[str, list[str]]]  # spelled with -


def read_words(arguments: Sequence[str]) -> Words:
    """Takes a command line apart, once."""
    if isinstance(arguments, Words):
        return arguments
    words = Words(arguments)
    words.first = []
    words.flags = []
    for word in arguments:
        if word == "-h" or word.startswith("--") and word != "--":
            name, equals, value = word.partition("=")
            words.flags.append((HELP if word == "-h" else name.replace("_", "-"), [value] if equals else []))
        else:
            (words.flags[-1][1] if words.flags else words.first).append(word)
    return words


def split(arguments: Sequence[str], *records: type) -> FlagTexts:
    """The typed texts by field of the dataclasses.

    Raises ValueError for an unknown flag, with a guess which one was meant, and for a word that belongs to no flag.
    """
    fields = [field for record in records for field in fields_of(record)]
    on = {flag: field for field in fields for flag in (field.flag, field.fact.short) if flag}
    off = {typed(field.name, False)[0]: field for field in fields if field.kind is bool}
    words = read_words(arguments)
    first = list(words.first)
    given: FlagTexts = {}
    for flag, values in words.flags:
        if flag in (HELP, HELP_ALL):
            given[flag] = True
        elif flag in off:
            given[off[flag].name] = False
            first += values
        elif flag in on:
            first += put(given, on[flag], values)
        else:
            raise ValueError(f"there is no flag {flag}{_meant(flag, [*on, *off])}; {HELP} shows what there is")
    if first and (place := next((field for field in fields if field.fact.positional), None)):
        first = put(given, place, first)
    if first:
        raise ValueError(f"{first[0]!r} belongs to no flag; {HELP} shows what there is")
    return given


def of_value(cls: type, name: str, text: str) -> FlagTexts:
    """What a flag of a dataclass, with or without its dashes, gives with one value; a switch has true and false."""
    flag = f"--{name.removeprefix('--').replace('_', '-')}"
    field = next((field for field in fields_of(cls) if field.flag == flag and field.kind is bool), None)
    if field is None:
        return split([flag, text], cls)
    if text not in ("true", "false"):
        raise ValueError(f"{flag} is a switch; it has the values true and false, not {text}")
    return {field.name: text == "true"}


def put(given: FlagTexts, field: Field, values: list[str]) -> list[str]:
    """Stores a field's texts; returns the words that do not belong to it. A list flag given twice is joined."""
    if field.kind is bool:
        given[field.name] = True
        return values
    if typing.get_origin(field.kind) is tuple:
        if not values and field.fact.needs_value:
            raise ValueError(f"{field.flag} needs a value: {takes(field.kind)}")
        is_nested = typing.get_origin(typing.get_args(field.kind)[0]) is tuple
        given[field.name] = [*given.get(field.name, []), *([values] if is_nested else values)]
        return []
    if not values:
        raise ValueError(f"{field.flag} needs a value: {takes(field.kind)}")
    given[field.name] = values[0]
    return values[1:]


def typed_again(given: FlagTexts) -> list[str]:
    """A command line that gives the same values."""
    return [word for name, texts in given.items() for word in typed(name, texts)]


def override(record: Record, given: FlagTexts) -> Record:
    """The dataclass with the typed values; ValueError if a field does not accept its text."""
    return _decoded(type(record), dataclasses.asdict(record), given)  # type: ignore


def convert(cls: type[Record], given: FlagTexts) -> Record:
    """A dataclass with the typed values; all other fields have their defaults."""
    return _decoded(cls, {}, given)


def _decoded(cls: type[Record], values: dict[str, Any], given: FlagTexts) -> Record:
    for field in fields_of(cls):
        if field.name in given:
            *groups, last = field.name.split(".")
            group = functools.reduce(lambda of, name: of.setdefault(name, {}), groups, values)
            text = given[field.name]
            group[last] = None if text == "None" and field.may_be_none else text
    return decode(cls, values, strict=False)


def read(cls: type[Record], arguments: Sequence[str], description: str | None = None) -> Record:
    """A dataclass from a command line; `--help` prints all flags and exits."""
    given = split(arguments, cls)
    if HELP in given or HELP_ALL in given:
        place = {name: rank for rank, base in enumerate(cls.__mro__) for name in getattr(base, "__annotations__", {})}
        flags = sorted(flags_of(cls), key=lambda flag: (flag.default is not MISSING, -place[flag.field.name]))
        print(f"{(description or cls.__doc__ or '').strip()}\n\n{help_text(flags)}")
        raise SystemExit(0)
    return convert(cls, given)


def flags_of(record: Any) -> list[Flag]:
    """Every flag of a dataclass; defaults are the values of `record`, or of its class if `record` is a class."""
    cls = record if isinstance(record, type) else type(record)
    help_of = _sentences(cls)
    flags = []
    for field in fields_of(cls):
        default = field.default if record is cls else value_at(record, field.name)
        flags.append(Flag(field.flag, takes(field.kind), help_of.get(field.name, ""), default, field))
    return flags


def help_text(flags: Iterable[Flag], *, everything: bool = True) -> str:
    """A line and a sentence for each flag, or only for the common ones if not `everything`."""
    flags = list(flags)
    shown = [flag for flag in flags if everything or flag.field.fact.common]
    rest = f"{HELP_ALL} shows the other {len(flags) - len(shown)}; docs/commands.md says where pages explain them."
    off = "A switch is turned off by --no-FLAG, in a group by --GROUP.no-FLAG."
    return "\n".join([*(line for flag in shown for line in _lines(flag)), "", *([] if everything else [rest]), off])


def takes(kind: Any) -> str:
    """What the help shows as a flag's value, by its field's type; "" for a switch."""
    if typing.get_origin(kind) is typing.Literal:
        return "{" + ",".join(typing.get_args(kind)) + "}"
    if typing.get_origin(kind) is tuple:
        element = takes(Field("", typing.get_args(kind)[0]).kind)
        return element if element.startswith("[") else f"[{element} ...]"
    return "" if kind is bool else "TEXT" if kind is str else kind.__name__.upper()


def _lines(flag: Flag) -> list[str]:
    value = flag.default
    fact = flag.field.fact
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    is_shown = value not in (None, "") and value is not False and "default:" not in flag.sentence
    default = "required" if value is MISSING else "on" if value is True else value
    name = flag.name[2:].upper() if fact.positional else ", ".join(filter(None, (flag.name, fact.short)))
    return [
        name if fact.positional else f"{name} {flag.value}".rstrip(),
        *textwrap.wrap(
            f"{flag.sentence} [{default}]" if is_shown else flag.sentence,
            100,
            initial_indent="    ",
            subsequent_indent="    ",
            break_on_hyphens=False,
        ),
    ]


def _sentences(cls: type, prefix: str = "") -> dict[str, str]:
    """The docstrings under the fields of a dataclass and of its groups, each in one line."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore
        for field, text in zip(body, body[1:], strict=False):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[f"{prefix}{field.target.id}"] = " ".join(str(text.value.value).split())  # type: ignore
    groups = ((name, kind) for name, kind in typing.get_type_hints(cls).items() if dataclasses.is_dataclass(kind))
    return functools.reduce(lambda all_, group: all_ | _sentences(group[1], f"{group[0]}."), groups, found)  # type: ignore


def _meant(flag: str, known: Iterable[str]) -> str:
    """` (did you mean FLAG?)` for an unknown flag; "" if no flag is similar."""
    known = list(known)
    last = {name.split(".")[-1].lstrip("-"): name for name in reversed(known)}
    name = flag.split(".")[-1].lstrip("-")
    ends = [last[end] for end in (name, f"num-{name}", f"max-{name}") if end in last]
    near = difflib.get_close_matches(flag, known, n=1, cutoff=0.7)
    near_ends = [last[end] for end in difflib.get_close_matches(name, last, n=1)]
    return next((f" (did you mean {choice}?)" for choice in [*ends, *near, *near_ends]), "")
