"""Asks a trained agent about positions: by a search with a given budget, or with as much as a given time allows.

XLA compiles one program per budget. A time therefore chooses among powers of two, by the measured times of their
searches. Compiling takes seconds and is kept off the clock: if the best budget for a time is not compiled, the next
smaller one that is compiled is used, and `catch_up` compiles the better one between moves. If only larger ones are
compiled, the smallest of them is used. Search has no noise, so it is deterministic; a temperature samples from the
search policy with a seeded generator on the host.
"""

import time
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from muzero_jax.agent import Agent
from muzero_jax.agent.analysis import Analysis, search_without_repeats
from muzero_jax.apps.play.position import Position
from muzero_jax.games.catalogue import hides
from muzero_jax.types import EnvState

FIRST_BUDGET = 16  # measured first if a time is given; enough simulations to estimate their time
MOST_SIMULATIONS = 16384

WHY_ANOTHER = (
    "The agent plays the best of the moves that its search tried most often. The shares rate all moves, also those "
    "that it tried less often: the network learns from them."
)


class Thinker:
    """An agent that analyses positions of its game.

    Args:
      num_simulations: the budget of calls that give neither a budget nor a time.
      most_simulations: the largest budget that a time may choose; it chooses powers of two.
      temperature: 0 plays the search's choice; T samples from policy^(1/T), seeded by `seed`. None: 0, or 1 in a game
        with hidden information, where only a mixed strategy cannot be exploited.
    """

    def __init__(
        self,
        agent: Agent,
        *,
        num_simulations: int,
        most_simulations: int = MOST_SIMULATIONS,
        temperature: float | None = None,
        seed: int = 0,
    ):
        self._agent = agent
        self.most_value = agent.most_value
        self.searches = agent.searches
        self.num_simulations = num_simulations
        self.most_simulations = most_simulations
        self.temperature = float(hides(agent.environment)) if temperature is None else temperature
        self._generator = np.random.default_rng(seed)
        self._took: dict[int, float] = {}  # seconds of a search, by budget
        self._behind: int | None = None  # a budget for `catch_up` to compile

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
        start = time.perf_counter()

        def search(mask: Bool[np.ndarray, " A"]) -> Analysis:
            left = None if seconds is None else seconds - (time.perf_counter() - start)
            found = self._search(state, mask, num_simulations or self._choose_budget(state, left))
            return found._replace(action=self._draw(found.policy * mask, found.action))

        repeats = partial(position.repeats, colour=colour)
        found = search_without_repeats(search, state.legal_action_mask, repeats)
        return found._replace(seconds=time.perf_counter() - start)

    @property
    def why(self) -> str:
        """Explains why the agent's move need not have the largest share."""
        drawn = f"The move is drawn from the shares, at temperature {self.temperature:g}."
        return drawn if self.temperature else WHY_ANOTHER

    def search(self, position: Position, num_simulations: int) -> Analysis:
        """One search for the side to move, whose action is the search's own at any temperature."""
        state = position.seen_by()
        return self._search(state, state.legal_action_mask, num_simulations)

    def prior(self, position: Position) -> Float[np.ndarray, " A"]:
        """The network's policy over the legal actions of the side to move, without search."""
        return self._agent.prior(position.seen_by())

    def line(self, position: Position, length: int) -> list[int]:
        """The moves of both sides from here, each found by its own search; at most `length`."""
        actions: list[int] = []
        while len(actions) < length and not position.is_over:
            actions.append(self.search(position, self.num_simulations).action)
            position = position.play(actions[-1])
        return actions

    def prepare(self, position: Position, seconds: float | None = None) -> None:
        """Compiles and times the search that a move of `seconds` (by default the usual budget) will need."""
        state = position.seen_by()
        position.play(int(np.argmax(state.legal_action_mask)))  # compiles the rules
        if seconds is None:
            self._measure(state, self.num_simulations)
            return
        budget = self._affordable(seconds) if self._took else min(FIRST_BUDGET, self.most_simulations)
        while not self._is_ready(budget):
            self._measure(state, budget)
            budget = self._affordable(seconds)

    def catch_up(self, position: Position) -> None:
        """Compiles the budget that the last move could have used, if any; call it after sending an answer."""
        if self._behind is not None and not position.is_over:
            budget, self._behind = self._behind, None  # once only, if it fails
            self._measure(position.seen_by(), budget)

    def _choose_budget(self, state: EnvState, seconds: float | None) -> int:
        if seconds is None:
            return self.num_simulations
        if not self._took:
            self._measure(state, min(FIRST_BUDGET, self.most_simulations))
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
        return self._agent.is_compiled(budget) and budget in self._took

    def _affordable(self, seconds: float) -> int:
        """The largest power of two whose search should take at most `seconds`; at least 1."""
        largest = max(self._took)
        simulations = min(max(0.0, seconds) * largest / self._took[largest], self.most_simulations)
        budget = 1 << max(0, int(simulations).bit_length() - 1)
        while budget > 1 and self._took.get(budget, 0.0) > seconds:
            budget //= 2
        return budget

    def _measure(self, state: EnvState, budget: int) -> None:
        """Searches twice: the first call compiles."""
        for _ in range(2):
            self._took[budget] = self._search(state, state.legal_action_mask, budget).seconds

    def _search(self, state: EnvState, mask: Bool[Any, " A"], budget: int) -> Analysis:
        is_new = not self._agent.is_compiled(budget)
        found = self._agent.think(state, mask, budget)
        if not is_new:
            self._took[budget] = (self._took.get(budget, found.seconds) + found.seconds) / 2
        return found

    def _draw(self, policy: np.ndarray, best: int) -> int:
        """`best` at temperature 0 (or if the policy is all 0), else a sample from policy^(1/T)."""
        if not self.temperature or not policy.max() > 0:
            return best
        weights = (policy.astype(np.float64) / policy.max()) ** (1 / self.temperature)
        return int(self._generator.choice(len(weights), p=weights / weights.sum()))


def make_thinker(agent: Agent, **options) -> Thinker:
    """The `Thinker` of an agent; `options` are Thinker's keyword arguments."""
    return Thinker(agent, **options)
