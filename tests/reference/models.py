"""Models to test with: the smallest networks, one whose unroll is three lines of NumPy, and a board with a pass."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.networks import value_transform
from muzero_jax.networks.model import make_model
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


BOARD_GAME = Support(-1.0, 1.0, 3)


def make_network(kind, environment=BOARD, support=BOARD_GAME, *, width=8, num_blocks=1, **changes) -> Model:
    """A network as small as tests need."""
    usual = {"activation": "relu", "compute_dtype": "float32"}
    return make_model(environment, support, kind=kind, width=width, num_blocks=num_blocks, **(usual | changes))


def random_params(model: Model):
    """Random weights, because fresh heads predict 0; from NumPy, because a network's own compile longer."""
    generator, shapes = np.random.default_rng(0), jax.eval_shape(model.init, jax.random.key(0))
    drawn = jax.tree.map(lambda x: generator.normal(scale=0.3, size=x.shape).astype(x.dtype), shapes)
    return jax.device_put(drawn)  # `jnp.asarray` would compile a program for every shape


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
        return jax.device_put({name: np.float32(generator.normal(size=shape)) for name, shape in shapes.items()})

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
