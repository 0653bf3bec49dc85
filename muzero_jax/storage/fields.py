"""The fields of frozen dataclasses: what values they take, and whatever else a command must know about one.

A fact stands at its field: `width: Annotated[Width, Fact(fixed=True)] = 128`, with its help below. Type and range are
for msgspec, which checks values and turns texts into them; `Fact` has the rest, and `fields_of` lists all of it.
"""

import dataclasses
import difflib
import functools
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
ENDS = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
KINDS = {int: "an integer", float: "a number", str: "text", bool: "true or false"}

PositiveInt = Annotated[int, Meta(gt=0, lt=2**31)]
NotNegativeInt = Annotated[int, Meta(ge=0, lt=2**31)]
PositiveFloat = Annotated[float, Meta(gt=0, le=LARGEST_FLOAT)]
NotNegativeFloat = Annotated[float, Meta(ge=0, le=LARGEST_FLOAT)]
UnitInterval = Annotated[float, Meta(ge=0, le=1)]
PositiveShare = Annotated[float, Meta(gt=0, le=1)]
Simulations = Annotated[int, Meta(ge=1, le=LARGEST_BUDGET)]
Seed = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Name = Annotated[str, Meta(min_length=1, description="text that is not empty")]
Device = Literal["auto", "cpu", "gpu", "tpu"]
DeviceCount = Annotated[int, Meta(ge=1, le=1024)]  # a CPU's take threads and memory at once


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
        return types.NoneType in _parts(self.hint)


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
            facts = [note for note in _parts(hint) if isinstance(note, Fact)]
            found.append(Field(name, hint, field.default, *(facts or [Fact()])))
    return tuple(found)


def names(cls: type, fact: str) -> list[str]:
    """The dotted names of the fields of which a fact is true."""
    return [field.name for field in fields_of(cls) if getattr(field.fact, fact)]


def allowed(hint: Any) -> str:
    """The values that an annotation allows, in words: "a positive integer", "a number from 0 to 1", "one of cpu, gpu".

    A `Meta` with a description has its own words.
    """
    kind, metas = _kind(hint), [note for note in _parts(hint) if isinstance(note, Meta)]
    said = next((meta.description for meta in metas if meta.description), None)
    if typing.get_origin(kind) is Literal:
        said = f"one of {', '.join(typing.get_args(kind))}"
    elif typing.get_origin(kind) is tuple:
        said = f"a list, each {allowed(typing.get_args(kind)[0])}"
    said = said or _in_range(KINDS.get(kind, f"a {kind.__name__.lower()}"), metas)
    return f"{said} or None" if types.NoneType in _parts(hint) else said


def _in_range(kind: str, metas: list[Meta]) -> str:
    """A kind of number and its range, without the ends of all that such a number can be."""
    ends = {name: end for meta in metas for name in ENDS if (end := getattr(meta, name)) is not None}
    ends = {name: end for name, end in ends.items() if end not in (2**31, LARGEST_FLOAT)}
    if ends == {"gt": 0}:
        return f"a positive {kind.split()[1]}"
    if ends.keys() == {"ge", "le"}:
        return f"{kind} from {ends['ge']:,} to {ends['le']:,}"
    limits = " and ".join(f"{ENDS[name]} {end:,}" for name, end in ends.items())
    return f"{kind} {limits}".rstrip()


def decode(cls: type[Record], values: Any, *, strict: bool = True, group: str = "") -> Record:
    """A dataclass from nested dicts of values, or with `strict` False of texts; missing fields take their defaults.

    Raises ValueError, in one sentence that names the flag, for an unknown field or a value that is not allowed. `group`
    is the dotted name of a dataclass in another, with a dot at its end.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{flag_of(group[:-1]) if group else 'it'} is {shown(values)}, but must be an object")
    hints, decoded = typing.get_type_hints(cls, include_extras=True), {}
    for name, value in values.items():
        if name not in hints:
            near = difflib.get_close_matches(name, hints, n=1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            raise ValueError(
                f"it has a field '{shown(name)}'{meant} that this version of muzero_jax does not know; another version "
                "made it"
            )
        if dataclasses.is_dataclass(hints[name]):
            decoded[name] = decode(hints[name], value, strict=strict, group=f"{group}{name}.")
        else:
            decoded[name] = check_value(value, hints[name], flag_of(f"{group}{name}"), strict=strict)
    needed = (f.name for f in dataclasses.fields(cls) if f.default is f.default_factory is dataclasses.MISSING)  # type: ignore
    if missing := next((name for name in needed if name not in values), None):
        raise ValueError(f"{flag_of(missing)} is missing")
    return cls(**decoded)


def check_fields(record: Any) -> None:
    """Raises ValueError as `decode` does, if a field's value is not what its annotation allows."""
    decode(type(record), dataclasses.asdict(record))


def check_value(value: Any, hint: Any, name: str, *, strict: bool = True) -> Any:
    """The value as its annotation has it; ValueError, in one sentence that calls it `name`, if that does not allow it.

    With `strict` False it may be a text of it.
    """
    try:
        return msgspec.convert(value, hint, strict=strict, dec_hook=lambda kind, text: kind(text))
    except msgspec.ValidationError:
        raise ValueError(f"{name} is {shown(value) or repr(value)}, but must be {allowed(hint)}") from None


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


def _kind(hint: Any) -> Any:
    """The type of a value, without its notes and without None."""
    return next(part for part in _parts(hint) if part is not types.NoneType and not isinstance(part, Meta | Fact))


def _parts(hint: Any) -> list[Any]:
    """The types that an annotation allows, and its notes: a `Meta` for a range, and a `Fact`."""
    if typing.get_origin(hint) in (Annotated, typing.Union, types.UnionType):
        return [part for each in typing.get_args(hint) for part in _parts(each)]
    return [hint]
