"""Loads a trained agent, lets it play against itself, and prints its moves and values: python examples/analyse.py"""

import jax

import muzero_jax

agent = muzero_jax.load("agent:hex_5x5")  # or the folder of a run: "runs/hex-5-seed0"
state = agent.environment.init(jax.random.key(0))
while not state.terminated:
    analysis = agent.analyse(state)  # agent.act(state) returns only the action
    print(agent.notation.write(state, analysis.action), f"value {analysis.value:+.2f} for the side to move")
    state = agent.environment.move(state, analysis.action).state
