"""The fields of frozen dataclasses: their values, and everything else that commands need to know about them.

All facts are at the field: `width: Annotated[Width, Fact(fixed=True)] = 128`, with its help below. msgspec checks
values and parses texts by type and range; `Fact` has the rest, and `fields_of` lists everything.
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
"""The most simulations of one search, because its tree has a node for each, in every game."""
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
DeviceCount = Annotated[int, Meta(ge=1, le=1024)]  # CPU devices take threads and memory at once


class Range(NamedTuple):
    """The range of a number in a search over settings (`apps.study.tuning`)."""

    low: float
    high: float
    so_far: str  # what is known, with figures from docs/lab-notebook.md
    log: bool = True  # uniform on a log scale
    is_relative: bool = False  # the ends are multiples of the run's value
    most: float = LARGEST_FLOAT  # limit of relative ends
    policy: str = ""  # the only `search.policy` that uses the field; empty: any
    of_dynamics: bool = False  # used only if the dynamics are learned


class Fact(NamedTuple):
    """The facts about a field in addition to its type, range and help."""

    fixed: bool = False  # a checkpoint depends on its value, so a resumed run keeps it
    switch: bool = False  # a checkpoint depends on whether it is on; its value may change
    own: bool = False  # the runs of one group differ in it
    built_in: bool = False  # a network of the user's own does not get it
    repeated: bool = False  # a resumed session gets it from the one before
    single: bool = False  # for a single run, not for a trial of a study
    budget: bool = False  # if one is given, the preset's budgets do not count
    tuned: Range | None = None  # a search over settings may vary it
    common: bool = False  # the short `--help` shows it
    positional: bool = False  # its values are the words before the flags
    needs_value: bool = False  # a list that a flag without words does not empty
    short: str = ""  # a second name of its flag


class Field(NamedTuple):
    """One field of a dataclass, or of a dataclass nested in it."""

    name: str  # "search.num_simulations"
    hint: Any  # its whole annotation
    default: Any = dataclasses.MISSING  # MISSING: it must be given
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
        """Whether it may be None."""
        return types.NoneType in _parts(self.hint)


def flag_of(name: str) -> str:
    """The flag of a field, by its dotted name."""
    return f"--{name}".replace("_", "-")


@functools.cache
def fields_of(cls: type, prefix: str = "") -> tuple[Field, ...]:
    """Every field of a dataclass; fields of nested dataclasses have dotted names."""
    hints = typing.get_type_hints(cls, include_extras=True)
    found = []
    for field in dataclasses.fields(cls):
        hint = hints[field.name]
        name = f"{prefix}{field.name}"
        if dataclasses.is_dataclass(hint):
            found += fields_of(hint, f"{name}.")  # type: ignore
        else:
            facts = [note for note in _parts(hint) if isinstance(note, Fact)]
            found.append(Field(name, hint, field.default, *(facts or [Fact()])))
    return tuple(found)


def names(cls: type, fact: str) -> list[str]:
    """The dotted names of the fields for which a fact is true."""
    return [field.name for field in fields_of(cls) if getattr(field.fact, fact)]


def allowed(hint: Any) -> str:
    """The values that an annotation allows, in words: "a positive integer", "a number from 0 to 1", "one of cpu, gpu".

    A `Meta` with a description has its own words.
    """
    kind = _kind(hint)
    metas = [note for note in _parts(hint) if isinstance(note, Meta)]
    said = next((meta.description for meta in metas if meta.description), None)
    if typing.get_origin(kind) is Literal:
        said = f"one of {', '.join(typing.get_args(kind))}"
    elif typing.get_origin(kind) is tuple:
        said = f"a list, each {allowed(typing.get_args(kind)[0])}"
    said = said or _in_range(KINDS.get(kind, f"a {kind.__name__.lower()}"), metas)
    return f"{said} or None" if types.NoneType in _parts(hint) else said


def _in_range(kind: str, metas: list[Meta]) -> str:
    """A kind of number and its range; the ends of int32 and float are left out."""
    ends = {name: end for meta in metas for name in ENDS if (end := getattr(meta, name)) is not None}
    ends = {name: end for name, end in ends.items() if end not in (2**31, LARGEST_FLOAT)}
    if ends == {"gt": 0}:
        return f"a positive {kind.split()[1]}"
    if ends.keys() == {"ge", "le"}:
        return f"{kind} from {ends['ge']:,} to {ends['le']:,}"
    limits = " and ".join(f"{ENDS[name]} {end:,}" for name, end in ends.items())
    return f"{kind} {limits}".rstrip()


def decode(cls: type[Record], values: Any, *, strict: bool = True, group: str = "") -> Record:
    """A dataclass from nested dicts of values, or of texts if not `strict`; missing fields get their defaults.

    Raises ValueError for an unknown field, or, naming the flag, for a value that is not allowed. `group` is the dotted
    name of a nested dataclass, with a dot at its end.
    """
    if not isinstance(values, dict):
        raise ValueError(f"{flag_of(group[:-1]) if group else 'it'} is {shown(values)}, but must be an object")
    hints = typing.get_type_hints(cls, include_extras=True)
    decoded = {}
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
        is_word = any(field.name == missing and field.fact.positional for field in fields_of(cls))
        raise ValueError(f"{missing.upper() if is_word else flag_of(missing)} is missing")
    return cls(**decoded)


def check_fields(record: Any) -> None:
    """Raises ValueError like `decode` if a field's annotation does not allow its value."""
    decode(type(record), dataclasses.asdict(record))


def check_value(value: Any, hint: Any, name: str, *, strict: bool = True) -> Any:
    """The value converted to its annotation's type; ValueError, which calls it `name`, if it is not allowed.

    If not `strict`, it may be a text.
    """
    try:
        return msgspec.convert(value, hint, strict=strict, dec_hook=lambda kind, text: kind(text))
    except msgspec.ValidationError:
        raise ValueError(f"{name} is {shown(value) or repr(value)}, but must be {allowed(hint)}") from None


def differing(record: Any, base: Any) -> list[str]:
    """The flags that turn `base` into `record`, as users type them: "--network.width 64", "--replay.no-symmetries"."""
    values = ((field.name, value_at(record, field.name), value_at(base, field.name)) for field in fields_of(type(base)))
    return [shlex.join(typed(name, value)) for name, value, before in values if value != before]


def value_at(record: Any, name: str) -> Any:
    """The value of a field, by its dotted name."""
    return functools.reduce(getattr, name.split("."), record)


def typed(name: str, value: Any) -> list[str]:
    """The words of a command line that set a field to a value."""
    if value is False:
        group, dot, last = name.rpartition(".")
        return [flag_of(f"{group}{dot}no_{last}")]
    values = value if isinstance(value, tuple | list) else () if value is True else (value,)
    return [flag_of(name), *map(str, values)]


def _kind(hint: Any) -> Any:
    """The type of a value, without its notes and without None."""
    return next(part for part in _parts(hint) if part is not types.NoneType and not isinstance(part, Meta | Fact))


def _parts(hint: Any) -> list[Any]:
    """The types in an annotation, and its notes: `Meta` for ranges, and `Fact`."""
    if typing.get_origin(hint) in (Annotated, typing.Union, types.UnionType):
        return [part for each in typing.get_args(hint) for part in _parts(each)]
    return [hint]
