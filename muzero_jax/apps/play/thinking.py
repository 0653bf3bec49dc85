"""Asks a trained agent about positions: by a search with a given budget, or with as much as a given time allows.

XLA compiles one program per budget. A time therefore chooses among powers of two, by the measured times of their
searches. Compiling takes seconds and is kept off the clock: if the best budget for a time is not compiled, the next
smaller one that is compiled is used, and `catch_up` compiles the better one between moves. If only larger ones are
compiled, the smallest of them is used. Search has no noise, so it is deterministic; a temperature samples from the
search policy with a seeded generator on the host.
"""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from muzero_jax import types
from muzero_jax.agent import Agent, policy_head_search
from muzero_jax.apps.play.position import Position
from muzero_jax.search.tree import Tree
from muzero_jax.types import EnvState, Params, SearchFn

FIRST_BUDGET = 16  # measured first if a time is given; enough simulations to estimate their time
MOST_SIMULATIONS = 16384
MOST_COMPILED = 8
"""Budgets that are kept compiled; the least recently used one is dropped, because callers may ask for many."""

WHY_ANOTHER = (
    "The agent plays the best of the moves that its search tried most often. The shares rate all moves, also those "
    "that it tried less often: the network learns from them."
)


class Analysis(NamedTuple):
    """The agent's analysis of a position for the colour to move."""

    action: int  # the agent's move
    policy: Float[np.ndarray, " A"]  # of the search
    value: float  # of the search, in [-most_value, most_value], for the colour to move
    prior: Float[np.ndarray, " A"]  # the network's own policy over legal actions
    prior_value: float  # the network's own value, likewise
    num_simulations: int
    seconds: float
    tree: Tree | None = None  # without embeddings, on the device; None if the search keeps no tree
    most_value: float = 1.0  # the largest return that the network can predict

    def best(self, count: int) -> list[int]:
        """The agent's move, then the moves with the largest shares of at least 0.001; at most `count`."""
        order = [int(a) for a in np.argsort(-self.policy, kind="stable") if self.policy[a] >= 1e-3]
        return [self.action, *(action for action in order if action != self.action)][:count]


