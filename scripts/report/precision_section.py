"""float32, bfloat16 (for products alone too) and float16: what each costs, and how far it lies from float32."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.arithmetic import bfloat16_products
from scripts.benchmarks.workloads import noisy_params
from scripts.report import network_section as networks
from scripts.report.arithmetic_section import Say, product_flops
from scripts.report.crossover import compare, describe_comparison
from scripts.report.formatting import NOTHING, seconds, three_digits
from scripts.report.machine import Machine
from scripts.report.plan import Network, Plan
from scripts.report.records import Section, Table
from scripts.report.timing import Sample, in_time, measure_in_turn

DTYPES = ("float32", "bfloat16", "float16")
_PRODUCT_SUMMED_IN_FLOAT32 = jax.jit(partial(jnp.matmul, preferred_element_type=jnp.float32))


class InDtypes(NamedTuple):
    """One work in every dtype."""

    name: str
    flops: float  # of one call
    times: Mapping[str, Sample]  # by dtype
    errors: Mapping[str, float]  # largest difference from the float32 result over the largest number of that


def precision_works(machine: Machine, plan: Plan, say: Say) -> list[InDtypes]:
    """Measures a matrix product, which comes first, and every network of the plan in each dtype, in turn."""
    works = [_product(machine, plan.precision_matrix, say)]
    for network in in_time(plan.networks, plan.limits, say):
        batch = plan.precision_tower_batch if network.kind == "tower" else plan.precision_batch
        works.append(_inference(machine, network, batch, say))
    return works


def _product(machine: Machine, size: int, say: Say) -> InDtypes:
    name = f"matrix product of n = {size:,}"
    say(name)
    x, y = np.random.default_rng(0).normal(size=(2, size, size)).astype(np.float32)
    inputs = {d: jax.device_put((jnp.asarray(x, d), jnp.asarray(y, d)), machine.device) for d in DTYPES}
    results = {dtype: np.asarray(_PRODUCT_SUMMED_IN_FLOAT32(*pair)) for dtype, pair in inputs.items()}
    times = measure_in_turn({dtype: partial(_PRODUCT_SUMMED_IN_FLOAT32, *pair) for dtype, pair in inputs.items()})
    return InDtypes(name, product_flops(size), times, _errors(results))


def _inference(machine: Machine, network: Network, batch: int, say: Say) -> InDtypes:
    name = f"{network.name} network at batch {batch:,}"
    say(name)
    params = noisy_params(networks.build(network))
    inputs = jax.device_put((params, *networks.make_inputs(network, batch)), machine.device)
    dtypes = (*DTYPES, bfloat16_products.COMPUTE_DTYPE)
    programs = {dtype: networks.make_inference(networks.build(network, dtype)) for dtype in dtypes}
    results = {dtype: np.asarray(program(*inputs)[1].policy_logits) for dtype, program in programs.items()}
    times = measure_in_turn({dtype: partial(program, *inputs) for dtype, program in programs.items()})
    return InDtypes(name, batch * sum(networks.inference_flops(params, network.board_size)), times, _errors(results))


def _errors(results: Mapping[str, Any]) -> dict[str, float]:
    exact = results["float32"]
    return {dtype: float(np.abs(found - exact).max() / np.abs(exact).max()) for dtype, found in results.items()}


def precision_section(machine: Machine, works: Sequence[InDtypes]) -> Section:
    """Chapter from `precision_works`."""
    text = (
        "The same work with arithmetic in three dtypes (the network's parameters, and the sums of the matrix product, "
        "stay float32), and with nothing but the factors in a network's trunks in bfloat16, measured in turn on "
        f"{machine.device.device_kind}. Error: the largest difference from the float32 result (of the network: of the "
        "policy logits after the recurrent inference), relative to the largest number of that result."
    )
    header = ("work", "dtype", "time", "GFLOP/s", "speed against float32", "error")
    dtypes = dict.fromkeys(dtype for work in works for dtype in work.times)
    by_dtype = {dtype: {work.name: work.times[dtype] for work in works if dtype in work.times} for dtype in dtypes}
    headlines = [
        describe_comparison(dtype, "float32", "for", compare(by_dtype[dtype], by_dtype["float32"]))
        for dtype in by_dtype
        if dtype != "float32"
    ]
    rows = [row for work in works for row in _rows(work)]
    return Section("Precision", text, [Table(header, rows)], headlines=headlines)


def _rows(work: InDtypes) -> list[tuple[str, ...]]:
    rows = []
    for dtype, sample in work.times.items():
        ratio = work.times["float32"].median / sample.median
        speed = three_digits(work.flops / sample.median / 1e9)
        shown = NOTHING if dtype == "float32" else f"{work.errors[dtype]:.1e}"
        rows.append((work.name, dtype, seconds(sample), speed, f"{ratio:.2f}x", shown))
    return rows
