"""`scripts/preview.py`: the limit by hand, and that programs compile for accelerators."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec

import jax
import jax.numpy as jnp
import pytest

from muzero_jax import presets
from muzero_jax.algorithm import make_algorithm
from muzero_jax.ops.devices import made_for
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.run import cuda_graphs
from muzero_jax.run.program import abstract_progress, make_chunk, make_init
from scripts import preview, previews
from scripts.benchmarks.report import ROOT
from scripts.previewing import targets
from scripts.previewing.targets import TARGETS
from tests.reference import tiny_run


def test_the_largest_bound_is_the_limit():
    target = TARGETS["t4"]._replace(peak={"float32": 1e12, "bfloat16": 2e12}, bandwidth=1e9, launch=1e-3, wait=1e-2)
    host = {"starts": 20, "waits": 2}  # for two iterations
    seconds = preview.seconds(2e9, 5e6, host, target, "float32")
    assert seconds == pytest.approx({"FLOPs": 2e-3, "bytes": 5e-3, "launches": 20e-3})
    found = preview.at_best(seconds, frames=100)
    assert found == {"limit": "launch-bound", "frames_per_second": pytest.approx(5000), "busy": pytest.approx(0.25)}


TINY = replace(tiny_run.CONFIG, env="hex", board_size=3)


@pytest.mark.parametrize(
    ("kind", "engine"),
    [pytest.param("observation", "own", marks=pytest.mark.slow), ("fully_convolutional", "passes")],
)
def test_programs_of_every_kind_lower_for_gpus_and_tpus(kind, engine):
    network, search = replace(TINY.network, kind=kind, width=8), replace(TINY.search, engine=engine)
    mesh = make_mesh(1)
    with made_for(TARGETS["t4"]):
        algorithm = make_algorithm(replace(TINY, network=network, search=search))
        traced = make_chunk(algorithm, mesh).trace(make_init(algorithm, 0, mesh).eval_shape(), abstract_progress(1))
        for platform in ("cuda", "tpu"):
            assert "stablehlo.while" in traced.lower(lowering_platforms=(platform,)).as_text()


@pytest.mark.parametrize(("env", "board_size"), [("tic_tac_toe", None), ("hex", 5), ("connect_four", None)])
def test_a_small_boards_program_can_be_one_graph_on_a_gpu_and_adds_nothing_by_atomics(env, board_size):
    """As `train.py` builds it there, but for the number of games: a convolution would exclude it from one graph."""
    with made_for(TARGETS["h100"]):
        config = presets.preset(env, board_size, "large GPU")
        play, optimiser = replace(config.self_play, num_envs=8), replace(config.optimiser, batch_size=8)
        algorithm, mesh = make_algorithm(replace(config, self_play=play, optimiser=optimiser)), make_mesh(1)
        traced = make_chunk(algorithm, mesh).trace(make_init(algorithm, 0, mesh).eval_shape(), abstract_progress(2))
        lowered = traced.lower(lowering_platforms=("cuda",))
    assert not cuda_graphs.has_convolutions(lowered)
    assert adding_scatters(lowered.as_text()) == []


def test_the_scatter_of_a_usual_look_ups_gradient_is_seen():
    table, index = jnp.ones((3, 2)), jnp.zeros(4, jnp.int32)
    usual = jax.jit(jax.grad(lambda table: table[index].sum())).lower(table)
    assert len(adding_scatters(usual.as_text())) == 1


def adding_scatters(text):
    """The scatters of a lowered program that add numbers to places which may be the same."""
    scatters = re.findall(r'"stablehlo\.scatter"\([^\n]*\n(?:.*\n)*?\s*\}\) : [^\n]*', text)
    return [each for each in scatters if "stablehlo.add" in each and "unique_indices = true" not in each]


SMALL = (
    "--env hex --board-size 3 --network.width 16 --network.num-bins 3 "
    "--search.num-simulations 4 --search.max-num-considered-actions 4 "
    "--self-play.num-envs 8 --self-play.rollout-length 4 --replay.replay-length 32 --replay.min-frames 12 "
    "--targets.unroll-steps 2 --targets.td-steps 4 --optimiser.batch-size 8 --optimiser.updates-per-iteration 2"
)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["t4", "h100", "v5e"])
def test_a_tiny_program_compiles_for_accelerators(target):
    package = targets.PACKAGES[TARGETS[target].platform]
    if find_spec(package) is None:
        pytest.skip(f"needs {package} (pip install -e '.[preview]')")
    command = [sys.executable, "scripts/preview.py", "--json", "--target", target, *SMALL.split()]
    record = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    assert record["fits"] and record["iteration"]["flops"] > 0
    if target != "v5e":  # the whole chunk of two iterations is one graph, for which the host never waits
        assert (record["host"]["starts"], record["host"]["waits"], record["host"]["outside"]) == (1, 0, [])
    assert record["iteration"]["kernels"] > 4 * 4 * 2  # moves, simulations, levels


def test_a_row_of_a_tpu_is_made_without_the_counts_of_a_gpus_host():
    counts = {"kernels": 1.0, "size": 2e9, "scatter_adds": 0.0, "seconds": {"FLOPs": 0.5, "bytes": 0.25}}
    record = {"games": 8, "iteration": counts, "host": {}, "frames_per_second": 4.0, "date": "2026-11-29 10:00"}
    graph = record | {"host": {"starts": 1.0, "waits": 0.0}}
    rows = previews.table({"a game, v5e": record, "a game, h100": graph}).splitlines()[-2:]
    assert [row.split("|")[-3].strip() for row in rows] == ["-", "1, 0"]
