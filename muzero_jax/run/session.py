"""What belongs to one call of `train.py` and not to the run: where it lies, whether to go on, and on which devices.

Nothing here changes what a run learns on a given number of devices, so none of it is stored. The flags of a session
that another call should repeat are told when it is interrupted.
"""

import shlex
from dataclasses import dataclass
from typing import Literal

from muzero_jax.storage.fields import NotNegativeFloat, PositiveFloat, PositiveInt, check_fields


@dataclass(frozen=True)
class Session:
    """One call of the command that trains."""

    run_dir: str | None = None
    """default: runs/<env>-<size>-seed<seed>"""
    resume: bool = False
    """go on from the newest checkpoint of run_dir; bit for bit on the same kind and number of devices (tested on CPUs;
    on a GPU the last bits of sums may differ)"""
    overwrite: bool = False
    """delete an existing run_dir first"""
    device: Literal["auto", "cpu", "gpu", "tpu"] = "auto"
    """what to run on; auto: the best that JAX finds"""
    devices: PositiveInt | None = None
    """devices to use; default: every CPU core, or every accelerator"""
    autotune: bool = False
    """first find the num_envs, rollout_length and batch_size with most frames/s here, at the same replay ratio"""
    autotune_minutes: PositiveFloat = 3.0
    """time for that, on top of minutes; sizes begun are measured to the end; a result is kept and found again"""
    checkpoint_minutes: NotNegativeFloat = 2.0
    """minutes between checkpoints; one is saved at every evaluation and at the end too, and with 0 only then"""
    tensorboard: bool = True
    """write TensorBoard events to run_dir too"""
    wandb: bool = False
    """log to Weights & Biases too, under the name of run_dir"""
    profile: bool = False
    """trace a few chunks, once learning has begun, into run_dir/profile; docs/performance.md tells how to read it"""
    compilation_cache: str | None = None
    """folder for XLA's persistent compilation cache (opt-in)"""


REPEATED = ("device", "devices", "checkpoint_minutes", "tensorboard", "wandb", "compilation_cache")


def validate(session: Session) -> Session:
    """The session itself if it can be held; else ValueError in one sentence that names the flag to change."""
    check_fields(session)
    if session.autotune and session.resume:
        raise ValueError(
            "--autotune chooses the sizes of a run that a checkpoint has fixed; leave it out with --resume"
        )
    return session


def flags_to_resume(session: Session) -> str:
    """The flags with which the next session goes on as this one did; defaults are left out."""
    values = {name.replace("_", "-"): getattr(session, name) for name in REPEATED if _is_given(session, name)}
    switches = {True: "--{}", False: "--no-{}"}
    flags = [
        switches[value].format(name) if isinstance(value, bool) else f"--{name} {shlex.quote(str(value))}"
        for name, value in values.items()
    ]
    return " ".join(["--resume", *flags])


def _is_given(session: Session, name: str) -> bool:
    return getattr(session, name) != getattr(Session(), name)
