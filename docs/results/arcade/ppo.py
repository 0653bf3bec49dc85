"""PPO, the baseline of this study: python docs/results/arcade/ppo.py octax:pong --minutes 90 --seed 1

`octax.agents.ppo` on this project's environment, with the settings of its authors (conf/config.yaml of riiswa/octax),
for MinAtar those of pgx's example (examples/minatar-ppo of sotetsuk/pgx), and for Craftax those of its authors
(Craftax_Baselines) with fewer environments, because they train for a thousand times as many frames. A dense layer
replaces the convolutions: for 2,048 frames of octax XLA takes 38 seconds with them on a CPU, and 1.8 with this. In an
environment of its own: `pip install -e ".[octax]" -c constraints.txt`, then `pip install rejax==0.1.3 gymnax==0.0.9`.

Minutes are processor time, or `--frames` counts frames; run it under `taskset -c 0`. Five times, the last at the end,
it plays 64 episodes, which do not count, and prints their mean return with Student's 95% interval. The rows are added
to `scores.csv` beside it.
"""

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import numpy as np
from gymnax.environments.environment import Environment, EnvParams
from gymnax.environments.spaces import Box, Discrete
from octax.agents.ppo import Agent, DiscretePolicy, PPOOctax, VNetwork
from rejax.evaluate import evaluate

from muzero_jax import make_environment
from muzero_jax.apps.evaluation.matches import student_interval

OCTAX: dict[str, Any] = dict(num_envs=512, num_steps=32, num_epochs=4, num_minibatches=32, learning_rate=5e-4)
MINATAR: dict[str, Any] = dict(num_envs=4096, num_steps=128, num_epochs=3, num_minibatches=128, learning_rate=3e-4)
CRAFTAX: dict[str, Any] = dict(num_envs=64, num_steps=64, num_epochs=4, num_minibatches=8, learning_rate=3e-4)
EPISODES, EVALUATIONS, LONGEST = 64, 5, 5_000
SCORES = Path(__file__).with_name("scores.csv")


class Ours(Environment):
    """A game of muzero_jax as gymnax's interface has it."""

    def __init__(self, name: str):
        self._game = make_environment(name)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Ours":
        """Itself: rejax copies its settings, and octax's games hold what cannot be copied."""
        return self

    @property
    def default_params(self) -> EnvParams:
        """Nothing but how long an evaluated episode may last."""
        return EnvParams(max_steps_in_episode=LONGEST)

    def reset_env(self, key: jax.Array, params: EnvParams) -> Any:
        """A new game."""
        state = self._game.init(key)
        return self._game.observe(state), state

    def step_env(self, key: jax.Array, state: Any, action: Any, params: EnvParams) -> Any:
        """One move."""
        step = self._game.move(state, action, key)
        return self._game.observe(step.state), step.state, step.reward, step.is_last, {}

    def action_space(self, params: EnvParams) -> Discrete:
        """The game's moves."""
        return Discrete(self._game.num_actions)

    def observation_space(self, params: EnvParams) -> Box:
        """Planes of zeros and ones."""
        return Box(0.0, 1.0, self._game.observation_shape)


class Dense(Agent):
    """Their actor and critic on one dense layer of all that is seen."""

    def setup(self) -> None:
        """The layers."""
        heads = {"hidden_layer_sizes": (256,), "activation": nn.relu}
        self.features = nn.Sequential([lambda x: x.reshape(len(x), -1), nn.Dense(256), nn.relu])
        self.actor, self.critic = DiscretePolicy(self.action_dim, **heads), VNetwork(**heads)


class PPO(PPOOctax):
    """Theirs, with `Dense`, as the keyword that rejax 0.1.3 expects."""

    @classmethod
    def create_agent(cls, config: Any, env: Any, env_params: Any) -> Any:
        """The agent as keywords."""
        return {"agent": Dense(action_dim=env.action_space(env_params).n)}


def main() -> None:
    """Trains, evaluates and writes one run."""
    parser = argparse.ArgumentParser()
    parser.add_argument("game")
    parser.add_argument("--minutes", type=float, default=90.0)
    parser.add_argument("--frames", type=int, help="instead of minutes")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    environment, library = Ours(chosen.game), chosen.game.partition(":")[0]
    settings = {"octax": OCTAX, "craftax": CRAFTAX}.get(library, MINATAR)
    ppo = PPO.create(env=environment, **settings)
    state = ppo.init_state(jax.random.key(chosen.seed))
    iterate = jax.jit(ppo.train_iteration).lower(state).compile()
    name, spent, iteration = f"ppo-{chosen.game.replace(':', '-')}", 0.0, 0
    with SCORES.open("a", newline="", encoding="utf-8") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        for evaluation in range(1, EVALUATIONS + 1):
            part = evaluation / EVALUATIONS
            while (
                (iteration * ppo.iteration_size < chosen.frames * part)
                if chosen.frames
                else spent < 60 * chosen.minutes * part
            ):
                begin = time.process_time()
                state = jax.block_until_ready(iterate(state))
                spent, iteration = spent + time.process_time() - begin, iteration + 1
            key = jax.random.key(evaluation)
            returns = np.asarray(evaluate(ppo.make_act(state), key, environment, ppo.env_params, EPISODES)[1])
            mean, (low, high) = float(returns.mean()), student_interval(returns)
            frames = iteration * ppo.iteration_size
            updates = iteration * settings["num_epochs"] * settings["num_minibatches"]
            print(f"{spent / 60:.1f} minutes, {frames:,} frames: {mean:.2f} [{low:.2f}, {high:.2f}]")
            run = (name, f"{name}/seed{chosen.seed}", chosen.seed, frames, updates, spent / 60, "nan")
            write((*run, "selfplay/mean_return", mean, evaluation == EVALUATIONS, EPISODES))
            file.flush()


if __name__ == "__main__":
    main()
