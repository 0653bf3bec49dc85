"""A trained agent: its game, its network and its search.

    agent = muzero_jax.load("agent:hex_5x5")
    state = agent.environment.init(jax.random.key(0))
    analysis = agent.analyse(state)
    print(analysis.value, analysis.lines[0].moves)
    found = agent.search(states)  # many states at once: found.action [B], found.policy [B, A], found.value [B]
    state = agent.environment.move(state, agent.act(state)).state

A state says who is to move and what is legal, so nothing else is needed. The search is that of the terminal and the
browser: it has no noise, and gives the same answer for the same state. Each budget is compiled when it is first used,
which takes seconds.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from muzero_jax.agent.analysis import Analysis, Judgement, expected_lines, search_without_repeats
from muzero_jax.algorithm import Algorithm, make_algorithm, playing
from muzero_jax.config.config import Config
from muzero_jax.config.fields import Simulations, check_value
from muzero_jax.games.catalogue import check_open, game_of, hides, make_notation, needs_key
from muzero_jax.games.environment import by_hand
from muzero_jax.games.notation import Notation
from muzero_jax.search.model_free import policy_head
from muzero_jax.search.simulator import Simulator, policy, without_model
from muzero_jax.search.tree import Tree
from muzero_jax.types import Array, Environment, EnvState, Model, Params, SearchFn, SearchOutput, SearchRoots

MOST_COMPILED = 16
"""Programs that an agent keeps; the least recently used one is dropped, because callers may ask for many budgets."""


@dataclass(frozen=True, eq=False, repr=False)
class Agent:
    """A trained agent, which analyses states of its game and plays moves.

    Attributes:
      config: of its training.
      environment: the game, compiled. `environment.init(key)` begins a game, `environment.move(state, action)` makes a
        move; a game with chance also takes a key.
      model: the network, as functions of its weights.
      make_simulator, make_search: its search, as in `Algorithm`.
      num_simulations: the search budget of calls that give none.
      params: the weights.
      iteration: how many iterations of training it has seen.
      name: the path that it was loaded from.
    """

    config: Config
    environment: Environment
    model: Model
    make_simulator: Callable[[Environment, Model], Simulator]
    make_search: Callable[[Simulator, int | None, bool], SearchFn]
    num_simulations: int
    params: Params = None
    iteration: int = 0
    name: str = "agent"

    @cached_property
    def notation(self) -> Notation:
        """`notation.write(state, action)` is a move as text, and `notation.read(state, text)` its action."""
        return make_notation(self.environment)

    def act(self, state: EnvState, num_simulations: int | None = None) -> int:
        """The action that the agent plays in `state`; raises ValueError as `analyse` does.

        In a game with hidden information it is drawn from the policy, and another one each time.
        """
        found = self._analyse(state, num_simulations)
        if hides(self.environment):
            return int(np.random.default_rng().choice(len(found.policy), p=found.policy / found.policy.sum()))
        return found.action

    def analyse(self, state: EnvState, num_simulations: int | None = None) -> Analysis:
        """The agent's analysis of `state`, after a search of `num_simulations` (by default its usual budget).

        Raises ValueError if the game is over, or `state` is not one state of this game, or the budget is out of range.
        """
        found = self._analyse(state, num_simulations)
        lines = expected_lines(found, state, self.environment.move, self.notation, self._has_chance)
        return found._replace(tree=None, lines=lines)

    def search(self, states: EnvState, num_simulations: int | None = None) -> SearchOutput:
        """Searches B states (leaves [B, ...]) in one compiled call.

        Returns:
          `action` [B], `policy` [B, A], `value` [B], and `tree`, a `muzero_jax.search.tree.Tree` of all nodes and
          edges. Rows do not depend on each other; each equals what `analyse` finds for its state, except for rounding.
        """
        program = self._program(self._of_many, self._budget(num_simulations))
        return program(self.params, jax.random.key(0), self.environment.roots(states))

    def network(self, observations: Array) -> Judgement:
        """The network's own judgement of N observations [N, ...], in one compiled call."""
        return self._judge(self.params, jnp.asarray(observations))

    def search_fn(
        self, num_simulations: int | None = None, *, true_rules: bool = False, trees: bool = False
    ) -> SearchFn:
        """The search without noise as a function, for a program of your own.

        Args:
          num_simulations: for each position; by default the agent's own budget.
          true_rules: plan with the ground-truth model, the game's own rules, instead of the learned dynamics.
          trees: return the trees as well, which a search in passes does not have.

        Raises ValueError for `true_rules` in a game with hidden information.
        """
        simulator = self._simulator
        if true_rules:
            check_open(self.environment, "a search with the rules")
            simulator = playing.make_simulator(replace(self.config, model="rules"), self.environment, self.model)
        return self.make_search(simulator._replace(shows_tree=trees), num_simulations or self.num_simulations, False)

    def think(self, state: EnvState, legal_action_mask: Bool[Any, " A"], num_simulations: int) -> Analysis:
        """One search of a state, with these moves at its root."""
        program = self._program(self._of_one, num_simulations)
        start = time.perf_counter()
        answer, tree = program(self.params, state, jnp.asarray(legal_action_mask))
        action, policy, value, prior, prior_value = jax.device_get(answer)
        seconds = time.perf_counter() - start
        return Analysis(
            action=int(action),
            policy=policy,
            value=float(np.clip(value, -self.most_value, self.most_value)),
            prior=prior,
            prior_value=float(np.clip(prior_value, -self.most_value, self.most_value)),
            num_simulations=num_simulations if self.searches else 0,
            seconds=seconds,
            tree=tree,
            most_value=self.most_value,
        )

    def prior(self, state: EnvState) -> Float[np.ndarray, " A"]:
        """The network's policy over the legal actions of a state, without search."""
        roots = _roots_of_one(state, state.legal_action_mask)
        return np.asarray(self._look(self.params, jax.random.key(0), roots).policy[0])

    def is_compiled(self, num_simulations: int) -> bool:
        """Whether `think` has compiled its search for this budget."""
        return (self._of_one, num_simulations) in self._programs

    @cached_property
    def most_value(self) -> float:
        """The largest return that the network can predict; values of an `Analysis` are clipped to it."""
        return float("inf") if self.model.bound is None else self.model.bound

    @property
    def searches(self) -> bool:
        """Whether it searches; else its policy head plays, whatever the budget."""
        return self.config.model != "none"

    def _replace(self, **changes: Any) -> "Agent":
        return replace(self, **changes)

    def __repr__(self) -> str:
        how = f"{self.num_simulations} simulations" if self.searches else "without a search"
        what = f"iteration {self.iteration}, {how}"
        return f"<Agent {self.name}: {game_of(self.environment).title}, {what}>"

    @cached_property
    def _simulator(self) -> Simulator:
        return self.make_simulator(self.environment, self.model)

    @cached_property
    def _programs(self) -> dict[tuple[Callable, int], Callable]:
        """By kind and budget, the most recently used last."""
        return {}

    @cached_property
    def _has_chance(self) -> bool:
        return needs_key(self.environment)

    @cached_property
    def _look(self) -> SearchFn:
        return jax.jit(policy_head_search(self.model))

    @cached_property
    def _judge(self) -> Callable[[Params, Array], Judgement]:
        def judge(params: Params, observations: Array) -> Judgement:
            output = self.model.initial_inference(params, observations)
            value = self.model.to_scalar(output.value_logits)
            return Judgement(policy(output), value, output.embedding, output.extras)

        return jax.jit(judge)

    def _program(self, kind: Callable[[SearchFn], Callable], num_simulations: int) -> Callable:
        """A program that is kept, or a new one, which JAX compiles at its first call."""
        name = kind, num_simulations
        program = self._programs.pop(name, None) or jax.jit(kind(self.search_fn(num_simulations, trees=True)))
        self._programs[name] = program
        for oldest in list(self._programs)[:-MOST_COMPILED]:
            del self._programs[oldest]
        return program

    def _of_many(self, search: SearchFn) -> SearchFn:
        return search

    def _of_one(self, search: SearchFn) -> Callable:
        def think(params: Params, state: EnvState, mask: Array) -> tuple[Any, Tree | None]:
            asked = params, jax.random.key(0), _roots_of_one(state, mask)
            found = search(*asked)
            first_sight = self._look(*asked)
            tree = found.tree._replace(embedding=None) if isinstance(found.tree, Tree) else None
            answer = found.action, found.policy, found.value, first_sight.policy, first_sight.value
            return jax.tree.map(lambda x: x[0], answer), tree

        return think

    def _analyse(self, state: EnvState, num_simulations: int | None) -> Analysis:
        self._check(state)
        budget = self._budget(num_simulations)
        game = game_of(self.environment)

        def repeats(action: int) -> bool:
            return game.repeats is not None and game.repeats(self.environment.move(state, action).state)

        return search_without_repeats(lambda mask: self.think(state, mask, budget), state.legal_action_mask, repeats)

    def _budget(self, given: int | None) -> int:
        return self.num_simulations if given is None else check_budget(given, "num_simulations")

    def _check(self, state: EnvState) -> None:
        shapes = {
            "observation": self.environment.observation_shape,
            "legal_action_mask": (self.environment.num_actions,),
            "current_player": (),
        }
        for field, needed in shapes.items():
            given = getattr(getattr(state, field, None), "shape", None)
            if given != needed:
                raise ValueError(
                    f"the state's {field} has the shape {given}, but that of one state of {self.environment.name} is "
                    f"{needed}; make states with agent.environment, or ask about many by agent.search"
                )
        if state.terminated:
            raise ValueError("the game is over")


