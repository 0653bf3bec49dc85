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
from muzero_jax.storage.validation import validate

Value = int | float
DIGITS = 3
"""Digits that a found number keeps, so that a flag can be typed."""


class Span(NamedTuple):
    """The values of a field that is a number."""

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
        return f"--{self.field.replace('_', '-')}"


class Choice(NamedTuple):
    """The values of a field that has few."""

    field: str
    values: tuple[Value, ...]
    so_far: str

    @property
    def flag(self) -> str:
        """The field's flag of `train.py`."""
        return f"--{self.field.replace('_', '-')}"


Row = Span | Choice


def small_board(config: Config) -> list[Row]:
    """The rows of small boards, whose games are learned from their outcome. Figures are of docs/lab-notebook.md."""
    rate, random_moves = config.optimiser.learning_rate, config.self_play.exploration
    return [
        Span(
            "optimiser.learning_rate",
            rate / 4,
            rate * 4,
            True,
            "2e-3, with batches of 512: 70% where smaller ones scored 49%; Muon wants some 5 times more",
        ),
        Span("optimiser.weight_decay", 1e-5, 1e-2, True, "never varied; AdamW's customary 1e-4"),
        Span("optimiser.reward_weight", 0.5, 8.0, True, "3: only the last move of a game has a reward"),
        Span("optimiser.policy_weight", 0.5, 2.0, True, "never varied; with a playout cap less may be better"),
        Span("optimiser.reconstruction_weight", 2.0, 40.0, True, "0 never learned the rules; 10 does"),
        Span("search.value_scale", 0.1, 1.0, True, "0.4 with Q as it is; mctx's 0.1 is meant for rescaled Q"),
        Choice("search.max_num_considered_actions", (4, 8, 16), "8 of 16 simulations; never varied"),
        Span(
            "self_play.exploration",
            random_moves / 3,
            min(0.5, random_moves * 3),
            True,
            "two random moves a game beat one on Hex 5x5; tic-tac-toe without mistakes took half of all",
        ),
        Span("replay.end_weight", 1, 8, True, "4: search improves nothing before the dynamics has seen a win"),
        Span("targets.unroll_steps", 2, 6, False, "4; each step more costs time and memory"),
        Span("targets.search_value_weight", 0.0, 0.5, False, "0.25 scored 80% and 0 84% on Hex 5x5, without canonical"),
    ]


def tower(config: Config) -> list[Row]:
    """The rows of larger boards, whose values bootstrap. Nothing was ever varied there but what a row says."""
    rate, random_moves = config.optimiser.learning_rate, config.self_play.exploration
    return [
        Span("optimiser.learning_rate", rate / 4, rate * 4, True, "the config's default"),
        Span("optimiser.weight_decay", 1e-5, 1e-2, True, "AdamW's customary 1e-4"),
        Span("optimiser.reward_weight", 0.5, 8.0, True, "small boards' 3"),
        Span("optimiser.policy_weight", 0.5, 2.0, True, "with a playout cap less may be better"),
        Span("search.value_scale", 0.1, 1.0, True, "small boards' 0.4"),
        Span("self_play.exploration", random_moves / 3, min(0.5, random_moves * 3), True, "about one move a game"),
        Span("replay.end_weight", 1, 8, True, "small boards' 4"),
        Span("targets.td_lambda", 0.8, 1.0, False, "0.95 in Connect Four, 1 where games are short"),
    ]


def space(config: Config, fields: Sequence[str] = ()) -> list[Row]:
    """The rows of a game's settings, each widened to hold their own value; `fields` chooses some of them.

    Raises ValueError, in one sentence, for a field that has no row.
    """
    imagines, learns_outcomes = config.network.imagines_observations, config.targets.td_lambda == 1.0
    rows = small_board(config) if imagines or learns_outcomes else tower(config)
    rows = [row for row in rows if row.field not in _without_effect(config)]
    wanted = [name.removeprefix("--").replace("-", "_") for name in fields]
    known = [row.field for row in rows]
    if unknown := [name for name in wanted if name not in known]:
        raise ValueError(f"--fields: there is no range for {unknown[0]}; choose of {', '.join(known)}")
    own = flat(config)
    return [_holding(row, own[row.field]) for row in rows if not wanted or row.field in wanted]


def _without_effect(config: Config) -> set[str]:
    """The fields that change nothing in such a run."""
    unrolls = config.model != "rules"
    ignored = set() if unrolls else {"targets.unroll_steps", "optimiser.reward_weight"}
    if not (unrolls and config.optimiser.reconstruction_weight):
        ignored.add("optimiser.reconstruction_weight")
    if config.search.policy != "gumbel":
        ignored |= {"search.value_scale", "search.max_num_considered_actions"}
    return ignored


def _holding(row: Row, own: Value) -> Row:
    """The row with the base's own value among its values."""
    if isinstance(row, Choice):
        return row if own in row.values else row._replace(values=tuple(sorted((*row.values, own))))
    if row.log and own <= 0:  # 0 turns a thing off and has no place on a log scale
        return row._replace(low=0 if row.is_whole else 0.0, log=False)
    return row._replace(low=min(row.low, own), high=max(row.high, own))


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
