"""The options of one call of `train.py` that are not part of the run's config: its folder, `--resume`, devices, ...

Most do not change what is learned; the number of devices changes the random numbers, `--autotune` the sizes. They are
not stored. An interrupted session prints the flags with which the next one continues.
"""

import shlex
from dataclasses import dataclass
from typing import Annotated

from muzero_jax.config.fields import (
    Device,
    DeviceCount,
    Fact,
    Name,
    NotNegativeFloat,
    PositiveFloat,
    PositiveInt,
    check_fields,
    names,
    typed,
)

Common = Fact(common=True)
Single = Fact(common=True, single=True)
Repeated = Fact(repeated=True)
Chosen = Fact(repeated=True, common=True)


@dataclass(frozen=True)
class DeviceOptions:
    """The options that decide on which devices JAX starts, so they are read before anything else."""

    device: Annotated[Device, Chosen] = "auto"
    """kind of device to run on; auto: the best that JAX finds; gpu: also an Apple GPU, with the extra metal"""
    devices: Annotated[DeviceCount | None, Chosen] = None
    """number of devices to use; default: every CPU core, or every accelerator"""
    distributed: Annotated[bool, Fact(single=True)] = False
    """train together with other processes, on this machine or on others (docs/many-machines.md)"""
    coordinator: str | None = None
    """HOST:PORT of process 0; default: found through Slurm, Open MPI, Kubernetes or the TPU pod"""
    num_processes: PositiveInt | None = None
    """number of processes; default: found in the same way"""
    process_id: int | None = None
    """number of this process, from 0; default: found in the same way"""
    profile: Annotated[bool, Fact(single=True)] = False
    """trace a few chunks, once learning has begun, into run_dir/profile; docs/benchmark.md says how to read it"""


@dataclass(frozen=True)
class Session(DeviceOptions):
    """One call of the command that trains."""

    run_dir: Annotated[Name | None, Single] = None
    """folder of the run; default: runs/<env>[-<size>][-<model>][-offline]-seed<seed>"""
    config: Annotated[Name | None, Common] = None
    """begin a new run with the settings in this file, such as the config.json of another run, instead of a preset"""
    seeds: Annotated[PositiveInt, Common] = 1
    """train this many runs, with the seed and the following ones, one after another, and compare them"""
    vary: Annotated[tuple[tuple[str, ...], ...], Single] = ()
    """train a run for each value of a field, for example --vary optimiser.learning-rate 1e-3 2e-3, and compare them.
    Given twice: for each pair of values. With --seeds: several runs of each"""
    resume_if_any: Annotated[bool, Fact(single=True)] = False
    """continue the run in run_dir, or begin it if there is none: a single command for a scheduler that restarts jobs"""
    resume: Annotated[bool, Single] = False
    """continue from the newest checkpoint of run_dir; bit for bit on the same kind and number of devices (tested on
    CPUs; on a GPU the last bits of sums may differ)"""
    overwrite: Annotated[bool, Single] = False
    """delete an existing run_dir first"""
    autotune: Annotated[bool, Single] = False
    """first find the num_envs, rollout_length and batch_size with the most frames/s here, at the same replay ratio"""
    autotune_minutes: PositiveFloat = 3.0
    """minutes for --autotune, on top of the budget; a measurement that has begun is finished"""
    checkpoint_minutes: Annotated[NotNegativeFloat, Repeated] = 2.0
    """minutes between checkpoints. A checkpoint is also saved at every evaluation and at the end; 0: only then"""
    tensorboard: Annotated[bool, Repeated] = True
    """also write TensorBoard events to run_dir"""
    wandb: Annotated[bool, Repeated._replace(single=True)] = False
    """log to Weights & Biases too, under the name of run_dir"""
    cuda_graphs: Annotated[bool, Repeated] = True
    """on an NVIDIA GPU, run each chunk as one CUDA graph, if CUDA 12.9 and jaxlib 0.8.3 or newer are installed. It
    is off with --profile, which cannot look inside a graph (docs/accelerators.md)"""
    compilation_cache: Annotated[bool, Repeated] = True
    """keep compiled programs in the user's cache folder, so that the next start takes seconds"""
    trust_code: bool = False
    """run the Python files that somebody else's run or agent names; read these files first"""
    verbose: Annotated[bool, Repeated] = False
    """print the whole config and the parts of the memory plan"""


def validate_session(session: Session) -> Session:
    """Returns the session if its options are valid together; else ValueError, which names the flag to change."""
    check_fields(session)
    if session.distributed and session.run_dir is None:
        raise ValueError("--distributed needs --run-dir, a folder that all processes see")
    if session.distributed and (session.autotune or session.profile):
        raise ValueError("--autotune and --profile are for one process; leave them out with --distributed")
    if session.config and session.resume and not session.resume_if_any:
        raise ValueError("--config is for a new run, and --resume continues with the old settings; leave one out")
    if (session.resume or session.resume_if_any) and session.overwrite:
        raise ValueError("--overwrite begins again and --resume continues; give one of them")
    if session.autotune and session.resume and not session.resume_if_any:
        raise ValueError("--autotune chooses sizes that a checkpoint has fixed; leave it out with --resume")
    return session


def flags_to_resume(session: Session) -> str:
    """The flags with which the next session continues like this one; defaults are left out."""
    values = {name: getattr(session, name) for name in names(Session, "repeated")}
    changed = (typed(name, value) for name, value in values.items() if value != getattr(Session(), name))
    return shlex.join(["--resume", *(word for words in changed for word in words)])
