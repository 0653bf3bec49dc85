"""A model whose unroll is three lines of NumPy, and the record of a game on a 3x3 board with a pass, to test with."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.networks import value_transform
from muzero_jax.networks.value_transform import Support
from muzero_jax.types import Board, Environment, Model, NetworkOutput, Symmetries

SUPPORT = Support(-1.0, 1.0, 5)

BOARD = Environment(
    name="board",
    init=lambda key: None,
    move=None,  # type: ignore
    observe=lambda state: jnp.zeros((3, 3, 2), bool),
    legal=lambda state: jnp.ones(10, bool),
    num_actions=10,
    observation_shape=(3, 3, 2),
    num_players=2,
    discount=-1.0,
    board=Board(
        shape=(3, 3),
        action_location=jnp.array([*range(9), -1]),
        symmetries=Symmetries(jnp.arange(18)[None], jnp.zeros((1, 18), bool), jnp.arange(10)[None]),
    ),
)
"""Actions 0 to 8 are cells, 9 is a pass."""


def make_tanh_model(observation_size=2, embedding_size=4, num_actions=3):
    """h(o) = tanh(o H), g(s, a) = tanh(s G + A[a]), and linear heads over five bins (the policy's with a bias)."""
    shapes = {
        "representation": (observation_size, embedding_size),
        "dynamics": (embedding_size, embedding_size),
        "action": (num_actions, embedding_size),
        "reward": (embedding_size, SUPPORT.num_bins),
        "value": (embedding_size, SUPPORT.num_bins),
        "policy": (embedding_size, num_actions),
        "bias": (num_actions,),
        "decoder": (embedding_size, observation_size),
    }

    def init(key):
        generator = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        return {name: jnp.asarray(generator.normal(size=shape), jnp.float32) for name, shape in shapes.items()}

    def predict(params, embedding, reward_logits):
        policy_logits = embedding @ params["policy"] + params["bias"]
        return NetworkOutput(embedding, reward_logits, embedding @ params["value"], policy_logits)

    def initial_inference(params, observation):
        embedding = jnp.tanh(observation @ params["representation"])
        return predict(params, embedding, jnp.zeros((len(embedding), SUPPORT.num_bins)))

    def recurrent_inference(params, embedding, action):
        embedding = jnp.tanh(embedding @ params["dynamics"] + params["action"][action])
        return predict(params, embedding, embedding @ params["reward"])

    return Model(
        init=init,
        initial_inference=initial_inference,
        recurrent_inference=recurrent_inference,
        reconstruct=lambda params, embedding: embedding @ params["decoder"],
        to_scalar=partial(value_transform.to_scalar, support=SUPPORT),
        scalar_loss=partial(value_transform.scalar_loss, support=SUPPORT),
    )
