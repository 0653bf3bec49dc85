"""A trained network and its search: all that evaluation, play and programs of users need.

`loading` makes the `agent` of a run or a file, `searcher` compiles its searches, and `analysis` says what they found.
"""

from muzero_jax.agent.agent import Agent, make_agent
from muzero_jax.agent.loading import inspect_agent, load, load_agent, misreading
from muzero_jax.agent.searcher import policy_head_search

__all__ = ["Agent", "inspect_agent", "load", "load_agent", "make_agent", "misreading", "policy_head_search"]