class Thinker:
    """An agent that analyses positions of its game.

    Args:
      make_search: budget -> search; a user's own function may raise for budgets that it does not support.
      head: the network without search, as a `SearchFn`.
      num_simulations: the budget of calls that give neither a budget nor a time.
      most_simulations: the largest budget that a time may choose; it chooses powers of two.
      temperature: 0 plays the search's choice; T samples from policy^(1/T), seeded by `seed`.
    """

    most_value = 1.0
    """The largest return that the network can predict; values are clipped to it."""

    def __init__(
        self,
        make_search: Callable[[int], SearchFn],
        head: SearchFn,
        params: Params,
        *,
        num_simulations: int,
        most_simulations: int = MOST_SIMULATIONS,
        temperature: float = 0.0,
        seed: int = 0,
    ):
        self._make_search = make_search
        self._head = head
        self._params = params
        self.num_simulations = num_simulations
        self.most_simulations = most_simulations
        self.temperature = temperature
        self._generator = np.random.default_rng(seed)
        self._compiled: dict[int, Callable] = {}  # by budget, most recently used last
        self._took: dict[int, float] = {}  # seconds of a search, by budget
        self._behind: int | None = None  # a budget for `catch_up` to compile
        self._look = jax.jit(head)

    def analyse(
        self,
        position: Position,
        colour: int | None = None,
        *,
        num_simulations: int | None = None,
        seconds: float | None = None,
    ) -> Analysis:
        """Searches for `colour` (by default the side to move).

        Raises IllegalMove if the game is over or `colour` cannot be to move.
        """
        state = position.seen_by(colour)
        mask = np.array(state.legal_action_mask)
        start = time.perf_counter()
        while True:
            left = None if seconds is None else seconds - (time.perf_counter() - start)
            budget = self.nearest(num_simulations) if num_simulations else self._choose_budget(state, left)
            analysis = self._search(state, mask, budget)
            action = self._draw(analysis.policy * mask, analysis.action)
            if mask.sum() == 1 or not position.repeats(action, colour):
                return analysis._replace(action=action, seconds=time.perf_counter() - start)
            mask[action] = False

    @property
    def why(self) -> str:
        """Explains why the agent's move need not have the largest share."""
        drawn = f"The move is drawn from the shares, at temperature {self.temperature:g}."
        return drawn if self.temperature else WHY_ANOTHER

    def search(self, position: Position, num_simulations: int) -> Analysis:
        """One search for the side to move, whose action is the search's own at any temperature."""
        state = position.seen_by()
        return self._search(state, np.asarray(state.legal_action_mask), self.nearest(num_simulations))

    def prior(self, position: Position) -> Float[np.ndarray, " A"]:
        """The network's policy over the legal actions of the side to move, without search."""
        states = jax.tree.map(lambda x: jnp.asarray(x)[None], position.seen_by())
        roots = types.SearchRoots(states.observation, states.legal_action_mask, states)
        return np.asarray(self._look(self._params, jax.random.key(0), roots).policy[0])

    def line(self, position: Position, length: int) -> list[int]:
        """The moves of both sides from here, each found by its own search; at most `length`."""
        actions: list[int] = []
        while len(actions) < length and not position.is_over:
            mask = position.legal_action_mask()
            actions.append(self._search(position.state, mask, self.num_simulations).action)
            position = position.play(actions[-1])
        return actions

    def prepare(self, position: Position, seconds: float | None = None) -> None:
        """Compiles and times the search that a move of `seconds` (by default the usual budget) will need."""
        state = position.seen_by()
        position.play(int(np.argmax(state.legal_action_mask)))  # compiles the rules
        if seconds is None:
            self._measure(state, self.num_simulations)
            return
        budget = self._affordable(seconds) if self._took else self.nearest(min(FIRST_BUDGET, self.most_simulations))
        while not self._is_ready(budget):
            self._measure(state, budget)
            budget = self._affordable(seconds)

    def catch_up(self, position: Position) -> None:
        """Compiles the budget that the last move could have used, if any; call it after sending an answer."""
        if self._behind is not None and not position.is_over:
            self._measure(position.seen_by(), self._behind)
            self._behind = None

    def _choose_budget(self, state: EnvState, seconds: float | None) -> int:
        if seconds is None:
            return self.num_simulations
        if not self._took:
            self._measure(state, self.nearest(min(FIRST_BUDGET, self.most_simulations)))
        wanted = self._affordable(seconds)
        if self._is_ready(wanted):
            return wanted
        ready = [budget for budget in self._took if self._is_ready(budget)]
        smaller = [budget for budget in ready if budget < wanted]
        self._behind = wanted if smaller else None
        # A few more simulations take less time than compiling.
        return max(smaller, default=min(ready, default=wanted))

    def _is_ready(self, budget: int) -> bool:
        """Whether a search is compiled and its time is known."""
        return budget in self._compiled and budget in self._took

    def nearest(self, budget: int) -> int:
        """The budget, or the usual one if the user's own search does not support this budget."""
        if budget in self._compiled:
            return budget
        try:
            self._make_search(budget)
        except Exception:  # the user's function may raise anything
            return self.num_simulations
        return budget

    def _affordable(self, seconds: float) -> int:
        """The largest supported power of two whose search should take at most `seconds`; at least 1."""
        largest = max(self._took)
        simulations = min(max(0.0, seconds) * largest / self._took[largest], self.most_simulations)
        budget = 1 << max(0, int(simulations).bit_length() - 1)
        while budget > 1 and (self._took.get(budget, 0.0) > seconds or self.nearest(budget) != budget):
            budget //= 2
        return self.nearest(budget)

    def _measure(self, state: EnvState, budget: int) -> None:
        """Searches twice: the first call compiles."""
        mask = np.asarray(state.legal_action_mask)
        for _ in range(2):
            self._took[budget] = self._search(state, mask, budget).seconds

    def _search(self, state: EnvState, mask: np.ndarray, budget: int) -> Analysis:
        is_new = budget not in self._compiled
        search = self._compile(budget) if is_new else self._compiled.pop(budget)
        start = time.perf_counter()
        answer, tree = search(self._params, state, jnp.asarray(mask))
        action, policy, value, prior, prior_value = jax.device_get(answer)
        value, prior_value = (float(np.clip(x, -self.most_value, self.most_value)) for x in (value, prior_value))
        seconds = time.perf_counter() - start
        self._compiled[budget] = search
        for oldest in list(self._compiled)[:-MOST_COMPILED]:
            del self._compiled[oldest]
        if not is_new:
            self._took[budget] = seconds if budget not in self._took else (self._took[budget] + seconds) / 2
        return Analysis(int(action), policy, value, prior, prior_value, budget, seconds, tree, self.most_value)

    def _compile(self, budget: int) -> Callable:
        search = self._make_search(budget)
        head = self._head

        def think(params, state, mask):
            states, mask = jax.tree.map(lambda x: jnp.asarray(x)[None], (state, mask))
            roots = types.SearchRoots(states.observation, mask, states)
            key = jax.random.key(0)
            found = search(params, key, roots)
            first_sight = head(params, key, roots)
            tree = found.tree._replace(embedding=None) if isinstance(found.tree, Tree) else None
            answer = found.action, found.policy, found.value, first_sight.policy, first_sight.value
            return jax.tree.map(lambda x: x[0], answer), tree

        return jax.jit(think)

    def _draw(self, policy: np.ndarray, best: int) -> int:
        """`best` at temperature 0 (or if the policy is all 0), else a sample from policy^(1/T)."""
        if not self.temperature or not policy.max() > 0:
            return best
        weights = (policy.astype(np.float64) / policy.max()) ** (1 / self.temperature)
        return int(self._generator.choice(len(weights), p=weights / weights.sum()))


def make_thinker(agent: Agent, **options) -> Thinker:
    """The `Thinker` of a loaded agent; `options` are Thinker's keyword arguments."""
    thinker = Thinker(agent.with_trees().search, policy_head_search(agent.model), agent.params, **options)
    bound = agent.model.bound
    thinker.most_value = float("inf") if bound is None else bound
    return thinker
