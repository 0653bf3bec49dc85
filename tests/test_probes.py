"""An agent learns five games of one or two moves; which of them fails says which part is broken.

The real `train_iteration`, with a game and a network of our own. All five are runs of one compiled program.
"""

from functools import partial
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax.algorithm import make_algorithm
from muzero_jax.config.config import Config
from muzero_jax.config.groups import OptimiserConfig, ReplayConfig, SearchConfig, SelfPlayConfig, TargetConfig
from muzero_jax.learning import self_play
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.run.program import make_chunk, make_init
from tests.reference import probes
from tests.reference.models import make_network
from tests.reference.probes import PROBES

CONFIG = Config(
    iterations_per_chunk=150,
    search=SearchConfig(num_simulations=4, max_num_considered_actions=2, value_scale=0.5),
    self_play=SelfPlayConfig(num_envs=16, rollout_length=4),
    replay=ReplayConfig(replay_length=32, min_frames=8, symmetries=False),
    targets=TargetConfig(unroll_steps=2, td_steps=3),
    optimiser=OptimiserConfig(
        batch_size=32, updates_per_iteration=4, weight_decay=0.0, learning_rate=5e-3, warmup_updates=0
    ),
)
OBSERVATIONS = jnp.array([[0, 0], [0, 1], [1, 0], [1, 1]], bool)  # (second move?, coin)


@pytest.fixture(scope="module")
def algorithm():
    model = make_network("mlp", PROBES, width=16)

    def rollout(params, actor, key, *, environment, **bound):
        """A reset starts the same game again. The state holds which game, so that one program serves all five."""
        same_game = environment._replace(init=partial(probes.start, actor.env_state.game[0]))
        return self_play.rollout(params, actor, key, environment=same_game, length=4, **bound)

    return make_algorithm(CONFIG, PROBES, model)._replace(rollout=rollout)


@pytest.fixture(scope="module")
def learn(algorithm):
    """Trains on one game; returns the heads' outputs for the four observations and the reward of each action there."""
    mesh = make_mesh(1)
    init = make_init(algorithm, CONFIG.seed, mesh)
    progress = np.zeros(CONFIG.iterations_per_chunk, np.float32)
    program = make_chunk(algorithm, mesh).lower(init.eval_shape(), progress).compile()

    @jax.jit
    def heads(params):
        def after(action):
            actions = jnp.full(len(OBSERVATIONS), action)
            return algorithm.model.recurrent_inference(params, root.embedding, actions).reward_logits

        root = algorithm.model.initial_inference(params, OBSERVATIONS)
        reward = jnp.stack([algorithm.model.to_scalar(after(action)) for action in range(probes.NUM_ACTIONS)], axis=1)
        return algorithm.model.to_scalar(root.value_logits), reward, jax.nn.softmax(root.policy_logits)

    def run(game):
        state = init()
        games = state.actor.env_state.game
        env_state = state.actor.env_state.replace(game=jax.device_put(jnp.full_like(games, game), games.sharding))
        state, _ = program(state._replace(actor=state.actor._replace(env_state=env_state)), progress)
        value, reward, policy = jax.device_get(heads(state.learner.params))
        return SimpleNamespace(value=value, reward=reward, policy=policy)

    return run


def near(values, wanted):
    np.testing.assert_allclose(values, np.broadcast_to(wanted, np.shape(values)), atol=0.15)


def test_value_and_reward_learn_a_constant_reward(learn):
    learned = learn(probes.REWARD_1)
    near(learned.value[:2], 1)
    near(learned.reward[:2], 1)


def test_value_and_reward_follow_the_observation(learn):
    learned = learn(probes.OBSERVATION)
    near(learned.value[:2], [-1, 1])
    near(learned.reward[:2], [[-1, -1], [1, 1]])


def test_the_first_players_value_is_minus_1_if_the_opponent_wins_next(learn):
    learned = learn(probes.OPPONENT)
    near(learned.value, [-1, -1, 1, 1])
    near(learned.reward, [[0, 0], [0, 0], [1, 1], [1, 1]])


def test_the_policy_picks_the_action_that_pays(learn):
    learned = learn(probes.ACTION)
    near(learned.reward[:2], [-1, 1])
    assert (learned.policy[:2, 1] > 0.8).all()
    assert (learned.value[:2] > 0.7).all()


def test_the_policy_picks_the_action_that_the_observation_names(learn):
    learned = learn(probes.BOTH)
    near(learned.reward[:2], [[1, -1], [-1, 1]])
    assert learned.policy[0, 0] > 0.8 and learned.policy[1, 1] > 0.8
    assert (learned.value[:2] > 0.7).all()
