"""The forms in which a kind of device computes fastest what can be computed in several: one table for all of them.

They agree but for rounding. What a layer or an array operation decides for itself stands in `ops`; the search engine is
a setting, which `presets` chooses.
"""

from typing import Literal, NamedTuple

from muzero_jax.ops import devices


class Forms(NamedTuple):
    """The forms for one kind of device."""

    searchsorted: Literal["scan", "scan_unrolled"]  # `jnp.searchsorted`'s method, where windows are sampled
    written_out: bool  # returns without a loop: one kernel. On a CPU a loop is as fast, and compiled sooner
    abreast: Literal["always", "dense", "never"]  # which networks imagine a window's moves at once


BY_KIND = {
    "CPU": Forms("scan", written_out=False, abreast="never"),
    # These two are busy with larger Hex anyway, and imagining abreast costs a tenth more there.
    "TPU": Forms("scan_unrolled", written_out=True, abreast="dense"),
    "small GPU": Forms("scan_unrolled", written_out=True, abreast="dense"),
    "large GPU": Forms("scan_unrolled", written_out=True, abreast="always"),
}


def best() -> Forms:
    """The forms for the device that programs are made for."""
    return BY_KIND[devices.kind()]
