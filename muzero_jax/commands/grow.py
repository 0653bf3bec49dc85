"""`train.py --grow 5,7,9`: Hex at rising sizes within one budget, each size from the weights of the one before.

A small board's games are short and its positions few, so what a stone is worth may be learned there cheaply. Whether
that beats training the last size for the whole budget was not measured.
Every size has network and optimiser of the last one; the weights must fit every board. All else is its own size's
preset.
Each size gets twice as long as the one before: of 70 minutes 5x5 gets 10, 7x7 20 and 9x9 40.
"""

import argparse
import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.commands import several
from muzero_jax.commands.command_line import play_command
from muzero_jax.commands.several import Folders, Parse, Run
from muzero_jax.commands.train_flags import BUILT_IN_ALONE, differing
from muzero_jax.run import budget
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory, shapes
from muzero_jax.storage.config import Config
from muzero_jax.storage.validation import validate

SMALLEST, LARGEST = 2, 19
"""Boards of Hex."""
DIGITS = 4
"""Digits of a share in minutes, behind the point."""


class Request(NamedTuple):
    """The request of the flags."""

    sizes: tuple[int, ...]
    first_source: str | None  # whose weights the first size begins with
    folders: Folders
    shared: list[str]  # all other flags; in them the budget of all sizes together
    given: list[str]  # that budget, if the flags name one


def read(arguments: list[str]) -> Request | None:
    """The request of the flags; None without `--grow`, or where a flag has no value.

    Raises ValueError in one sentence for sizes that cannot grow, and for flags that do not go with `--grow`.
    """
    budgets = [f"--{field.replace('_', '-')}" for field in budget.FIELDS]
    found = several.read(
        arguments, "--grow", "--seeds", "--env", "--board-size", "--offline", "--init-from", *budgets, lists=["--vary"]
    )
    if found is None or found[0].grow is None:
        return None
    known, folders, others = found
    _refuse(known)
    values = {name: getattr(known, field) for name, field in zip(budgets, budget.FIELDS, strict=True)}
    given = [word for name, value in values.items() if value is not None for word in (name, value)]
    return Request(read_sizes(known.grow), known.init_from, folders, ["--env", "hex", *others], given)


def _refuse(known: argparse.Namespace) -> None:
    if known.env not in (None, "hex"):
        raise ValueError(f"--grow grows the board of Hex, and --env {known.env} has one size; leave one of them out")
    if known.seeds not in (None, "1"):
        raise ValueError("--seeds and --grow both start several runs; give one of them, and with --grow another --seed")
    if known.vary is not None:
        raise ValueError("--vary and --grow both start several runs; give one of them")
    if known.board_size is not None:
        raise ValueError("--grow names the sizes of the board itself; leave out --board-size")
    if known.offline is not None:
        raise ValueError("--offline has games of one size; leave it out with --grow")


def read_sizes(text: str) -> tuple[int, ...]:
    """The sizes of "5,7,9"; ValueError in one sentence if they make no growing board."""
    parts = [part.strip() for part in text.split(",")]
    sizes = tuple(int(part) for part in parts if part.isdecimal())
    grows = all(one < next for one, next in pairwise(sizes))
    if len(sizes) < max(2, len(parts)) or not grows or sizes[0] < SMALLEST or sizes[-1] > LARGEST:
        raise ValueError(
            f"--grow {text} must be two or more sizes of a board from {SMALLEST} to {LARGEST}, each larger than the "
            "one before: --grow 5,7,9"
        )
    return sizes


def split_budget(config: Config, count: int) -> list[dict[str, Any]]:
    """The budgets of `count` sizes, each twice the one before; they add up to the config's.

    Raises ValueError if there is not one update, frame or iteration for the first.
    """
    budgets = {field: getattr(config, field) for field in budget.FIELDS if getattr(config, field) is not None}
    shares = {field: _shares(total, count, f"--{field.replace('_', '-')}") for field, total in budgets.items()}
    return [{field: share[number] for field, share in shares.items()} for number in range(count)]


