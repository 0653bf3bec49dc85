"""PPO on a game of octax, the baseline of this study: python docs/results/arcade/ppo.py pong --minutes 90 --seed 0

`octax.agents.ppo` with its authors' settings (conf/config.yaml of riiswa/octax), and a dense layer instead of its
convolutions, because on a CPU XLA takes 38 seconds for 2,048 frames with them and 1.8 with this. It needs
`pip install rejax==0.1.3 gymnax==0.0.9` in an environment of its own.

Minutes are processor time; run it under `taskset -c 0`. Five times, the last at the end, it plays 64 episodes, which
do not count, and prints their mean return with Student's 95% interval. The rows are added to `scores.csv` beside it.
"""

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import flax.linen as nn
import jax
import numpy as np
from octax.agents.ppo import Agent, DiscretePolicy, PPOOctax, VNetwork
from octax.environments import create_environment
from octax.wrappers import OctaxGymnaxWrapper
from rejax.evaluate import evaluate
from scipy import stats

SETTINGS: dict[str, Any] = dict(num_envs=512, num_steps=32, num_epochs=4, num_minibatches=32, learning_rate=5e-4)
EPISODES, EVALUATIONS = 64, 5
SCORES = Path(__file__).with_name("scores.csv")


class Dense(Agent):
    """Their actor and critic on one dense layer of the whole screen."""

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
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    environment = OctaxGymnaxWrapper(create_environment(chosen.game)[0])
    ppo = PPO.create(env=environment, **SETTINGS)
    state = ppo.init_state(jax.random.key(chosen.seed))
    iterate = jax.jit(ppo.train_iteration).lower(state).compile()
    name, updates, spent, iteration = f"ppo-octax-{chosen.game}", 0, 0.0, 0
    with SCORES.open("a", newline="", encoding="utf-8") as file:
        write = csv.writer(file, lineterminator="\n").writerow
        for evaluation in range(1, EVALUATIONS + 1):
            while spent < 60 * chosen.minutes * evaluation / EVALUATIONS:
                begin = time.process_time()
                state = jax.block_until_ready(iterate(state))
                spent, iteration = spent + time.process_time() - begin, iteration + 1
            key = jax.random.key(evaluation)
            returns = np.asarray(evaluate(ppo.make_act(state), key, environment, ppo.env_params, EPISODES)[1])
            mean, half = float(returns.mean()), float(stats.sem(returns) * stats.t.ppf(0.975, EPISODES - 1))
            frames = iteration * ppo.iteration_size
            updates = iteration * SETTINGS["num_epochs"] * SETTINGS["num_minibatches"]
            print(f"{spent / 60:.1f} minutes, {frames:,} frames: {mean:.2f} [{mean - half:.2f}, {mean + half:.2f}]")
            run = (name, f"{name}/seed{chosen.seed}", chosen.seed, frames, updates, spent / 60, "nan")
            write((*run, "selfplay/mean_return", mean, evaluation == EVALUATIONS, EPISODES))
            file.flush()


if __name__ == "__main__":
    main()
