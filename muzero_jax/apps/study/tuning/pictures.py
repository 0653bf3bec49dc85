"""The pictures of a study, by Optuna's own plots: how it went, which fields decided, and where these scored best."""

import warnings
from functools import partial
from pathlib import Path

import matplotlib
import numpy as np
import optuna
from matplotlib import pyplot
from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
from optuna.trial import TrialState
from optuna.visualization import matplotlib as plots

from muzero_jax.apps.study.tuning import study as studies
from muzero_jax.run import charts

BETTER = 0.25
"""The share of trials that count as the better ones where fields are weighed (PED-ANOVA, Watanabe et al. 2023)."""
LEAST_WEIGHED = 4
"""Trials that ended, without which no field is weighed."""
WEIGHTIEST = 4
"""So many fields are drawn one by one; more would not be read."""


def draw_all(study: optuna.Study, folder: Path) -> list[Path]:
    """Draws what there is to draw into the study's folder; returns the files."""
    ended = studies.count(study, TrialState.COMPLETE)
    drawn = {
        "history.png": partial(plots.plot_optimization_history, target_name="score"),
        "curves.png": plots.plot_intermediate_values,
    }
    # Optuna's plots set a style for the whole process.
    with matplotlib.rc_context({"figure.figsize": (13.0, 5.0)}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # plots and evaluator count as experimental, since years
        if ended >= LEAST_WEIGHED:
            evaluator = PedAnovaImportanceEvaluator(target_quantile=BETTER)
            weightiest = list(get_param_importances(study, evaluator=evaluator))[:WEIGHTIEST]
            drawn["importance.png"] = partial(plots.plot_param_importances, evaluator=evaluator, target_name="score")
            drawn["slices.png"] = partial(plots.plot_slice, params=weightiest, target_name="score")
        for name, plot in drawn.items():
            figure = np.ravel(plot(study))[0].figure
            charts.save(figure, folder / name, bbox_inches="tight")
            pyplot.close(figure)
    return [folder / name for name in drawn]
