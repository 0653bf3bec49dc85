"""The devices and JAX's settings, decided from the flags that name them before anything else is imported."""

import os

from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.child import PREALLOCATE
from muzero_jax.ops import devices
from muzero_jax.run import processes, profiling
from muzero_jax.run.processes import Cluster
from muzero_jax.run.session import Session
from muzero_jax.storage.fields import fields_of

SETTINGS = "device devices profile distributed coordinator num_processes process_id seeds vary".split()


def choose(arguments: list[str]) -> None:
    """Starts JAX on the devices that the flags of any command name, and joins the other processes of the run."""
    fields = {field.flag: field for field in fields_of(Session) if field.name in SETTINGS}
    given: parser.Given = {}
    for flag, values in parser.words(arguments)[1]:
        if flag in (parser.HELP, parser.HELP_ALL):
            return
        if flag in fields:
            parser.put(given, fields[flag], values)
    asked = parser.convert(Session, given)
    if asked.profile:
        profiling.disable_command_buffers()
    if asked.seeds > 1 or asked.vary:
        os.environ.setdefault(PREALLOCATE, "false")
    if asked.distributed:
        processes.join(Cluster(asked.coordinator, asked.num_processes, asked.process_id))
    devices.configure_devices(asked.devices, asked.device)
    processes.check_devices()
