"""Measures a trained agent: python experiments/evaluate.py match --run runs/hex-5-seed0 --opponent mcts:1000

The agent searches without noise. Each command has its own flags: python experiments/evaluate.py match --help
"""

import json
from collections.abc import Callable, Sequence
from functools import partial

from muzero_jax.agent import load_agent
from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.evaluate_flags import CommandFlags, GameFlags
from muzero_jax.apps.commands.measures import COMMANDS, Answer
from muzero_jax.apps.evaluation import tables
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.own.files import make_new_folder
from muzero_jax.own.trust import Trust
from muzero_jax.run import charts, compilation_cache
from muzero_jax.run.machine import count_devices


def main(arguments: list[str], build: Callable | None = None) -> int:
    """Runs the command; returns its exit status.

    Args:
      build: makes your own game, network or algorithm, as `make_algorithm` makes the configured one.
    """
    asked, answer = parse(arguments)
    num_devices = count_devices(asked.devices)
    if plot := getattr(asked, "plot", None):
        charts.check_path(plot)
    if isinstance(asked, GameFlags) and asked.sgf is not None:
        make_new_folder(asked.sgf, "--sgf")
    if asked.compilation_cache:
        compilation_cache.enable()
    mesh = make_mesh(num_devices)
    load = partial(
        load_agent,
        num_simulations=asked.num_simulations,
        build=build,
        board_size=asked.board_size,
        trust=Trust(all_code=asked.trust_code),
    )
    found = answer(asked, mesh, load)
    print(json.dumps(found.result) if asked.json else found.text or tables.fields(found.result), flush=True)
    if plot and found.draw:  # after printing the result, because the disk may be full
        found.draw(plot)
    return 0


def parse(arguments: Sequence[str]) -> tuple[CommandFlags, Callable[..., Answer]]:
    """The flags of the command that the first word names, and the function that answers it; `--help` prints and exits.

    Raises ValueError for a mistake in the command line.
    """
    name, *others = arguments or [parser.HELP]
    if name in ("-h", parser.HELP):
        lines = (f"  {name:<16}{(flags.__doc__ or '').splitlines()[0]}" for name, (flags, _) in COMMANDS.items())
        print("\n".join([(__doc__ or "").strip(), "", *lines, "", f"COMMAND {parser.HELP} shows the flags."]))
        raise SystemExit(0)
    if name not in COMMANDS:
        raise ValueError(f"{name!r} is no command of evaluate.py; choose {', '.join(COMMANDS)}")
    flags, answer = COMMANDS[name]
    return parser.read(flags, others), answer
