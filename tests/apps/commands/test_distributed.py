"""Several processes train one agent: to the last bit what one process trains, and none waits for ever for another."""

import signal

import jax
import numpy as np
import pytest

from muzero_jax.algorithm import make_algorithm
from muzero_jax.apps.commands import start_jax
from muzero_jax.apps.commands.command_line import EXIT_UNFINISHED
from muzero_jax.config import config_file
from muzero_jax.run import processes
from muzero_jax.run.metrics import read_records
from muzero_jax.storage.checkpoint import checkpoint_steps, restore_params
from tests.reference.two_processes import begin, said, start, wait_for

END = ["--max-iterations", "6", "--checkpoint-minutes", "0"]
EVALUATED = ["--evaluation.interval-minutes", "0.0001", "--evaluation.games", "4"]
LONG = ["--max-iterations", "1500", "--checkpoint-minutes", "0.001"]


def trained(run_dir):
    """What a run has learned: its newest weights, and the loss of every chunk."""
    model = make_algorithm(config_file.load(run_dir)).model
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    step, params = restore_params(run_dir / "checkpoints", shapes)
    losses = [record["train/loss"] for record in read_records(run_dir) if "train/loss" in record]
    return step, losses, jax.device_get(params)


def assert_trained_alike(one, other):
    (step, losses, params), (other_step, other_losses, other_params) = trained(one), trained(other)
    assert step == other_step and losses == other_losses and losses
    jax.tree.map(np.testing.assert_array_equal, params, other_params)


def statuses(processes, seconds=120):
    return [process.wait(timeout=seconds) for process in processes]


@pytest.mark.slow
def test_two_processes_train_exactly_what_one_process_with_as_many_devices_trains(tmp_path):
    """They play matches only at the end, even if the config has them before: process 0 alone would save a version."""
    pair = start(tmp_path / "two", *END, *EVALUATED, devices=2)
    assert statuses(pair[1:]) == [0], said(tmp_path / "two", 0).read_text()
    assert pair[0].poll() is None, "it plays the final matches alone, however long they are"
    assert statuses(pair[:1]) == [0], said(tmp_path / "two", 0).read_text()
    assert statuses([begin(tmp_path / "one", *END, devices=4, said=tmp_path / "one.txt")]) == [0]
    assert_trained_alike(tmp_path / "two", tmp_path / "one")
    assert "random" in said(tmp_path / "two", 0).read_text()  # the final matches
    assert not (tmp_path / "two" / "versions").exists()
    lines = said(tmp_path / "two", 1).read_text().splitlines()
    assert all("Gloo" in line for line in lines), lines  # process 0 alone speaks


@pytest.mark.parametrize(
    "flags", ["--coordinator localhost:1", "--coordinator localhost --num-processes 1 --process-id 0"]
)
def test_distributed_without_a_full_coordinator_address_is_refused(flags):
    with pytest.raises(ValueError, match="--coordinator HOST:PORT"):
        start_jax.choose("train", ["--distributed", *flags.split(), "--env", "tic_tac_toe"])


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_when_one_is_killed_the_other_ends_and_both_go_on_as_if_nothing_had_happened(victim, tmp_path):
    run_dir = tmp_path / "run"
    pair = start(run_dir, *LONG)
    wait_for(lambda: checkpoint_steps(run_dir / "checkpoints"))
    pair[victim].kill()
    found = statuses(pair, processes.HEARTBEAT_SECONDS + 60)
    assert found[victim] == -signal.SIGKILL
    assert found[1 - victim] in (EXIT_UNFINISHED, -signal.SIGABRT), said(run_dir, 1 - victim).read_text()
    reached = str(max(checkpoint_steps(run_dir / "checkpoints")) + 20)
    ends = ["--max-iterations", reached, "--checkpoint-minutes", "0"]
    assert statuses(start(run_dir, *ends, "--resume-if-any")) == [0, 0]
    assert statuses([begin(tmp_path / "one", *ends, devices=2, said=tmp_path / "one.txt")]) == [0]
    assert_trained_alike(run_dir, tmp_path / "one")
