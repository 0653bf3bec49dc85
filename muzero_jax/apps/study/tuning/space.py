"""The space that a search over settings draws from: one row a field, with its range and what it did so far.

Trials are equal in frames. So no field is here that buys strength with time alone, such as the simulations of a move,
the network's width or updates an iteration: more would win at any price. Fields are numbers that leave the network and
the budget as they are. Ranges lie around the base's own value where that differs from game to game.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from muzero_jax.own.faults import shown
from muzero_jax.storage import config as configs
from muzero_jax.storage.config import Config, flat
from muzero_jax.storage.fields import Field, fields_of, flag_of
from muzero_jax.storage.validation import validate

Value = int | float
DIGITS = 3
"""Digits that a found number keeps, so that a flag can be typed."""


class Row(NamedTuple):
    """The values of one field."""

    field: str  # as `config.flat` names it
    low: Value
    high: Value
    log: bool  # drawn evenly on a log scale
    so_far: str  # what is known of it

    @property
    def is_whole(self) -> bool:
        """Whether the field holds whole numbers."""
        return isinstance(self.low, int)

    @property
    def flag(self) -> str:
        """The field's flag of `train.py`."""
        return flag_of(self.field)


def space(config: Config, fields: Sequence[str] = ()) -> list[Row]:
    """The rows of a game's settings, each widened to hold their own value; `fields` chooses some of them.

    Raises ValueError, in one sentence, for a field that has no row.
    """
    ignored = _without_effect(config)
    tuned = [field for field in fields_of(Config) if field.fact.tuned and field.name not in ignored]
    wanted, known = [name.removeprefix("--").replace("-", "_") for name in fields], [field.name for field in tuned]
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"--fields: there is no range for {unknown[0]}; choose of {', '.join(known)}")
    own = flat(config)
    return [_row(field, own[field.name]) for field in tuned if not wanted or field.name in wanted]


def _without_effect(config: Config) -> set[str]:
    """The fields that change nothing in such a run, or that larger boards, whose values bootstrap, leave alone."""
    unrolls, ignored = config.model != "rules", set[str]()
    if config.network.imagines_observations or config.targets.td_lambda == 1.0:  # games are learned from their outcome
        ignored.add("targets.td_lambda")
    else:
        ignored |= {"search.max_num_considered_actions", "targets.unroll_steps", "targets.search_value_weight"}
    if not unrolls:
        ignored |= {"targets.unroll_steps", "optimiser.reward_weight"}
    if not (unrolls and config.optimiser.reconstruction_weight):
        ignored.add("optimiser.reconstruction_weight")
    if config.search.policy != "gumbel":
        ignored |= {"search.value_scale", "search.max_num_considered_actions"}
    return ignored


def _row(field: Field, own: Value) -> Row:
    """The row of a field, with the base's own value in its range."""
    low, high, so_far, log, is_relative, most = field.fact.tuned  # type: ignore
    if is_relative:
        low, high = low * own, min(most, high * own)
    if log and own <= 0:  # 0 turns a thing off and has no place on a log scale
        low, log = type(own)(0), False
    return Row(field.name, min(low, own), max(high, own), log, so_far)


def own_values(config: Config, rows: Sequence[Row]) -> dict[str, Value]:
    """The values that a config has in the rows' fields."""
    own = flat(config)
    return {row.field: own[row.field] for row in rows}


def with_values(config: Config, values: dict[str, Any]) -> Config:
    """The config with other values of some fields, rounded to a few digits where they are not its own.

    A study's trials may come from a stranger, so they change numbers that have a range and nothing else: never a path,
    whose file would then run. Raises ValueError in one sentence if no run can be made of it.
    """
    own, varied = flat(config), {row.field for row in space(config)}
    for name, value in values.items():
        if name not in varied:
            raise ValueError(f"a trial of this study changes {shown(name)}, which has no range; choose another --study")
        if not isinstance(value, int | float):
            raise ValueError(f"a trial has {shown(value)} for {name}, which is no number; choose another --study")
    changed = {name: _rounded(value) for name, value in values.items() if value != own[name]}
    return validate(configs.with_values(config, changed))


def _rounded(value: Value) -> Value:
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
