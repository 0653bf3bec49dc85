"""Windows to test with: random ones, and ones for which a test gives only the leaves that matter.

Likewise their targets, and what a model says of them.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.learning import targets
from muzero_jax.types import Batch, Targets, Transition, Unrolled

NO_BATCH = Batch(*[None] * 5)  # type: ignore


def make_window(reward, discount, num_actions=3, observation_shape=(2,), **leaves):
    """Windows [N, L, ...] from lists; leaves that are not given: uniform policies, values 0, everything legal."""
    reward = np.asarray(reward, np.float32)
    defaults = {
        "observation": np.zeros((*reward.shape, *observation_shape), np.float32),
        "legal_action_mask": np.ones((*reward.shape, num_actions), bool),
        "action": np.zeros(reward.shape, np.int32),
        "search_policy": np.full((*reward.shape, num_actions), 1 / num_actions, np.float32),
        "search_value": np.zeros(reward.shape, np.float32),
        "explored": np.zeros(reward.shape, bool),
    }
    discount = np.asarray(discount, np.float32)
    defaults["is_last"] = discount == 0
    given = {name: np.asarray(leaf, defaults[name].dtype) for name, leaf in leaves.items()}
    window = Transition(reward=reward, discount=discount, **(defaults | given))
    return jax.device_put(window)  # `jnp.asarray` would compile a program for every shape


def random_window(seed, num_windows, length, num_actions=3, observation_shape=(2,), end_probability=0.2, gamma=0.9):
    """Games of random length in which either player may move next, with rewards on every move."""
    generator = np.random.default_rng(seed)
    shape = (num_windows, length)
    policy = generator.random((*shape, num_actions)) ** 4
    legal = generator.random((*shape, num_actions)) < 0.7
    legal[..., 0] = True
    policy = np.where(legal, policy, 0)
    discount = gamma * generator.choice([-1, 1], shape) * (generator.random(shape) > end_probability)
    return make_window(
        generator.normal(size=shape),
        discount,
        num_actions,
        observation_shape,
        observation=generator.random((*shape, *observation_shape)),
        legal_action_mask=legal,
        action=generator.integers(num_actions, size=shape),
        search_policy=policy / policy.sum(axis=-1, keepdims=True),
        search_value=generator.normal(size=shape),
        explored=generator.random(shape) < 0.15,
    )


def frame_of(window):
    """The shapes of one frame, as `replay.init` takes them."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[2:], x.dtype), window)


def make_targets(unroll_steps, num_actions=3, **given):
    """Targets of one window; those that are not given: 0, uniform policies, turns that alternate, nothing masked."""
    k, k1 = (1, unroll_steps), (1, unroll_steps + 1)
    defaults = {
        "reward": np.zeros(k),
        "value": np.zeros(k1),
        "policy": np.full((*k1, num_actions), 1 / num_actions),
        **{name: np.ones(k1) for name in ("policy_mask", "alive", "mask")},
        "discount": -np.ones(k),
    }
    named = defaults | {name: [x] for name, x in given.items()}
    return jax.device_put(Targets(**{name: np.float32(x) for name, x in named.items()}))


def two_moves(**given):
    """A batch of one window of two moves with observations of 0, and with such targets."""
    observation, legal = np.zeros((1, 3, 1), np.float32), np.ones((1, 1, 3), bool)
    batch = Batch(observation, legal, np.zeros((1, 2), np.int32), make_targets(2, **given), np.ones(1, np.float32))
    return jax.device_put(batch)


def said_of_two_moves(**heads):
    """A model's outputs for it: 0, and further heads."""
    zeros = np.zeros((1, 3, 1), np.float32)
    return Unrolled(*jax.device_put((zeros, zeros, zeros, np.zeros((1, 3, 3), np.float32))), heads)


def make_batch(window, key, *, unroll_steps, td_steps=2, num_frames=None, **options):
    """Windows as a batch of weight 1, with n-step returns that stop at random moves; all K + 1 frames by default."""
    make = partial(targets.make, unroll_steps=unroll_steps, td_steps=td_steps, td_lambda=1.0, stop_at_exploration=True)
    weight, num_frames = jnp.ones(window.action.shape[0]), num_frames or unroll_steps + 1
    sizes = {"unroll_steps": unroll_steps, "num_frames": num_frames}
    return targets.make_batch(window, make(window), weight, key, **sizes, **options)
