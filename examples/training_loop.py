"""A training loop of your own around the compiled program: python examples/training_loop.py

It saves, evaluates and prints only what you write here. The state is a pytree: parameters, optimiser, games and replay
buffer. The agent is exported to a file for `muzero_jax.load` and `play.py --agent`.
"""

import numpy as np

from muzero_jax.ops.mesh import make_mesh
from muzero_jax.run.machine import configure_devices

mesh = make_mesh(configure_devices())  # before anything else touches JAX: a device for each CPU core

from muzero_jax import presets  # noqa: E402
from muzero_jax.algorithm import make_algorithm  # noqa: E402
from muzero_jax.run import program  # noqa: E402
from muzero_jax.storage import agent_file  # noqa: E402

CONFIG = presets.preset("tic_tac_toe", None)


def main(config=CONFIG, num_chunks=20, file="my_agent.safetensors"):
    """Trains for some chunks of iterations and exports the agent."""
    algorithm = make_algorithm(config)  # environment, network, search, replay and learner, as functions
    state = program.make_init(algorithm, config.seed, mesh)()
    chunk = program.make_chunk(algorithm, mesh)
    num_iterations = config.iterations_per_chunk
    for index in range(num_chunks):
        progress = np.full(num_iterations, index / num_chunks, np.float32)  # for schedules, such as the learning rate's
        state, metrics = chunk(state, progress)  # metrics are stacked by iteration; a loss is 0 until learning begins
        games = metrics["selfplay/games"].sum()
        loss = metrics["train/loss"][-1]
        print(f"iteration {int(state.iteration):4}  games {int(games):5}  loss {float(loss):.3f}")
    agent_file.save(file, config, state.learner.params, iteration=int(state.iteration))
    print(f"python experiments/play.py --agent {file}")


if __name__ == "__main__":
    main()
