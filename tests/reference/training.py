"""`train.py` in the test's own process, with flags of a small run."""

from collections import namedtuple

from muzero_jax.apps.commands import parser, train
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.config.config import Config
from muzero_jax.config.session import Session

TINY = (
    "--devices 2 --network.width 8 --search.num-simulations 2 --search.max-num-considered-actions 2 "
    "--self-play.num-envs 4 --self-play.rollout-length 4 --replay.replay-length 16 --replay.min-frames 4 "
    "--replay.no-symmetries --targets.unroll-steps 1 --targets.td-steps 2 --optimiser.batch-size 4 "
    "--optimiser.updates-per-iteration 1 --evaluation.num-simulations 2 --no-tensorboard"
).split()
"""Flags of a run that is small in every way."""


def command(*arguments):
    """The exit status of the command."""
    return report_errors(train.main, [str(argument) for argument in arguments])


Settled = namedtuple("Settled", "config session base")


def settled(*arguments):
    """The run that the command would train: its config, its session, and what the flags overrode."""
    given = parser.split([str(argument) for argument in arguments], Config, Session)
    config, session, base = train.settle(given, parser.convert(Session, given))
    return Settled(config, session, base)
