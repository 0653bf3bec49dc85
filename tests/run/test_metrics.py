"""Metrics: every line once, readable by anything, and drawn."""

import json
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.apps.evaluation.progress import Versions
from muzero_jax.run import metrics
from muzero_jax.run.metrics import (
    OPENINGS,
    RANDOM_RETURN,
    RETURN,
    draw_progress,
    last_record,
    open_metrics,
    plot_curves,
    read_records,
    scores,
    wandb_writer,
)


class Listener:
    def __init__(self):
        self.records, self.closed = [], False

    def write(self, record):
        self.records.append(record)

    def close(self):
        self.closed = True


def write_iterations(run_dir, iterations, **options):
    with open_metrics(run_dir, tensorboard=False, **options) as write:
        for iteration in iterations:
            write({"iteration": iteration, "train/loss": float(iteration)})


def iterations_in(run_dir):
    return [record["iteration"] for record in read_records(run_dir)]


def test_lines_are_flat_json_of_plain_numbers_and_null_for_what_is_not_finite(tmp_path):
    listener = Listener()
    with open_metrics(tmp_path, tensorboard=False, others=[listener]) as write:
        write({"iteration": np.int32(1), "train/loss": jnp.float32(0.5), "a": np.nan, "b": float("-inf")})
    text = (tmp_path / "metrics.jsonl").read_text()
    assert text == '{"iteration": 1, "train/loss": 0.5, "a": null, "b": null}\n'
    assert listener.records == [json.loads(text)] and listener.closed
    assert type(listener.records[0]["iteration"]) is int


def test_resumed_run_has_every_iteration_once(tmp_path):
    write_iterations(tmp_path, [0, 8, 16, 24])
    write_iterations(tmp_path, [24, 32], resume_from=16)
    assert iterations_in(tmp_path) == [0, 8, 16, 24, 32]


def test_run_resumed_from_nothing_starts_anew(tmp_path):
    write_iterations(tmp_path, [0, 8])
    write_iterations(tmp_path, [0, 8, 16], resume_from=0)
    assert iterations_in(tmp_path) == [0, 8, 16]


def test_line_cut_short_by_a_kill_is_forgotten(tmp_path):
    write_iterations(tmp_path, [0, 8])
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 16, "train/lo')
    assert iterations_in(tmp_path) == [0, 8]
    write_iterations(tmp_path, [16], resume_from=8)
    assert iterations_in(tmp_path) == [0, 8, 16]


def test_lines_that_are_damaged_are_left_out(tmp_path):
    write_iterations(tmp_path, [0, 8])
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b'\xff\xfe{"iteration": 9}\n5\nnull\n[1]\n' + b"[" * 100_000 + b"\n")
        file.write(b'{"iteration": null}\n{"iteration": "9"}\n{"train/loss": 1}\n{"iteration": 16}\n')
    assert iterations_in(tmp_path) == [0, 8, 16]


def test_counts_go_on_from_the_last_line_before_the_checkpoint(tmp_path):
    assert last_record(tmp_path, up_to_iteration=8) == {}
    with open_metrics(tmp_path, tensorboard=False) as write:
        write({"iteration": 8, "time/minutes": 1.0, "train/loss": np.nan})
        write({"iteration": 16, "time/minutes": 2.0})
    assert last_record(tmp_path, up_to_iteration=15) == {"iteration": 8, "time/minutes": 1.0}


def test_a_bad_folder_is_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    writer = open_metrics(tmp_path / "file" / "run")
    with (
        pytest.raises(
            ValueError, match=r"^cannot write metrics.jsonl to .*: Not a directory; .*choose another folder$"
        ),
        writer,
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_tensorboard_events_hold_the_scalars(tmp_path):
    with open_metrics(tmp_path, resume_from=0) as write:
        write({"iteration": 3, "train/loss": 0.5, "eval/mcts:100": 0.25, "train/bad": np.nan})
    (events,) = tmp_path.glob("events.out.tfevents.*")
    content = events.read_bytes()
    assert b"train/loss" in content and b"eval/mcts_100" in content and b"train/bad" not in content


def test_missing_wandb_is_one_sentence_that_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ValueError, match="^--wandb needs a package that is missing; run: pip install -e .*wandb"):
        wandb_writer(tmp_path)


