"""Metrics: every line once, readable by anything, and drawn."""

import sys
from unittest.mock import Mock, call

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.config.config import Config
from muzero_jax.run import metrics
from muzero_jax.run.accounting import Totals
from muzero_jax.run.charts import draw_progress, plot_curves
from muzero_jax.run.flops import Flops
from muzero_jax.run.metrics import RANDOM_RETURN, RETURN, last_record, open_metrics, read_records
from muzero_jax.run.run import Run
from muzero_jax.types import Step
from tests.reference.probes import PROBES


def write_iterations(run_dir, iterations, **options):
    with open_metrics(run_dir, tensorboard=False, **options) as write:
        for iteration in iterations:
            write({"iteration": iteration, "train/loss": float(iteration)})


def test_lines_are_flat_json_of_plain_numbers_and_null_for_what_is_not_finite(tmp_path):
    with open_metrics(tmp_path, tensorboard=False) as write:
        write({"iteration": np.int32(1), "train/loss": jnp.float32(0.5), "a": np.nan, "b": float("-inf")})
    text = (tmp_path / "metrics.jsonl").read_text()
    assert text == '{"iteration": 1, "train/loss": 0.5, "a": null, "b": null}\n'


@pytest.mark.parametrize(
    "resume_from, then, found", [(16, [24, 32], [0, 8, 16, 24, 32]), (0, [0, 8, 16], [0, 8, 16]), (8, [16], [0, 8, 16])]
)
def test_a_resumed_run_has_every_iteration_once(resume_from, then, found, tmp_path):
    """Also after a kill that cut a line short; a run resumed from nothing begins its file again."""
    write_iterations(tmp_path, [0, 8, 16, 24])
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 32, "train/lo')
    write_iterations(tmp_path, then, resume_from=resume_from)
    assert [record["iteration"] for record in read_records(tmp_path)] == found


@pytest.mark.parametrize("ends, found", [(True, 1.0), (False, "none")])
def test_random_play_that_does_not_end_in_time_has_no_return(ends, found, monkeypatch):
    """Freeway's games last 2,500 moves whatever is played, and a record holds only numbers."""
    monkeypatch.setattr("muzero_jax.run.run.MOST_MOVES", 2)
    step = Step(PROBES.init(jax.random.key(0)), jnp.float32(1), jnp.float32(not ends), jnp.bool_(ends))
    totals, said = Totals(Config(), {}, Flops(0.0, 0.0)), []
    alone = PROBES._replace(num_players=1, move=lambda state, action, key: step)
    Run.measure_random_return(Mock(algorithm=Mock(environment=alone), totals=totals, say=said.append))
    assert totals.record.get(RANDOM_RETURN, "none") == found and len(said) == 1


def test_a_resumed_run_reads_the_last_record_up_to_its_checkpoint(tmp_path):
    assert last_record(tmp_path, up_to_iteration=8) == {}
    with open_metrics(tmp_path, tensorboard=False) as write:
        write({"iteration": 8, "time/minutes": 1.0, "train/loss": np.nan})
        write({"iteration": 16, "time/minutes": 2.0})
        write({"iteration": 24, RETURN: 3.0})
        write({"iteration": 32, RETURN: 5.0})
        write({"iteration": 40, "time/minutes": 3.0})
    assert last_record(tmp_path, up_to_iteration=15) == {"iteration": 8, "time/minutes": 1.0}
    assert last_record(tmp_path, up_to_iteration=40) == {"iteration": 40, "time/minutes": 3.0, RETURN: 5.0}


def test_tensorboard_events_hold_the_scalars(tmp_path):
    with open_metrics(tmp_path, resume_from=0) as write:
        write({"iteration": 3, "train/loss": 0.5, "eval/mcts:100": 0.25, "train/bad": np.nan})
    (events,) = tmp_path.glob("events.out.tfevents.*")
    content = events.read_bytes()
    assert b"train/loss" in content and b"eval/mcts_100" in content and b"train/bad" not in content


def test_wandb_gets_the_numbers_by_iteration(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match="--wandb"):
        metrics.check_wandb()
    wandb = Mock()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    with open_metrics(tmp_path, tensorboard=False, wandb_config={"seed": 3}) as write:
        write({"iteration": 2, "train/loss": 0.5, "b": np.nan})
    assert {"name": tmp_path.name, "config": {"seed": 3}}.items() <= wandb.init.call_args.kwargs.items()
    assert wandb.init().mock_calls == [call.log({"iteration": 2, "train/loss": 0.5}, step=2), call.finish()]


def test_runs_of_one_folder_name_have_each_a_curve_at_wandb_which_a_resumed_run_continues(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wandb", wandb := Mock())
    for study, resume_from in (("a", 0), ("b", 0), ("a", 4)):
        (run_dir := tmp_path / study / "seed0").mkdir(parents=True, exist_ok=True)
        with open_metrics(run_dir, resume_from=resume_from, tensorboard=False, wandb_config={}):
            pass
    first, other, resumed = (each.kwargs["id"] for each in wandb.init.call_args_list)
    assert first == resumed != other


# --- curves -----------------------------------------------------------------------------------------------------------


def test_of_two_evaluations_at_the_same_time_a_curve_shows_the_last():
    last = {"time/minutes": 2.0, "eval/random": 0.5}
    records = [{"time/minutes": 1.0, "eval/random": 0.4}, last, last | {"eval/random": 0.7}]
    strength, _ = draw_progress(records).axes
    assert strength.lines[0].get_xydata().tolist() == [[1.0, 0.4], [2.0, 0.7]]


def test_the_curves_of_a_single_player_game_are_its_returns_beside_random_play():
    records = [{"time/minutes": 1.0, RANDOM_RETURN: 0.25}, {"time/minutes": 2.0, RETURN: 0.5, RANDOM_RETURN: 0.25}]
    returns, _ = draw_progress(records).axes
    shown = {line.get_label(): line.get_xydata().tolist() for line in returns.lines}
    assert shown == {"self-play": [[2.0, 0.5]], "random play": [[1.0, 0.25], [2.0, 0.25]]}


def test_curves_are_drawn_even_with_gaps(tmp_path):
    with open_metrics(tmp_path, tensorboard=False) as write:
        write({"iteration": 0, "time/minutes": 0.0, "eval/openings_right": 0.5})
        write({"iteration": 8, "time/minutes": 1.0, "train/loss": np.nan, "train/value_loss": 0.0})
        write({"iteration": 16, "time/minutes": 2.0, "train/loss": 1.5, "eval/random": 0.98, "eval/elo": 312.4})
    assert plot_curves(tmp_path) == tmp_path / "curves.png"
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
