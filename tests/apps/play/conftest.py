"""What the tests of play share."""

from dataclasses import replace

import jax
import pytest

from muzero_jax.config import config_file
from muzero_jax.storage import checkpoint
from tests.reference.tiny_run import CONFIG, algorithm


@pytest.fixture(scope="session")
def untrained_run(tmp_path_factory):
    """The directory of a run of tic-tac-toe that learned nothing, whose search, "passes", keeps no tree."""
    run_dir = tmp_path_factory.mktemp("runs") / "untrained"
    run_dir.mkdir()
    evaluation = replace(CONFIG.evaluation, num_simulations=4)
    config_file.save(replace(CONFIG, search=replace(CONFIG.search, engine="passes"), evaluation=evaluation), run_dir)
    checkpoint.save_params(run_dir / "checkpoints", 0, jax.jit(algorithm().model.init)(jax.random.key(0)))
    return run_dir