def policy_head_search(model: Model) -> SearchFn:
    """A search without simulations: the network's policy over legal actions, its likeliest action, and its value."""
    return policy_head(without_model(model))


def make_agent(
    config: Config,
    algorithm: Algorithm | None = None,
    *,
    num_simulations: int | None = None,
    params: Params = None,
) -> Agent:
    """An agent with the given weights; its game, network and search come from `algorithm`, by default the config's.

    Args:
      num_simulations: of a search, by default; if left out, the config's evaluation.num_simulations.
    """
    if algorithm is None and config.algorithm.files:  # which may change the network and the search
        algorithm = make_algorithm(config)
    environment = algorithm.environment if algorithm else playing.build_environment(config)
    return Agent(
        config=config,
        environment=by_hand(environment),
        model=algorithm.model if algorithm else playing.build_model(config, environment),
        make_simulator=algorithm.make_simulator if algorithm else partial(playing.make_simulator, config),
        make_search=algorithm.make_search if algorithm else partial(playing.make_search, config),
        num_simulations=num_simulations or config.evaluation.num_simulations,
        params=params,
    )


def check_budget(number: int, name: str) -> int:
    """The `number` of simulations, if a search can have so many; else ValueError, which calls it `name`."""
    check_value(number, Simulations, name)
    return number


def _roots_of_one(state: EnvState, legal_action_mask: Array) -> SearchRoots:
    states, mask = jax.tree.map(lambda x: jnp.asarray(x)[None], (state, legal_action_mask))
    return SearchRoots(states.observation, mask, states)
