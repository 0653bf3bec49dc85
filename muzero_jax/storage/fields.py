"""The fields of frozen dataclasses: what values they take, and whatever else a command must know about one.

A fact stands at its field: `width: Annotated[Width, Fact(fixed=True)] = 128`, with its help below. Type and range are
for msgspec, which checks values and turns texts into them; `Fact` has the rest, and `fields_of` lists all of it.
"""

import dataclasses
import difflib
import functools
import re
import shlex
import sys
import types
import typing
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from muzero_jax.own.faults import shown

Record = TypeVar("Record")

LARGEST_BUDGET = 100_000
"""Simulations of one search: its tree has a node for each, in every game at once."""
LARGEST_FLOAT = sys.float_info.max
SIGNS = {">": "above", ">=": "at least", "<": "below", "<=": "at most"}

PositiveInt = Annotated[int, Meta(gt=0, lt=2**31)]
NotNegativeInt = Annotated[int, Meta(ge=0, lt=2**31)]
PositiveFloat = Annotated[float, Meta(gt=0, le=LARGEST_FLOAT)]
NotNegativeFloat = Annotated[float, Meta(ge=0, le=LARGEST_FLOAT)]
UnitInterval = Annotated[float, Meta(ge=0, le=1)]
PositiveShare = Annotated[float, Meta(gt=0, le=1)]
Simulations = Annotated[int, Meta(gt=0, le=LARGEST_BUDGET)]
Seed = Annotated[int, Meta(ge=0, lt=2**32)]
Name = Annotated[str, Meta(min_length=1)]
Device = Literal["auto", "cpu", "gpu", "tpu"]


class Range(NamedTuple):
    """Where a search over settings looks for a number (`apps.study.tuning`)."""

    low: float
    high: float
    so_far: str  # what is known of it, with figures of docs/lab-notebook.md
    log: bool = True  # drawn evenly on a log scale
    is_relative: bool = False  # the ends are multiples of the value that the run has
    most: float = LARGEST_FLOAT  # of relative ends


class Fact(NamedTuple):
    """What is true of a field beyond its type, its range and its help."""

    fixed: bool = False  # a checkpoint is made with its value, so a resumed run keeps it
    switch: bool = False  # whether it is on decides what a checkpoint holds; its value may change
    own: bool = False  # the runs of one group differ in it
    member: bool = False  # so may the members of one program: it changes no shape, no branch of Python and no match
    built_in: bool = False  # a network of the user's own is not told
    early: bool = False  # decides how JAX starts, and which processes there are
    repeated: bool = False  # a session that goes on takes it over from the one before
    single: bool = False  # for one run by itself, not for a trial of a study
    budget: bool = False  # one that is given counts, and those of the preset do not
    tuned: Range | None = None  # a search over settings may vary it
    common: bool = False  # people ask for it first, so `--help` shows it
    positional: bool = False  # takes the words before the flags
    short: str = ""  # a second name of its flag


class Field(NamedTuple):
    """One field, of a dataclass or of a dataclass in it."""

    name: str  # "search.num_simulations"
    hint: Any  # its annotation with everything in it
    default: Any = dataclasses.MISSING  # which is that of a field that must be given
    fact: Fact = Fact()

    @property
    def flag(self) -> str:
        """Its flag on a command line: "--search.num-simulations"."""
        return flag_of(self.name)

    @property
    def kind(self) -> Any:
        """The type of a value, without its range and without None."""
        return _kind(self.hint)

    @property
    def may_be_none(self) -> bool:
        """Whether it may have no value."""
        return types.NoneType in typing.get_args(_without_notes(self.hint))


def flag_of(name: str) -> str:
    """The flag of a field, by its dotted name."""
    return f"--{name}".replace("_", "-")


@functools.cache
def fields_of(cls: type, prefix: str = "") -> tuple[Field, ...]:
    """Every field of a dataclass, those of its groups by their dotted names."""
    hints, found = typing.get_type_hints(cls, include_extras=True), []
    for field in dataclasses.fields(cls):
        hint, name = hints[field.name], f"{prefix}{field.name}"
        if dataclasses.is_dataclass(hint):
            found += fields_of(hint, f"{name}.")  # type: ignore
        else:
            facts = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Fact)]
            found.append(Field(name, hint, field.default, *(facts or [Fact()])))
    return tuple(found)


