"""A trained agent as a Python object: `muzero_jax.load("runs/x")`, or `muzero_jax.load("agent:hex_5x5")`.

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

import functools
import operator
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from muzero_jax.agent import Agent, check_budget, load_agent
from muzero_jax.algorithm import Algorithm
from muzero_jax.apps.play import tree_view
from muzero_jax.apps.play.position import Position, opening_of
from muzero_jax.apps.play.thinking import Analysis, make_thinker
from muzero_jax.games.catalogue import make_notation
from muzero_jax.own.trust import Trust
from muzero_jax.search.simulator import policy
from muzero_jax.types import Array, EnvState, Params, SearchOutput, Step

NUM_LINES = 5
LINE_LENGTH = 8


class Line(NamedTuple):
    """One continuation that the search expects: legal moves, one after the other."""

    moves: tuple[str, ...]  # at most 8, in the game's notation; only one if chance may act next
    actions: tuple[int, ...]  # the same as numbers
    visits: int  # simulations that began with the first move
    value: float  # of the first move, for the side to move


class StateAnalysis(NamedTuple):
    """An agent's analysis of a state. Values are returns for the side to move, in [-1, 1] (or as large as the run's
    `network.support_range`).
    """

    action: int  # the agent's move
    policy: Float[np.ndarray, " A"]  # of the search
    value: float  # of the search
    prior: Float[np.ndarray, " A"]  # the network's own policy over legal actions
    prior_value: float  # the network's own value
    lines: tuple[Line, ...]  # of the 5 best moves, first that of `action`; empty without a tree
    num_simulations: int


class Judgement(NamedTuple):
    """The network's own outputs for N positions, without search."""

    policy: Float[Array, "N A"]  # over all actions, illegal ones included
    value: Float[Array, " N"]  # for the player to move
    embedding: Array  # [N, ...]
    extras: dict[str, Array]  # further heads by name, your own too, [N, ...] each


