"""Curves that grow while a run trains."""

from matplotlib.figure import Figure

from muzero_jax.apps.study import live_plot
from muzero_jax.apps.study.live_plot import LivePlot

TRAINED = {"iteration": 2, "time/minutes": 0.1, "train/loss": 2.0, "train/policy_loss": 1.5}
EVALUATED = {"iteration": 4, "time/minutes": 0.2, "train/loss": 1.0, "eval/random": 0.75, "eval/elo": 20.0}


def test_a_plot_holds_all_records_and_draws_every_few_seconds_but_an_evaluation_at_once(monkeypatch):
    shown, clock = [], iter([100.0, 100.0, 101.0, 101.5, 106.0, 106.0])
    monkeypatch.setattr(live_plot.time, "monotonic", lambda: next(clock))
    plot = LivePlot(shown.append, seconds=5.0)
    plot.on_metrics(TRAINED)  # draws at 100
    plot.on_metrics(EVALUATED)  # 101: too soon
    assert len(shown) == 1
    plot.on_evaluation(EVALUATED)  # draws at 101.5
    plot.on_metrics(TRAINED)  # 106: not yet 5 s
    assert len(shown) == 2 and len(plot.records) == 3
    scores, losses = ({line.get_label(): line.get_xydata().tolist() for line in axes.lines} for axes in shown[-1].axes)
    assert scores["random"] == [[0.2, 0.75]]
    assert losses["total"] == [[0.1, 2.0], [0.2, 1.0]] and losses["policy"] == [[0.1, 1.5]]


def test_a_notebook_replaces_the_picture_in_place(monkeypatch):
    updates = []

    class Handle:
        def update(self, picture):
            updates.append(picture)

    monkeypatch.setattr("IPython.display.display", lambda picture, display_id: updates.append(picture) or Handle())
    show = live_plot.shown_in_notebook()
    for size in (1, 2):
        show(Figure(figsize=(size, 1)))
    assert len({picture.data for picture in updates}) == 2
    assert all("image/png" in picture._repr_mimebundle_()[0] for picture in updates)