def names(cls: type, fact: str) -> list[str]:
    """The dotted names of the fields of which a fact is true."""
    return [field.name for field in fields_of(cls) if getattr(field.fact, fact)]


def decode(cls: type[Record], values: Any, *, strict: bool = True) -> Record:
    """A dataclass from nested dicts of values, or with `strict` False of texts; missing fields take their defaults.

    Raises ValueError, in one sentence that names the flag, for an unknown field or a value out of range.
    """
    _refuse_unknown(cls, values)
    try:
        return msgspec.convert(values, cls, strict=strict, dec_hook=lambda kind, value: kind(value))
    except msgspec.ValidationError as error:
        expected, _, path = str(error).partition(" - at `$.")
        if missing := re.search(r"missing required field `(\w+)`", expected):
            raise ValueError(f"{flag_of(missing[1])} is missing") from None
        name = re.sub(r"\[.*?\]|`", "", path)  # of a list the field, not the element
        value = functools.reduce(lambda of, key: of[key], name.split("."), values) if name else values
        hint = next((field.hint for field in fields_of(cls) if field.name == name), cls)
        raise ValueError(_refusal(flag_of(name) if name else "it", value, hint, expected)) from None


def check_fields(record: Any) -> None:
    """Raises ValueError as `decode` does, if a field's value is not what its annotation allows."""
    decode(type(record), dataclasses.asdict(record))


def check_value(value: Any, hint: Any, name: str) -> None:
    """Raises ValueError, in one sentence that calls the value `name`, if the annotation does not allow it."""
    try:
        msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        raise ValueError(_refusal(name, value, hint, str(error))) from None


def differing(record: Any, base: Any) -> list[str]:
    """The flags that make one record of another, as they are typed: "--network.width 64", "--replay.no-symmetries"."""
    values = ((field.name, value_at(record, field.name), value_at(base, field.name)) for field in fields_of(type(base)))
    return [shlex.join(typed(name, value)) for name, value, before in values if value != before]


def value_at(record: Any, name: str) -> Any:
    """The value of a field, by its dotted name."""
    return functools.reduce(getattr, name.split("."), record)


def typed(name: str, value: Any) -> list[str]:
    """The words that give a field a value on a command line."""
    if value is False:
        group, dot, last = name.rpartition(".")
        return [flag_of(f"{group}{dot}no_{last}")]
    values = value if isinstance(value, tuple | list) else () if value is True else (value,)
    return [flag_of(name), *map(str, values)]


def _refuse_unknown(cls: Any, values: Any) -> None:
    if not isinstance(values, dict):
        return
    groups = {field.name: field.type for field in dataclasses.fields(cls)}
    for name, value in values.items():
        if name not in groups:
            near = difflib.get_close_matches(name, groups, n=1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            raise ValueError(
                f"it has a field '{shown(name)}'{meant} that this version of muzero_jax does not know; another version "
                "made it"
            )
        if dataclasses.is_dataclass(groups[name]):
            _refuse_unknown(groups[name], value)


def _refusal(name: str, value: Any, hint: Any, expected: str) -> str:
    """The sentence about a value that is not what msgspec expected."""
    if expected.startswith("Invalid enum value"):
        wanted = f"one of {', '.join(typing.get_args(_kind(hint)))}"
    else:
        wanted = (
            expected.removeprefix("Expected ").partition(", got ")[0].replace("`", "").replace(" | null", " or None")
        )
        wanted = wanted.replace(f"float <= {LARGEST_FLOAT}", "finite").replace("object", "an object")
        wanted = re.sub(r"(int|float) (>= 1|> 0.0)$", "positive", wanted)
        wanted = re.sub(
            r"(int|float) ([<>]=?) (\S+)$", lambda range_: f"{SIGNS[range_[2]]} {range_[3].removesuffix('.0')}", wanted
        )
        wanted = re.sub(r"str matching regex .*", "name=value", wanted)
    return f"{name} is {shown(value) or repr(value)}, but must be {wanted}"


def _without_notes(hint: Any) -> Any:
    return _without_notes(typing.get_args(hint)[0]) if typing.get_origin(hint) is Annotated else hint


def _kind(hint: Any) -> Any:
    plain = _without_notes(hint)
    if typing.get_origin(plain) in (typing.Union, types.UnionType):
        return next(_kind(option) for option in typing.get_args(plain) if option is not types.NoneType)
    return plain
