"""A batch in parts: how large they are, and that their mean is the whole's."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm import learning, make_algorithm
from muzero_jax.config.config import Config
from muzero_jax.config.groups import NetworkConfig, OptimiserConfig, SearchConfig
from muzero_jax.games.environment import make_environment
from muzero_jax.ops import micro_batches
from tests.reference.models import make_network


@pytest.mark.parametrize(
    "platform, batch_size, cells, expected",
    [
        ("cpu", 128, 42, 32),  # 10.5 KiB a window: 36 fit into 384 KiB
        ("cpu", 16, 42, 16),  # fewer than would fit
        ("cpu", 128, 361, 8),  # 4 would fit, but parts are no smaller than 8
        ("cpu", 127, 42, 127),  # a prime number of windows: all rather than one by one
        ("cpu", 12, 361, 12),  # 6 would be too small
        ("gpu", 128, 361, 128),  # an accelerator takes a batch whole
    ],
)
def test_on_a_cpu_parts_fit_in_the_cache_but_are_never_small(monkeypatch, platform, batch_size, cells, expected):
    """Of a network with 64 channels."""
    monkeypatch.setattr(micro_batches, "target_device", lambda: SimpleNamespace(platform=platform))
    assert micro_batches.size_for_cache(batch_size, 4 * cells * 64, micro_batches.GRADIENT_BYTES) == expected


@pytest.mark.parametrize(
    "network, optimiser, expected",
    [
        ({"kind": "tower"}, {}, 32),
        ({"kind": "tower"}, {"micro_batch_size": 10}, 8),
        ({"kind": "tower"}, {"consistency_weight": 2.0}, 128),  # this loss is no mean over windows
        ({"kind": "tower", "chance_codes": 4}, {}, 128),  # nor are those after codes, which a batch's mean decides
        ({"kind": "observation", "width": 2048}, {}, 128),  # dense layers would read all weights again for each part
        ({"kind": "observation", "width": 2048}, {"micro_batch_size": 64}, 64),
    ],
)
def test_only_towers_use_micro_batches_unless_a_flag_sets_their_size(network, optimiser, expected):
    config = Config(
        env="connect_four",
        network=NetworkConfig(**({"width": 64} | network)),
        optimiser=OptimiserConfig(**optimiser),
    )
    assert learning.micro_batch(config, make_algorithm(config).model, 128) == expected


@pytest.mark.parametrize("micro_batch", [1, 3, 6])
def test_the_mean_of_the_parts_is_that_of_the_batch(micro_batch):
    rows = {"x": np.arange(12.0, dtype=np.float32).reshape(6, 2), "y": np.arange(6.0, dtype=np.float32)}

    def gradient(batch):
        return {"sum": jnp.mean(batch["x"] * batch["y"][:, None], axis=0)}, jnp.mean(batch["y"])

    found = jax.jit(lambda batch: micro_batches.mean(gradient, batch, micro_batch))(rows)
    np.testing.assert_allclose(found[0]["sum"], (rows["x"] * rows["y"][:, None]).mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found[1], 2.5, rtol=1e-6)


def spied(model, asked):
    """`model`, whose inferences note how many positions they were asked about."""

    def spy(inference):
        def infer(params, *rows):
            asked.append(rows[0].shape[0])
            return inference(params, *rows)

        return infer

    return model._replace(
        initial_inference=spy(model.initial_inference), recurrent_inference=spy(model.recurrent_inference)
    )


@pytest.fixture
def tower():
    environment = make_environment("hex", board_size=3)
    model = make_network("tower", environment, width=4)
    assert model.layer_bytes == 4 * 4 * 9
    return environment, model._replace(layer_bytes=micro_batches.INFERENCE_BYTES // 9)  # so that 9 positions fit


@pytest.mark.parametrize("true_rules", [False, True])
@pytest.mark.parametrize("layer_bytes, expected", [(micro_batches.INFERENCE_BYTES // 9, {8}), (None, {24})])
def test_every_search_calls_a_tower_in_parts_and_other_networks_whole(
    monkeypatch, tower, true_rules, layer_bytes, expected
):
    monkeypatch.setattr(micro_batches, "target_device", lambda: SimpleNamespace(platform="cpu"))
    environment, model = tower
    search = SearchConfig(num_simulations=2, max_num_considered_actions=2)
    config = Config(env="hex", board_size=3, model="rules" if true_rules else "learned", search=search)
    asked = []
    model = spied(model._replace(layer_bytes=layer_bytes), asked)
    search = make_algorithm(config, environment, model).search()
    states = jax.vmap(environment.init)(jax.random.split(jax.random.key(0), 24))
    params = jax.eval_shape(model.init, jax.random.key(0))
    jax.eval_shape(search, params, jax.random.key(0), environment.roots(states))
    assert set(asked) == expected


def test_rows_are_taken_in_order():
    found = micro_batches.over(lambda rows: 2 * rows, jnp.arange(6), 2)
    np.testing.assert_array_equal(found, 2 * np.arange(6))