def _shares(total: float | int, count: int, flag: str) -> list[float | int]:
    parts = 2**count - 1
    if isinstance(total, int) and total < parts:
        raise ValueError(f"{flag} {total} is too little for {count} sizes; give at least {parts}")
    ends = [total * (2**number - 1) for number in range(count + 1)]
    ends = [end // parts if isinstance(total, int) else round(end / parts, DIGITS) for end in ends]
    return [round(later - earlier, DIGITS) for earlier, later in pairwise(ends)]


def plan(request: Request, final: Config, parsed: Sequence[Config]) -> list[Run]:
    """The runs, of which each begins with the weights of the one before.

    Args:
      final: the config of the last size, with the budget of all.
      parsed: what the shared flags alone make of each size.
    """
    run_dir = request.folders.run_dir or default_folder(final, request.sizes)
    runs, source = [], request.first_source
    for config, own in zip(parsed, split_budget(final, len(request.sizes)), strict=True):
        size = f"{config.board_size}x{config.board_size}"
        network = final.network
        if network.file:  # which is not told of the built-in networks' fields, so they are left as they are
            network = replace(network, **{name: getattr(config.network, name) for name in BUILT_IN_ALONE})
        alike = {"network": network, "optimiser": final.optimiser}
        wanted = configs.with_absolute_paths(replace(config, **alike, init_from=source, **own))
        own_flags = differing(replace(wanted, init_from=None), config)
        flags = ["--board-size", str(config.board_size), *(word for flag in own_flags for word in shlex.split(flag))]
        begins_with = ["--init-from", wanted.init_from] if wanted.init_from else []
        runs.append(Run(size, run_dir / size, wanted, flags, begins_with, inherits=bool(runs)))
        source = str(runs[-1].run_dir)
    return runs


def default_folder(final: Config, sizes: Sequence[int]) -> Path:
    """Where the runs go by default: runs/hex-5-7-9[-<model>]-seed<seed>."""
    folder = run_directory.default(final)
    return folder.with_name(folder.name.replace(f"-{sizes[-1]}", f"-{'-'.join(map(str, sizes))}", 1))


def check_network(runs: Sequence[Run]) -> None:
    """Raises ValueError in one sentence unless the weights of every size fit the others. Compiles nothing."""
    last = _describe(runs[-1].config)
    for run in runs[:-1]:
        if found := shapes.difference(_describe(run.config), last, by=f"on {runs[-1].name} it"):
            raise ValueError(
                f"--grow needs a network whose weights fit every board, but on {run.name} {found}; add --network.kind "
                "fully_convolutional (without a consistency loss), or --network FILE with such a network of your own"
            )


def _describe(config: Config) -> dict[str, str]:
    """Every parameter of a run's network."""
    from muzero_jax import building  # here, because pgx starts JAX when it is imported

    return shapes.of_network(building.build_model(config, building.build_environment(config)).init)


def has_ended(run: Run, last: Run) -> bool:
    """Whether a size is left as it is; only the last one goes on with a larger budget than it has spent."""
    return several.has_spent(run) if run == last else run_directory.has_ended(run.run_dir)


def train(request: Request, parse: Parse, build: Any) -> int:
    """Trains one size after another; returns the exit status of the first that did not end well, or 0."""
    found = parse(_words(request, request.sizes[-1]))
    if found is None:  # help was printed
        return 0
    final, session, *_ = found
    several.check_flags(final, session, build, flag="--grow", each="size")
    others = [parse(_words(request, size)) for size in request.sizes[:-1]]
    runs = plan(request, final, [*(other[0] for other in others if other), final])
    for run in runs:
        validate(run.config)
    check_network(runs)
    print(f"growing     {', '.join(f'{run.name} for {budget.describe(run.config)}' for run in runs)}")
    status = several.train(runs, request.folders, request.shared, partial(has_ended, last=runs[-1]))
    if not status:
        print(f"\ngrown: play the agent of {runs[-1].name} with: {play_command(runs[-1].run_dir)}")
    return status


def _words(request: Request, size: int) -> list[str]:
    """The flags of one size, before it gets a share of the budget."""
    return [*request.shared, *request.given, "--board-size", str(size)]
