"""Configures JAX and its devices from the command line, before the command's own module is imported."""

import os
from collections.abc import Sequence

from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.constants import PREALLOCATE
from muzero_jax.apps.commands.parser import FlagTexts
from muzero_jax.config.fields import fields_of
from muzero_jax.config.session import DeviceOptions
from muzero_jax.run import processes, profiling
from muzero_jax.run.machine import configure_devices


def choose(command: str, arguments: Sequence[str]) -> None:
    """Starts JAX on the devices that the flags name, and joins the other processes of a `--distributed` run."""
    fields = {field.flag: field for field in fields_of(DeviceOptions)}
    given: FlagTexts = {}
    flags = parser.read_words(arguments).flags
    for flag, values in flags:
        if flag in fields:
            parser.put(given, fields[flag], values)
    asked = parser.convert(DeviceOptions, given)
    named = {flag for flag, _ in flags}
    if asked.profile:
        profiling.disable_command_buffers()
    if command == "train" and named & {"--seeds", "--vary"}:
        os.environ.setdefault(PREALLOCATE, "false")
    if command == "train" and asked.distributed and not named & {parser.HELP, parser.HELP_ALL}:
        processes.join(asked.coordinator, asked.num_processes, asked.process_id)
    configure_devices(asked.devices, asked.device)
    processes.check_devices()