class TrainedAgent:
    """A trained agent, which analyses states of its game and plays moves.

    Attributes:
      environment: the game, compiled. `environment.init(key)` begins a game, `environment.move(state, action)` makes a
        move; a game with chance also takes a key.
      notation: `notation.write(state, action)` is a move as text, and `notation.read(state, text)` its action.
      num_simulations: the search budget of calls that give none.
      agent: the network, its config and its weights (`muzero_jax.agent.Agent`).
      name: the path that it was loaded from.
      iteration: how many iterations of training it has seen.
    """

    def __init__(self, agent: Agent):
        self.agent = agent
        environment = agent.environment
        self._game = opening_of(environment)
        has_key = environment.num_players == 1 or self._game.has_chance
        move = jax.jit(environment.move) if has_key else lambda state, action, key: self._game.move(state, action)

        def checked(state: EnvState, action: Any, key: Array | None = None) -> Step:
            """The compiled `move`, but it raises ValueError for an action that is not legal in this state."""
            if not any(isinstance(value, Tracer) for value in (action, state.legal_action_mask)):
                self._check_legal(state, action)
            return move(state, jnp.int32(action), key)

        def judge(params: Params, observations: Array) -> Judgement:
            output = agent.model.initial_inference(params, observations)
            value = agent.model.to_scalar(output.value_logits)
            return Judgement(policy(output), value, output.embedding, output.extras)

        self._compiled = functools.cache(lambda budget: jax.jit(agent.search(budget)))
        self._network = jax.jit(judge)
        self._thinker = make_thinker(agent, num_simulations=agent.num_simulations)
        self._shapes = jax.eval_shape(environment.init, jax.random.key(0))
        self.environment = environment._replace(init=jax.jit(environment.init), move=checked)
        self.notation = make_notation(environment)
        self.num_simulations = agent.num_simulations
        self.name = agent.name
        self.iteration = agent.iteration

    def __repr__(self) -> str:
        what = f"{self._game.game.title}, iteration {self.iteration}, {self.num_simulations} simulations"
        return f"<TrainedAgent {self.name}: {what}>"

    def act(self, state: EnvState, num_simulations: int | None = None) -> int:
        """The action that the agent plays in `state`; raises ValueError as `analyse` does."""
        return self._analyse(self._position(state), num_simulations).action

    def analyse(self, state: EnvState, num_simulations: int | None = None) -> StateAnalysis:
        """The agent's analysis of `state`, after a search of `num_simulations` (by default its usual budget).

        Raises ValueError if the game is over, or `state` is not one state of this game, or the budget is out of range.
        """
        position = self._position(state)
        found = self._analyse(position, num_simulations)
        return StateAnalysis(
            found.action,
            found.policy,
            found.value,
            found.prior,
            found.prior_value,
            self._lines(position, found),
            found.num_simulations,
        )

    def search(self, states: EnvState, num_simulations: int | None = None) -> SearchOutput:
        """Searches B states (leaves [B, ...]) in one compiled call.

        Returns:
          `action` [B], `policy` [B, A], `value` [B], and `tree`, a `muzero_jax.search.tree.Tree` of all nodes and
          edges. Rows do not depend on each other; each equals what `analyse` finds for its state, except for rounding.
        """
        roots = self.environment.roots(states)
        return self._compiled(self._budget(num_simulations))(self.agent.params, jax.random.key(0), roots)

    def network(self, observations: Array) -> Judgement:
        """The network's own judgement of N observations [N, ...], in one compiled call."""
        return self._network(self.agent.params, jnp.asarray(observations))

    def _check_legal(self, state: EnvState, action: Any) -> None:
        legal = np.asarray(state.legal_action_mask)
        number = operator.index(action)
        if not (0 <= number < len(legal) and legal[number]):
            raise ValueError(
                f"the action {number} is not legal here; the legal ones are {np.flatnonzero(legal).tolist()}"
            )

    def _analyse(self, position: Position, num_simulations: int | None) -> Analysis:
        return self._thinker.analyse(position, num_simulations=self._budget(num_simulations))

    def _budget(self, given: int | None) -> int:
        return self.num_simulations if given is None else check_budget(given, "num_simulations")

    def _position(self, state: EnvState) -> Position:
        for field in ("observation", "legal_action_mask", "current_player"):
            given = getattr(getattr(state, field, None), "shape", None)
            needed = getattr(self._shapes, field).shape
            if given != needed:
                raise ValueError(
                    f"the state's {field} has the shape {given}, but that of one state of {self.environment.name} is "
                    f"{needed}; make states with agent.environment, or ask about many by agent.search"
                )
        return self._game.new(state)

    def _lines(self, position: Position, found: Analysis) -> tuple[Line, ...]:
        lines = tree_view.expected(found, position, self.notation, width=NUM_LINES, length=LINE_LENGTH)
        return tuple(
            Line(tuple(b.text for b in line), tuple(b.action for b in line), line[0].visits, line[0].q)
            for line in lines
        )


def load(
    run: str | Path,
    num_simulations: int | None = None,
    board_size: int | None = None,
    *,
    algorithm: Algorithm | None = None,
    trust_code: bool = False,
) -> TrainedAgent:
    """Loads the agent of a run (its newest checkpoint), of a version in it (RUN/versions/N), or of a file.

    `agent:hex_5x5` is an included agent, `agent:PATH.safetensors` an agent in a file of yours.

    Args:
      run: the run's folder, a version in it, or agent:NAME.
      num_simulations: the agent's usual search budget; by default the run's evaluation.num_simulations.
      board_size: the board to play on, if the network fits every board; by default the size of the training.
      algorithm: the algorithm that you passed to `muzero_jax.train`; by default the one that the config names.
      trust_code: run the Python files of a game, a network or an algorithm that the run or the agent names; read them
        first. Files that you trained with yourself, and that have not changed since, run without it.

    Raises ValueError if there is no such run or agent, or if it names a Python file that is not trusted.
    """
    if num_simulations is not None:
        check_budget(num_simulations, "num_simulations")
    if board_size is not None and algorithm is not None:
        raise ValueError("board_size cannot change an algorithm of your own; make the algorithm for that board")
    build = algorithm and (lambda config: algorithm)
    trust = Trust(all_code=trust_code)
    return TrainedAgent(load_agent(Path(run), num_simulations, build, board_size, trust).with_trees())
