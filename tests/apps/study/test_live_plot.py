"""Curves that grow while a run trains."""

import pytest
from matplotlib.figure import Figure

from muzero_jax.apps.study import live_plot
from muzero_jax.apps.study.live_plot import LivePlot

TRAINED = {"iteration": 2, "time/minutes": 0.1, "train/loss": 2.0, "train/policy_loss": 1.5}
EVALUATED = {"iteration": 4, "time/minutes": 0.2, "train/loss": 1.0, "eval/random": 0.75, "eval/elo": 20.0}


@pytest.fixture
def shown():
    return []


def lines(figure):
    """What each panel shows: the points of every line that has a label."""
    return [
        {line.get_label(): [tuple(point) for point in line.get_xydata().tolist()] for line in axes.lines}
        for axes in figure.axes
    ]


def test_a_plot_holds_the_scores_and_losses_of_all_records_so_far(shown):
    plot = LivePlot(shown.append, seconds=0.0)
    for record in (TRAINED, EVALUATED):
        plot.on_metrics(record)
    scores, losses = lines(shown[-1])
    assert scores["random"] == [(0.2, 0.75)]
    assert losses["total"] == [(0.1, 2.0), (0.2, 1.0)] and losses["policy"] == [(0.1, 1.5)]


def test_it_draws_at_most_every_few_seconds_but_an_evaluation_at_once(shown, monkeypatch):
    clock = iter([100.0, 100.0, 101.0, 101.5, 106.0, 106.0])
    monkeypatch.setattr(live_plot.time, "monotonic", lambda: next(clock))
    plot = LivePlot(shown.append, seconds=5.0)
    plot.on_metrics(TRAINED)  # draws at 100
    plot.on_metrics(TRAINED)  # 101: too soon
    assert len(shown) == 1
    plot.on_evaluation(EVALUATED)  # draws at 101.5
    assert len(shown) == 2
    plot.on_metrics(TRAINED)  # 106: not yet 5 s
    assert len(shown) == 2 and len(plot.records) == 3


def test_a_notebook_replaces_the_picture_in_place(monkeypatch):
    updates = []

    class Handle:
        def update(self, picture):
            updates.append(picture)

    monkeypatch.setattr("IPython.display.display", lambda picture, display_id: updates.append(picture) or Handle())
    show = live_plot.shown_in_notebook()
    for size in (1, 2, 3):
        show(Figure(figsize=(size, 1)))
    assert [type(picture.data) for picture in updates] == 3 * [bytes] and len({p.data for p in updates}) == 3
    assert all("image/png" in picture._repr_mimebundle_()[0] for picture in updates)
