"""Several processes train one agent: to the last bit what one process trains, and none waits for ever for another."""

import shutil
import signal

import jax
import numpy as np
import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.apps.commands import machine
from muzero_jax.apps.commands.command_line import EXIT_UNFINISHED
from muzero_jax.run import processes
from muzero_jax.run.metrics import read_records
from muzero_jax.storage import config as configs
from muzero_jax.storage.checkpoint import checkpoint_steps, restore_params
from tests.reference.two_processes import begin, said, start, wait_for

END = ["--max-iterations", "6", "--checkpoint-minutes", "0"]
LONG = ["--max-iterations", "1500", "--checkpoint-minutes", "0.001"]
EVALUATED = ["--max-iterations", "200", "--evaluation.interval-minutes", "0.03", "--evaluation.games", "4"]


def trained(run_dir):
    """What a run has learned: its newest weights, and the loss of every chunk."""
    model = algorithms.make(configs.load(run_dir)).model
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
@pytest.mark.parametrize("devices", [1, 2])
def test_two_processes_train_exactly_what_one_process_with_as_many_devices_trains(devices, tmp_path):
    pair = start(tmp_path / "two", *END, devices=devices)
    assert statuses(pair[1:]) == [0], said(tmp_path / "two", 0).read_text()
    assert pair[0].poll() is None, "it plays the final matches alone, however long they are"
    assert statuses(pair[:1]) == [0], said(tmp_path / "two", 0).read_text()
    assert statuses([begin(tmp_path / "one", *END, devices=2 * devices, said=tmp_path / "one.txt")]) == [0]
    assert_trained_alike(tmp_path / "two", tmp_path / "one")
    assert "random" in said(tmp_path / "two", 0).read_text()  # the final matches
    lines = said(tmp_path / "two", 1).read_text().splitlines()
    assert all("Gloo" in line for line in lines), lines  # process 0 alone speaks


@pytest.mark.parametrize(
    "flags", ["--coordinator localhost:1", "--coordinator localhost --num-processes 1 --process-id 0"]
)
def test_distributed_without_a_full_coordinator_address_is_refused(flags):
    with pytest.raises(ValueError, match="--coordinator HOST:PORT"):
        machine.choose("train", ["--distributed", *flags.split(), "--env", "tic_tac_toe"])


@pytest.mark.slow
def test_matches_are_played_only_at_the_end_even_if_the_config_has_them_before(tmp_path):
    """A version that only process 0 saves would come between the checkpoints of all."""
    pair = start(tmp_path / "run", *EVALUATED, "--checkpoint-minutes", "0.01")
    assert statuses(pair) == [0, 0]
    assert not (tmp_path / "run" / "versions").exists() and "random" in said(tmp_path / "run", 0).read_text()
    assert checkpoint_steps(tmp_path / "run" / "checkpoints")[-1] == 200


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


@pytest.mark.slow
def test_a_checkpoint_resumes_on_any_number_of_devices(tmp_path):
    """Each device draws other numbers, so it is another run of the same kind: its losses are like the others'."""
    saved = tmp_path / "saved"
    assert statuses([begin(saved, *END, devices=4, said=tmp_path / "saved.txt")]) == [0]
    first_losses, means = trained(saved)[1], {}
    for devices in (1, 2, 4, 8):
        run_dir = shutil.copytree(saved, tmp_path / f"on{devices}")
        goes_on = "--resume", "--max-iterations", "206", "--checkpoint-minutes", "0"
        assert statuses([begin(run_dir, *goes_on, devices=devices, said=tmp_path / f"{devices}.txt")]) == [0]
        step, losses, _ = trained(run_dir)
        assert step == 206 and losses[: len(first_losses)] == first_losses
        means[devices] = np.mean(losses[-150:])
    np.testing.assert_allclose(list(means.values()), np.mean(list(means.values())), rtol=0.1)  # seen: within 7%
