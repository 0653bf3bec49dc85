"""The networks' compute dtype: the device's fastest safe one, unless a flag chooses another.

bfloat16 has float32's range, so it is the default wherever the hardware has units for it. float16 overflows at 65,504
and loses gradients below 6e-8, so only a flag chooses it; it is for GPUs without bfloat16 units (a T4), and the learner
then scales its loss. Parameters are always float32.

CPUs with AMX multiply bfloat16 matrices several times as fast as float32, but do everything else faster in float32.
For them there is `bfloat16_products`: float32, except that the trunks' layers round the factors of their products.
"""

import re
from typing import NamedTuple

from muzero_jax.ops import bfloat16_products
from muzero_jax.ops.devices import METAL, has_amx, target_device

BFLOAT16_CAPABILITY = 8.0
"""The lowest CUDA compute capability with bfloat16 units; a T4 has 7.5."""


class Precision(NamedTuple):
    """A compute dtype, by its name in configs, and why it was chosen."""

    compute_dtype: str
    reason: str

    @property
    def scales_loss(self) -> bool:
        """Whether the loss must be scaled, because small gradients would become 0."""
        return self.compute_dtype == "float16"


def choose(platform: str, compute_capability: str | None, *, amx: bool = False) -> Precision:
    """The precision that "auto" stands for on a device.

    Args:
      platform: JAX's name of the platform: "cpu", "gpu", "tpu", "mps" (Apple's GPUs) or another.
      compute_capability: of a CUDA GPU, such as "7.5"; other devices have None or other text ("gfx90a").
      amx: whether a CPU has units for products of bfloat16 matrices that XLA uses.
    """
    if platform == "tpu":
        return Precision("bfloat16", "the format that a TPU multiplies")
    if platform == "cpu" and amx:
        return Precision(bfloat16_products.COMPUTE_DTYPE, "AMX multiplies bfloat16; all else is faster in float32")
    if platform == "cpu":
        return Precision("float32", "half precision is no faster on a CPU without AMX or with jaxlib before 0.9")
    if platform == METAL:
        return Precision("float32", "half precision has not been tried on Apple's GPUs")
    if platform != "gpu" or not re.fullmatch(r"\d+\.\d+", str(compute_capability)):
        return Precision("float32", "this device is not known to have bfloat16 units")
    if float(str(compute_capability)) >= BFLOAT16_CAPABILITY:
        return Precision("bfloat16", f"compute capability {compute_capability} has units for it")
    no_units = f"compute capability {compute_capability} has no bfloat16 units"
    return Precision("float32", f"{no_units}; --network.compute-dtype float16 may be faster")


def resolve(compute_dtype: str) -> Precision:
    """The precision for a config's `network.compute_dtype`; "auto" is resolved for the target device."""
    if compute_dtype != "auto":
        return Precision(compute_dtype, "as network.compute_dtype says")
    device = target_device()
    capability = getattr(device, "compute_capability", None)
    return choose(device.platform, capability, amx=has_amx())