def test_wandb_gets_the_numbers_by_iteration(monkeypatch, tmp_path):
    calls = []

    class Run:
        def log(self, values, step):
            calls.append((values, step))

        def finish(self):
            calls.append("finish")

    class Module:
        def init(self, **options):
            calls.append(options["name"])
            return Run()

    monkeypatch.setitem(sys.modules, "wandb", Module())
    with open_metrics(tmp_path, tensorboard=False, others=[wandb_writer(tmp_path / "x")]) as write:
        write({"iteration": 2, "train/loss": 0.5, "b": np.nan})
    assert calls == ["x", ({"iteration": 2, "train/loss": 0.5}, 2), "finish"]


def test_the_end_of_a_run_says_how_many_first_stones_are_judged_right(session, monkeypatch):
    judged = {"right": 5, "solved": 9, "wrong": [[0, 0]]}
    monkeypatch.setattr(Versions, "judge_openings", lambda self, params: judged)
    heard = []
    summary = session(max_iterations=4, on_evaluation=heard.append).summary
    assert summary["openings"] == judged
    assert heard[-1][OPENINGS] == 5 / 9 and scores(heard[-1]) == {"random": 0.5}
    plot_curves(session.directory)


def test_a_curve_ends_in_the_final_match_and_not_in_a_hook():
    last = {"time/minutes": 2.0, "eval/random": 0.5}
    records = [{"time/minutes": 1.0, "eval/random": 0.4}, last, last | {"eval/random": 0.7}]
    strength, _ = draw_progress(records).axes
    assert strength.lines[0].get_xydata().tolist() == [[1.0, 0.4], [2.0, 0.7]]


def test_the_curves_of_a_game_for_one_are_its_returns_beside_random_play(tmp_path):
    records = [{"time/minutes": 1.0, RANDOM_RETURN: 0.25}, {"time/minutes": 2.0, RETURN: 0.5, RANDOM_RETURN: 0.25}]
    returns, _ = draw_progress(records).axes
    shown = {line.get_label(): line.get_xydata().tolist() for line in returns.lines}
    assert shown == {"self-play": [[2.0, 0.5]], "random play": [[1.0, 0.25], [2.0, 0.25]]}
    with open_metrics(tmp_path, tensorboard=False) as write:
        write({"iteration": 2, "total/flops": 1e9, "train/loss": 1.0, "train/updates_per_second": 2.0} | records[1])
    assert plot_curves(tmp_path).read_bytes().startswith(b"\x89PNG")


def test_a_loss_of_your_own_stands_beside_the_usual_ones():
    records = [{"train/loss": 2.0, "train/root_value_loss": 1.0}, {"train/value_loss": 1.0, "train/mine_loss": 0.5}]
    assert metrics.losses(records) == {
        "train/loss": "total", "train/value_loss": "value", "train/mine_loss": "mine"
    }  # fmt: skip


def test_curves_are_drawn_without_touching_global_state_even_with_gaps(tmp_path):
    before = set(sys.modules)
    with pytest.raises(ValueError, match="there is nothing to draw in .*; train a run first"):
        plot_curves(tmp_path)
    with open_metrics(tmp_path, tensorboard=False) as write:
        write({"iteration": 0, "time/minutes": 0.0, "eval/random": 0.5})
        write({"iteration": 8, "time/minutes": 1.0, "train/loss": np.nan, "train/value_loss": 0.0})
        write({"iteration": 16, "time/minutes": 2.0, "train/loss": 1.5, "eval/random": 0.98, "eval/elo": 312.4})
    assert plot_curves(tmp_path) == tmp_path / "curves.png"
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert "matplotlib.pyplot" not in set(sys.modules) - before
