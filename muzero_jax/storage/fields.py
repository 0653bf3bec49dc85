"""The values that a field of a frozen dataclass may have, by its annotation: `width: PositiveInt = 128`.

A constraint is `Annotated` to a field's type, where the command line's parser never sees it. One walker compares values
with annotations; it checks records before use and JSON while it is read.
"""

import dataclasses
import reprlib
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from muzero_jax.own.faults import shown

Record = TypeVar("Record")


class Constraint(NamedTuple):
    """A demand on a value beyond its type."""

    holds: Callable[[Any], bool]  # False for a nan
    sentence: str  # the end of a refusal: "--seed is -1, but ..."


LARGEST_BUDGET = 100_000
"""Simulations of one search: its tree has a node for each, in every game at once."""

POSITIVE = Constraint(lambda number: number > 0, "must be positive")
NOT_NEGATIVE = Constraint(lambda number: number >= 0, "must not be negative")
FINITE = Constraint(lambda number: number < float("inf"), "must be finite")
COUNTED = Constraint(lambda number: number < 2**31, "must be below 2^31")


def at_most(limit: int) -> Constraint:
    """The demand that a number is no larger than this."""
    return Constraint(lambda number: number <= limit, f"must be at most {limit}")


PositiveInt = Annotated[int, POSITIVE, COUNTED]
PositiveFloat = Annotated[float, POSITIVE, FINITE]
Name = Annotated[str, Constraint(lambda text: bool(text.strip()), "must not be empty")]
NotNegativeInt = Annotated[int, NOT_NEGATIVE, COUNTED]
NotNegativeFloat = Annotated[float, NOT_NEGATIVE, FINITE]
UnitInterval = Annotated[float, Constraint(lambda number: 0 <= number <= 1, "must lie between 0 and 1")]
Simulations = Annotated[int, POSITIVE, at_most(LARGEST_BUDGET)]


def check_value(value: Any, hint: Any, name: str) -> None:
    """Raises ValueError, in one sentence that calls the value `name`, if the annotation does not allow it."""
    if complaint := _complaint(value, hint):
        raise ValueError(f"{name} is {shown(value) or repr(value)}, but {complaint}")


def check_fields(record: Any) -> None:
    """Raises ValueError, in one sentence that names the flag, if a field's value is not what its annotation allows."""
    _check(type(record), dataclasses.asdict(record))


def from_json_values(cls: type[Record], values: Any) -> Record:
    """A dataclass from the objects that `json.loads` makes of `dataclasses.asdict`; missing fields take defaults.

    Raises ValueError, in one sentence, for an unknown field or a value that its annotation does not allow.
    """
    _check(cls, values)
    return _build(cls, values)


def _check(cls: Any, values: Any, prefix: str = "") -> None:
    """Compares every value with the annotation of its field."""
    if not isinstance(values, dict):
        raise ValueError(f"it holds {reprlib.repr(values)} where it should hold the fields of {cls.__name__}")
    hints = typing.get_type_hints(cls, include_extras=True)
    if unknown := sorted(set(values) - set(hints)):
        raise ValueError(
            f"it has a field {reprlib.repr(unknown[0])} that this version of muzero_jax does not know; another version "
            "made it"
        )
    for name, value in values.items():
        if dataclasses.is_dataclass(hints[name]):
            _check(hints[name], value, f"{prefix}{name}.")
        else:
            check_value(value, hints[name], f"--{prefix}{name}".replace("_", "-"))


def _build(hint: Any, value: Any) -> Any:
    """Dataclasses for objects, tuples for lists."""
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return hint(**{name: _build(hints[name], item) for name, item in value.items()})  # type: ignore
    return tuple(value) if isinstance(value, list) else value


def _complaint(value: Any, hint: Any) -> str | None:
    """Why an annotation forbids a value, as the end of a sentence; None if it allows it."""
    origin, options = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        constraints = (note for note in hint.__metadata__ if isinstance(note, Constraint))  # others are tyro's
        unmet = (constraint.sentence for constraint in constraints if not constraint.holds(value))
        return _complaint(value, options[0]) or next(unmet, None)
    if origin is Literal:
        return None if value in options else f"must be one of {', '.join(options)}"
    if origin is tuple:
        if not isinstance(value, tuple | list):  # JSON has no tuples
            return "must be a list"
        complaint = next(filter(None, (_complaint(item, options[0]) for item in value)), None)
        return complaint and f"each {complaint}"
    if origin in (typing.Union, types.UnionType):
        complaints = [_complaint(value, option) for option in options]
        return None if None in complaints else complaints[0]
    return None if _is_a(value, hint) else f"must be of type {hint.__name__}"


def _is_a(value: Any, kind: type) -> bool:
    """`isinstance`, but an int is a float too and a bool is no number."""
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, (int, float) if kind is float else kind)
