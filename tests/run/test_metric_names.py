"""docs/metrics.md explains every metric that a run can write, and no other."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from muzero_jax import algorithm as algorithms
from muzero_jax.apps.evaluation import progress
from muzero_jax.run import metrics
from muzero_jax.run.accounting import Clock, Totals
from tests.reference import pages
from tests.reference.tiny_run import CONFIG

PACKAGE = Path(metrics.__file__).parent.parent
IN_SOURCES = re.compile(r'"((?:train|selfplay|eval)/[a-z_]+)"')


def names_of_losses():
    """The losses of a model that learns everything that there is to learn."""
    network = replace(CONFIG.network, predict_discount=True)
    optimiser = replace(CONFIG.optimiser, reconstruction_weight=1.0, consistency_weight=1.0)
    config = replace(CONFIG, model="learned_legality", network=network, optimiser=optimiser)
    with_codes = replace(CONFIG, network=replace(CONFIG.network, chance_codes=4))
    terms = [term for each in (config, with_codes) for term in algorithms.make(each).terms]
    return {f"train/{term.name}_loss" for term in terms}


def names_that_code_can_write():
    """What the host makes of all that the program counts, and what it adds; nothing is compiled."""
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    counted = set(IN_SOURCES.findall(sources)) | names_of_losses()
    chunk = {name: np.ones(2) for name in counted if not name.startswith("eval/")}
    totals = Totals(CONFIG, {})
    totals.add(chunk | {"train/updates": np.zeros(2)}, 1.0)
    written = set(totals.add(chunk, 2.0)) | set(Clock({}).record()) | {"iteration", metrics.ELO, metrics.OPENINGS}
    written.add(metrics.RANDOM_RETURN)
    opponents = {f"eval/{name}" for name in progress._specs(CONFIG.evaluation.mcts_simulations or (100, 1000))}
    return {pages.metric_name(name) for name in written | opponents}


def test_the_page_explains_every_metric_and_no_other():
    assert pages.explained_metrics() == names_that_code_can_write()


def test_a_real_run_writes_nothing_that_the_page_does_not_explain(session):
    session(max_iterations=6)
    keys = {pages.metric_name(key) for record in metrics.read_records(session.directory) for key in record}
    assert {"train/loss", "total/frames", "time/minutes"} <= keys <= pages.explained_metrics()
