"""`--init-from`: a run that begins with another run's weights has them bit for bit, and all else anew."""

import functools
import shutil
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax import algorithm as algorithms
from muzero_jax.apps import start
from muzero_jax.apps.sources import warm_start
from muzero_jax.run import program
from muzero_jax.storage import agent_file
from muzero_jax.storage import config as configs
from muzero_jax.storage.checkpoint import save_params
from muzero_jax.storage.config_groups import OptimiserConfig, ReplayConfig
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG, assert_same, on_host


def weights(number, config=CONFIG):
    """Weights for the network of a config, all of them like one number but each another."""
    model = algorithms.make(config).model
    leaves, structure = jax.tree.flatten(jax.eval_shape(model.init, jax.random.key(0)))
    return structure.unflatten([np.full(leaf.shape, number + k / 64, leaf.dtype) for k, leaf in enumerate(leaves)])


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """The folder of a run: its newest checkpoint has the weights 1, a version has 2, and an agent beside it 3."""
    run_dir = tmp_path_factory.mktemp("runs") / "source"
    state = tiny_run.make_init()()
    tiny_run.save(run_dir, state._replace(learner=state.learner._replace(params=weights(1))))
    save_params(run_dir / "versions", 4, weights(2))
    agent_file.save(run_dir.parent / "mine.safetensors", CONFIG, weights(3), iteration=5)
    return run_dir


def open_source(source, config=CONFIG, own=None):
    config = replace(config, init_from=str(source))
    model = (own or algorithms.make(config)).model
    return warm_start.open_source(config, model, lambda text: None, given=own)


@functools.cache
def fresh():
    """The tiny run's first state on the host, without any source."""
    return on_host(tiny_run.make_init()())


# --- weights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, number", [("RUN", 1), ("RUN/versions/4", 2), ("agent:RUN/../mine.safetensors", 3)])
def test_a_run_a_version_and_an_agent_give_their_weights(source, name, number):
    assert_same(open_source(name.replace("RUN", str(source))), weights(number))


def test_a_run_has_its_sources_weights_before_its_first_iteration_and_all_else_is_new(session, source):
    seen = []

    def spy(state, progress):
        seen.append(on_host(state))
        return tiny_run.program()(state, progress)

    session(spy, init_from=str(source), max_iterations=4)
    first = seen[0]
    assert_same(first.learner.params, weights(1))
    assert_same(first._replace(learner=first.learner._replace(params=fresh().learner.params)), fresh())
    assert configs.load(session.directory).init_from == str(source)


def test_a_target_network_begins_as_a_copy_where_the_program_wants_it(source):
    reanalyzes, target = ReplayConfig(replay_length=32, reanalyze_fraction=0.5), OptimiserConfig(target_period=10)
    config = replace(CONFIG, replay=reanalyzes, optimiser=replace(target, batch_size=8))
    init = program.make_init(algorithms.make(config), 0, tiny_run.mesh())
    abstract = init.eval_shape()
    state = start._first_state(init, abstract, None, open_source(source, config))
    assert_same(state.learner.params, weights(1))
    assert_same(state.learner.target_params, weights(1))
    jax.tree.map(lambda x, like: x.sharding == like.sharding or 1 / 0, state.learner, abstract.learner)
    jax.jit(partial(jax.tree.map, jnp.negative), donate_argnums=0)(state.learner)  # no buffer is shared by both


# --- going on ---------------------------------------------------------------------------------------------------------


def test_a_resumed_run_is_the_unbroken_one_and_never_reads_its_source(session, source, tmp_path):
    init = tiny_run.make_init()
    unbroken = start._first_state(init, init.eval_shape(), None, open_source(source))
    for _ in range(4):
        unbroken, _ = tiny_run.program()(unbroken, tiny_run.PROGRESS)
    copy = shutil.copytree(source, tmp_path / "source")
    session(init_from=str(copy), max_iterations=4)
    shutil.rmtree(copy)
    session(init_from=str(copy), max_iterations=8, resume=True)
    iteration, state = tiny_run.restore_latest(session.directory / "checkpoints")
    assert iteration == 8
    assert_same(state, unbroken)


# --- what does not fit ------------------------------------------------------------------------------------------------

HEX = replace(CONFIG, env="hex", board_size=3)


def changed(**fields):
    return replace(CONFIG, network=replace(CONFIG.network, **fields))


@pytest.mark.parametrize(
    "made_with, config, says",
    [
        (CONFIG, changed(width=24), r"float32\[\S*16\S*\] \(this one needs float32\[\S*24\S*\]\); give this run"),
        (replace(HEX, board_size=2), HEX, "mlp on hex 2x2, than this run's, .* hex 3x3.*fully_convolutional"),
        # Weights of another meaning, though they would fit.
        (CONFIG, changed(activation="gelu"), "its network.activation was relu, not gelu; give this run"),
    ],
)
def test_weights_that_do_not_fit_are_one_sentence(tmp_path, made_with, config, says):
    agent_file.save(tmp_path / "other.safetensors", made_with, weights(0, made_with), iteration=1)
    with pytest.raises(ValueError, match=f"other.safetensors holds the weights of another network.*{says}") as e:
        open_source(f"agent:{tmp_path}/other.safetensors", config)
    assert "\n" not in str(e.value)


def test_weights_are_compared_before_anything_is_compiled_or_deleted(session, source, monkeypatch):
    session(max_iterations=4)
    monkeypatch.setattr(start, "compile_agent", lambda *arguments, **options: pytest.fail("too late"))
    with pytest.raises(ValueError, match="weights of another network"):
        session(init_from=str(source), network=replace(CONFIG.network, width=24), overwrite=True)
    assert (session.directory / "checkpoints" / "4").exists()
