"""Which arithmetic the networks compute in: the hardware's fastest that needs no further care, unless a flag says.

bfloat16 has float32's range, so a run goes on in it as it is; it is chosen wherever there are units for it. float16
overflows at 65,504 and loses gradients below 6e-8, so it is never chosen unasked: it is for GPUs with half-precision
units but none for bfloat16 (a T4), and the learner then scales its loss. Parameters are float32 always.

CPUs with AMX multiply bfloat16 matrices several times as fast as float32, but have no bfloat16 arithmetic besides. For
them there is `BFLOAT16_PRODUCTS`: float32 throughout, only what the layers of trunks multiply is rounded.
"""

from typing import NamedTuple

import jax.numpy as jnp

from muzero_jax.devices import multiplies_bfloat16, target_device

BFLOAT16_CAPABILITY = 8.0
"""The CUDA compute capability from which on GPUs have units for bfloat16; a T4 has 7.5."""

BFLOAT16_PRODUCTS = "bfloat16_products"
"""The compute dtype that is float32 but for the factors in the trunks' layers, which are rounded to bfloat16."""


class Precision(NamedTuple):
    """A compute dtype, as configs name it, and why it was chosen."""

    compute_dtype: str
    reason: str

    @property
    def scales_loss(self) -> bool:
        """Whether gradients need a scaled loss to survive."""
        return self.compute_dtype == "float16"


def dtypes(compute_dtype: str) -> tuple[jnp.dtype, jnp.dtype]:
    """What networks compute in, and what their trunks multiply. Raises TypeError for what is no dtype."""
    if compute_dtype == BFLOAT16_PRODUCTS:
        return jnp.dtype(jnp.float32), jnp.dtype(jnp.bfloat16)
    return jnp.dtype(compute_dtype), jnp.dtype(compute_dtype)


def choose(platform: str, compute_capability: str | None, *, multiplies_bfloat16: bool = False) -> Precision:
    """What `auto` means on a device.

    Args:
      platform: as JAX names it: "cpu", "gpu", "tpu" or another.
      compute_capability: of a CUDA GPU, "7.5" for example; other devices have none, or another kind of text.
      multiplies_bfloat16: whether a CPU has units for it.
    """
    if platform == "tpu":
        return Precision("bfloat16", "what a TPU multiplies")
    if platform == "cpu" and multiplies_bfloat16:
        return Precision(BFLOAT16_PRODUCTS, "this CPU has units for bfloat16 matrices, AMX, and for nothing else in it")
    if platform == "cpu":
        return Precision("float32", "half precision is no faster on a CPU without AMX")
    capability = _number(compute_capability)
    if platform != "gpu" or capability is None:
        return Precision("float32", "this device is not known to have bfloat16 units")
    if capability >= BFLOAT16_CAPABILITY:
        return Precision("bfloat16", f"compute capability {compute_capability} has units for it")
    return Precision(
        "float32",
        f"compute capability {compute_capability} has no bfloat16 units; --network.compute-dtype float16 may be faster",
    )


def resolve(compute_dtype: str) -> Precision:
    """What a config asks for; for "auto", what the device computes best in that programs are made for."""
    if compute_dtype != "auto":
        return Precision(compute_dtype, "as network.compute_dtype says")
    device = target_device()
    capability = getattr(device, "compute_capability", None)
    return choose(device.platform, capability, multiplies_bfloat16=multiplies_bfloat16())


def _number(text: object) -> float | None:
    """A ROCm GPU calls itself "gfx90a"."""
    try:
        return float(str(text))
    except ValueError:
        return None
