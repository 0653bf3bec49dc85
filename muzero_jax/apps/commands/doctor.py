"""Says why a run does not learn: python experiments/doctor.py runs/hex-5-seed0

It reads the run's records, plays a few games and makes an update with its last weights, and prints what is unusual,
with its evidence and what to try. It writes nothing, so a run in progress can be examined too. It takes about a minute.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from muzero_jax.apps.commands import parser
from muzero_jax.apps.doctor.doctor import examine
from muzero_jax.config.fields import Device, Fact
from muzero_jax.own.trust import Trust
from muzero_jax.run import compilation_cache


@dataclass(frozen=True, kw_only=True)
class DoctorFlags:
    """The flags of the doctor."""

    run: Annotated[Path, Fact(positional=True)]
    """the run directory"""
    json: bool = False
    """print the findings, and everything that was measured, as one JSON object"""
    trust_code: bool = False
    """run the Python files that somebody else's run names; read these files first"""
    device: Device = "auto"
    """kind of device to run on; auto: the best that JAX finds"""
    compilation_cache: bool = True
    """keep compiled programs in your cache folder, so that the same command starts in seconds the next time"""


def main(arguments: list[str], build: Callable | None = None) -> int:
    """Runs the command; returns its exit status, 0 whatever it found.

    Args:
      build: makes your own game, network or algorithm, as `make_algorithm` makes the configured one.
    """
    asked = parser.read(DoctorFlags, arguments, __doc__)
    if asked.compilation_cache:
        compilation_cache.enable()
    trust = Trust(all_code=asked.trust_code)
    found = examine(asked.run, build=build, trust=trust, say=lambda line: print(line, file=sys.stderr, flush=True))
    print(json.dumps(found.result()) if asked.json else found.text(), flush=True)
    return 0
