"""A trained network and its search: all that evaluation, play and programs of users need."""

from muzero_jax.agent.agent import Agent, make_agent, policy_head_search
from muzero_jax.agent.loading import inspect_agent, load, load_agent, misreading

__all__ = ["Agent", "inspect_agent", "load", "load_agent", "make_agent", "misreading", "policy_head_search"]
