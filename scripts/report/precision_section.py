"""float32, bfloat16 and float16: what each costs and how far its results lie from float32's."""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from scripts.report import network_section as networks
from scripts.report.arithmetic_section import PRODUCT, Say, product_flops
from scripts.report.crossover import compare, describe_comparison
from scripts.report.formatting import NOTHING, seconds, three_digits
from scripts.report.machine import Machine
from scripts.report.plan import Network, Plan
from scripts.report.records import Section, Table
from scripts.report.timing import Candidate, Sample, in_time, measure_in_turn

DTYPES = ("float32", "bfloat16", "float16")
TOWER_BATCH = 64


def precision_section(machine: Machine, plan: Plan, say: Say) -> Section:
    """Measures a matrix product and every network of the plan in each dtype, in turn."""
    work = f"matrix product of n = {plan.precision_matrix:,}"
    say(work)
    products, results = _products(machine, plan.precision_matrix)
    times = {work: measure_in_turn(products)}
    rows = _rows(work, times[work], results, product_flops(plan.precision_matrix))
    for network in in_time(plan.networks, plan.limits, say):
        batch = min(plan.precision_batch, TOWER_BATCH) if network.kind == "tower" else plan.precision_batch
        work = f"{network.name} network at batch {batch:,}"
        say(work)
        candidates, results, flops = _inferences(machine, network, batch)
        times[work] = measure_in_turn(candidates)
        rows += _rows(work, times[work], results, flops * batch)
    text = (
        "The same work with arithmetic in three dtypes (the network's parameters stay float32), measured in turn on "
        f"{machine.device.device_kind}. Error: the largest difference from the float32 result (of the network: of the "
        "policy logits after the recurrent inference), relative to the largest number of that result."
    )
    header = ("work", "dtype", "time", "GFLOP/s", "speed against float32", "error")
    by_dtype = {dtype: {work: row[dtype] for work, row in times.items()} for dtype in DTYPES}
    headlines = [
        describe_comparison(dtype, "float32", "for", compare(by_dtype[dtype], by_dtype["float32"]))
        for dtype in DTYPES[1:]
    ]
    return Section("Precision", text, [Table(header, rows)], headlines=headlines)


def _products(machine: Machine, size: int) -> tuple[dict[str, Candidate], dict[str, np.ndarray]]:
    x, y = np.random.default_rng(0).normal(size=(2, size, size)).astype(np.float32)
    inputs = {d: jax.device_put((jnp.asarray(x, d), jnp.asarray(y, d)), machine.device) for d in DTYPES}
    candidates: dict[str, Candidate] = {dtype: partial(PRODUCT, *pair) for dtype, pair in inputs.items()}
    return candidates, {dtype: np.asarray(PRODUCT(*pair), np.float32) for dtype, pair in inputs.items()}


def _inferences(machine: Machine, network: Network, batch: int):
    """Candidates and policy logits by dtype, and operations a position."""
    params = networks.make_params(networks.build(network))
    inputs = jax.device_put((params, *networks.make_inputs(network, batch)), machine.device)
    programs = {dtype: networks.make_inference(networks.build(network, dtype)) for dtype in DTYPES}
    candidates: dict[str, Candidate] = {dtype: partial(program, *inputs) for dtype, program in programs.items()}
    results = {dtype: np.asarray(program(*inputs)[1].policy_logits) for dtype, program in programs.items()}
    return candidates, results, sum(networks.inference_flops(params, network.board_size))


def _rows(work: str, times: Mapping[str, Sample], results: Mapping[str, np.ndarray], flops: float) -> list:
    exact = results["float32"]
    rows = []
    for dtype, sample in times.items():
        error = float(np.abs(results[dtype] - exact).max() / np.abs(exact).max())
        ratio = times["float32"].median / sample.median
        speed = three_digits(flops / sample.median / 1e9)
        shown = NOTHING if dtype == "float32" else f"{error:.1e}"
        rows.append((work, dtype, seconds(sample), speed, f"{ratio:.2f}x", shown))
    return rows
