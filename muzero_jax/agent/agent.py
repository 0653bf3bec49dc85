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

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.agent.analysis import Analysis, Judgement, StateAnalysis, expected_lines, search_without_repeats
from muzero_jax.agent.searcher import Searcher, policy_head_search
from muzero_jax.algorithm import Algorithm, make_algorithm, playing
from muzero_jax.config.config import Config
from muzero_jax.config.fields import Simulations, check_value
from muzero_jax.games.catalogue import game_of, make_notation, needs_key
from muzero_jax.games.environment import by_hand
from muzero_jax.games.notation import Notation
from muzero_jax.search.simulator import Simulator, policy
from muzero_jax.types import Array, Environment, EnvState, Model, Params, SearchFn, SearchOutput

NUM_LINES = 5
LINE_LENGTH = 8


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
        """The action that the agent plays in `state`; raises ValueError as `analyse` does."""
        return self._analyse(state, num_simulations).action

    def analyse(self, state: EnvState, num_simulations: int | None = None) -> StateAnalysis:
        """The agent's analysis of `state`, after a search of `num_simulations` (by default its usual budget).

        Raises ValueError if the game is over, or `state` is not one state of this game, or the budget is out of range.
        """
        found = self._analyse(state, num_simulations)
        return StateAnalysis(
            action=found.action,
            policy=found.policy,
            value=found.value,
            prior=found.prior,
            prior_value=found.prior_value,
            lines=expected_lines(
                found,
                state,
                self.environment.move,
                self.notation,
                has_chance=self._has_chance,
                width=NUM_LINES,
                length=LINE_LENGTH,
            ),
            num_simulations=found.num_simulations,
        )

    def search(self, states: EnvState, num_simulations: int | None = None) -> SearchOutput:
        """Searches B states (leaves [B, ...]) in one compiled call.

        Returns:
          `action` [B], `policy` [B, A], `value` [B], and `tree`, a `muzero_jax.search.tree.Tree` of all nodes and
          edges. Rows do not depend on each other; each equals what `analyse` finds for its state, except for rounding.
        """
        return self.searcher.search(self.environment.roots(states), self._budget(num_simulations))

    def network(self, observations: Array) -> Judgement:
        """The network's own judgement of N observations [N, ...], in one compiled call."""
        return self._judge(self.params, jnp.asarray(observations))

    def search_fn(
        self, num_simulations: int | None = None, *, true_rules: bool = False, trees: bool = False
    ) -> SearchFn:
        """The search without noise as a function, to be used in a program of your own.

        Args:
          num_simulations: for each position; by default the agent's own budget.
          true_rules: plan with the ground-truth model, the game's own rules, instead of the learned dynamics.
          trees: return the trees, too, which costs the time that a search in passes saves.
        """
        simulator = self._simulator
        if true_rules:
            simulator = playing.make_simulator(
                dataclasses.replace(self.config, model="rules"), self.environment, self.model
            )
        budget = num_simulations or self.num_simulations
        return self.make_search(simulator._replace(shows_tree=trees), budget, False)

    @cached_property
    def searcher(self) -> Searcher:
        """The compiled searches, which keep their trees."""
        bound = self.model.bound
        return Searcher(
            partial(self.search_fn, trees=True),
            policy_head_search(self.model),
            self.params,
            most_value=float("inf") if bound is None else bound,
        )

    @property
    def agent(self) -> "Agent":
        """The agent itself, as programs for earlier versions call it."""
        return self

    def _replace(self, **changes: Any) -> "Agent":
        """A copy with other fields, which compiles anew."""
        return dataclasses.replace(self, **changes)

    def __repr__(self) -> str:
        what = f"iteration {self.iteration}, {self.num_simulations} simulations"
        return f"<Agent {self.name}: {game_of(self.environment).title}, {what}>"

    @cached_property
    def _simulator(self) -> Simulator:
        return self.make_simulator(self.environment, self.model)

    @cached_property
    def _has_chance(self) -> bool:
        return needs_key(self.environment)

    @cached_property
    def _state(self) -> EnvState:
        """The shapes of a state."""
        return jax.eval_shape(self.environment.init, jax.random.key(0))

    @cached_property
    def _judge(self) -> Callable[[Params, Array], Judgement]:
        def judge(params: Params, observations: Array) -> Judgement:
            output = self.model.initial_inference(params, observations)
            value = self.model.to_scalar(output.value_logits)
            return Judgement(policy(output), value, output.embedding, output.extras)

        return jax.jit(judge)

    def _analyse(self, state: EnvState, num_simulations: int | None) -> Analysis:
        self._check(state)
        budget = self._budget(num_simulations)
        return search_without_repeats(
            lambda mask: self.searcher.analyse(state, mask, budget),
            state.legal_action_mask,
            lambda action: self._repeats(state, action),
        )

    def _repeats(self, state: EnvState, action: int) -> bool:
        repeats = game_of(self.environment).repeats
        return repeats is not None and repeats(self.environment.move(state, action).state)

    def _budget(self, given: int | None) -> int:
        return self.num_simulations if given is None else check_budget(given, "num_simulations")

    def _check(self, state: EnvState) -> None:
        for field in ("observation", "legal_action_mask", "current_player"):
            given = getattr(getattr(state, field, None), "shape", None)
            needed = getattr(self._state, field).shape
            if given != needed:
                raise ValueError(
                    f"the state's {field} has the shape {given}, but that of one state of {self.environment.name} is "
                    f"{needed}; make states with agent.environment, or ask about many by agent.search"
                )
        if state.terminated:
            raise ValueError("the game is over")


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
