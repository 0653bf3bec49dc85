"""Judges moves by exact play: `examine` samples positions, solves them, and compares players' moves with the solutions.

The positions depend only on the seed and, if half of them come from its own games, on the agent, whose policy head
plays these; so all players are judged on the same ones. Rates are over positions in which a move can be a mistake,
because elsewhere every move is right. The baseline for every rate is a uniformly random move.
"""

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from muzero_jax.agent import load_agent, policy_head_search
from muzero_jax.apps.evaluation import players, positions
from muzero_jax.apps.evaluation.arena import Report, silent
from muzero_jax.apps.evaluation.batches import in_keyed_batches
from muzero_jax.apps.evaluation.exact_play.oracle import ILLEGAL, Solutions, solve
from muzero_jax.apps.evaluation.exact_play.solved import make_oracle
from muzero_jax.apps.evaluation.matches import wilson_interval
from muzero_jax.apps.evaluation.player import Player, random_player
from muzero_jax.apps.evaluation.players import Agent, Entrant, LoadAgent, PlayerSpec
from muzero_jax.apps.evaluation.tables import align, fields, percent, percent_interval
from muzero_jax.games.catalogue import check_for_two, game_of
from muzero_jax.types import EnvState, Params

BUDGETS = (16, 64, 256)
"""Simulations a move by default."""

Score = dict[str, Any]


class Candidate(NamedTuple):
    """A player whose moves are judged."""

    name: str
    params: Params
    program: Hashable  # equal for candidates that differ only in their params
    answer: Callable[[Params, Array, EnvState], tuple[Array, Array | None]]
    """(params, key, states [B, ...]) -> actions [B], and values for the player to move [B] or None"""


class Solved(NamedTuple):
    """N positions with their solutions."""

    states: EnvState  # leaves [N, ...], on the host
    is_own_play: np.ndarray  # [N] bool, False if it comes from a random game, or from none
    solutions: Solutions

    @property
    def can_win_and_err(self) -> np.ndarray:
        """[N] bool: some legal moves win and others do not."""
        return self.solutions.can_err & (self.solutions.value > 0)


def draw(agent: Agent, num_positions: int, seed: int, report: Report = silent, *, own_games: bool = True) -> Solved:
    """At most `num_positions` solved positions; in a small game, all.

    Args:
      report: called with (solved, total) while positions are solved, which can take a minute.
      own_games: take half of them from the agent's own games; else all are from random games, and the same for every
        agent of a game.

    Raises ValueError for a game or board without an oracle, or if no sampled game lasted long enough.
    """
    environment = agent.environment
    check_for_two(environment, "an oracle needs")
    oracle = make_oracle(game_of(environment), agent.config.board_size)
    if oracle.is_small:
        states, is_own_play = positions.enumerate_all(environment)
    else:
        player = players.policy_head(agent) if own_games else random_player(environment)
        states, is_own_play = positions.sample(
            environment, player, agent.params, num_positions=num_positions, min_plies=oracle.min_plies, seed=seed
        )
        is_own_play &= own_games
    if not is_own_play.size:
        raise ValueError(f"none of the sampled games lasted {oracle.min_plies} moves; raise --positions")
    solutions = solve(oracle, states.observation, num_actions=environment.num_actions, report=report)
    return Solved(states, is_own_play, solutions)


def examine(
    agent: Agent,
    candidates: list[Candidate],
    *,
    num_positions: int,
    seed: int,
    own_games: bool = True,
    report: Report = silent,
    say: Callable[[str], None] = silent,
) -> Score:
    """Judges the candidates on positions of `draw`; returns counts of positions by kind, and `scores` by player.

    `say` is called with a line before each candidate is compiled and judged. Raises ValueError as `draw` does.
    """
    solved = draw(agent, num_positions, seed, report, own_games=own_games)
    return describe(solved) | {"scores": [score_random(solved), *judge(solved, candidates, seed, say)]}


def winning_move_accuracies(
    judged: Sequence[Agent], *, num_positions: int, seed: int, report: Report
) -> list[tuple[float, int]]:
    """Each agent's winning-move accuracy, with the number of positions that have winning and other moves.

    All agents, of one game, are judged on the same positions of random games, which are solved once. Raises ValueError
    as `draw` does, if the agents' games differ, and if there is no such position.
    """
    for agent in judged[1:]:
        players.check_same_game(judged[0].config, agent.config, agent.name)
    solved = draw(judged[0], num_positions, seed, report, own_games=False)
    count = int(solved.can_win_and_err.sum())
    if not count:
        raise ValueError("no sampled position had winning and losing moves; judge each run by evaluate.py oracle")
    candidates = [_of_entrant(agent.name, players.enter(PlayerSpec("agent"), agent)) for agent in judged]
    return [(score["keeps_win_rate"], count) for score in judge(solved, candidates, seed)]


def judge(
    solved: Solved, candidates: Sequence[Candidate], seed: int, say: Callable[[str], None] = silent
) -> list[Score]:
    """The score of each candidate; candidates with the same program are compiled once."""
    programs = dict[Hashable, Callable]()
    scores = []
    for candidate in candidates:
        say(f"compiling and judging: {candidate.name} ...")
        answer = programs.setdefault(candidate.program, jax.jit(candidate.answer))
        action, value = in_keyed_batches(partial(answer, candidate.params), seed, solved.states)
        scores.append(score_player(candidate.name, action, value, solved))
    return scores


def format_table(result: Score) -> str:
    """Counts of positions by kind, then a line for each player: rates with 95% intervals, and the value error.

    "winning moves" is the winning-move accuracy (`keeps_win_rate`); "blunders" turn a win into a loss
    (`loses_win_rate`).
    """
    columns = {"optimal_move_rate": "optimal moves", "keeps_win_rate": "winning moves", "loses_win_rate": "blunders"}
    rows = [["", *columns.values(), "value error"]]
    for score in result["scores"]:
        error = score.get("value_error")
        ends = {name: score.get(f"{name}_ci95") for name in columns}
        shown = {name: f" {percent_interval(interval)}" if interval else "" for name, interval in ends.items()}
        rates = [f"{percent(score[name])}{shown[name]}" for name in columns]
        rows.append([score["player"], *rates, "" if error is None else f"{error:.3f}"])
    kinds = {name: value for name, value in result.items() if name != "scores"}
    return "\n".join([fields(kinds), "", *align(rows)])


def agent_candidates(agent: Agent, budgets: tuple[int, ...]) -> list[Candidate]:
    """The agent's policy head, then its search without noise at each budget."""
    searches = {"policy head": policy_head_search(agent.model)}
    if agent.searches:
        searches |= {f"{budget} simulations": agent.search_fn(budget) for budget in budgets}

    def answer(search, params, key, states):
        found = search(params, key, agent.environment.roots(states))
        return found.action, found.value

    return [Candidate(name, agent.params, name, partial(answer, search)) for name, search in searches.items()]


def named_candidate(spec: PlayerSpec, agent: Agent, load_agent: LoadAgent = load_agent) -> Candidate:
    """A player by name, loaded by `players.load`."""
    if spec.engine is not None:  # checked before positions are solved
        raise ValueError(f"{spec.engine.name} is another program, which plays only matches and tournaments")
    entrant = players.load(spec, agent, load_agent)
    return _of_entrant(entrant.name if spec.run else entrant.player.name, entrant)


def _of_entrant(name: str, entrant: Entrant) -> Candidate:
    """A candidate whose values are not judged."""
    player = entrant.player
    assert isinstance(player, Player)
    return Candidate(name, entrant.params, entrant.program, lambda *asked: (player.act(*asked), None))


def describe(solved: Solved) -> Score:
    """Counts of positions by kind; "own play" are positions from the agent's own games."""
    value = solved.solutions.value
    kinds = {
        "from_own_play": solved.is_own_play,
        "won": value > 0,
        "drawn": value == 0,
        "lost": value < 0,
        "can_err": solved.solutions.can_err,
        "can_win_and_err": solved.can_win_and_err,
    }
    return {"positions": len(value)} | {name: int(is_kind.sum()) for name, is_kind in kinds.items()}


def score_random(solved: Solved) -> Score:
    """The exact expected score of a uniformly random move; without intervals and value error."""
    action_values = solved.solutions.action_values
    num_legal = (action_values != ILLEGAL).sum(axis=1)
    keeps = solved.solutions.keeps_value.sum(axis=1)
    loses = (action_values == -1).sum(axis=1)
    rates = _rates(keeps / num_legal, loses / num_legal, solved)
    return {"player": "a random move"} | {name: rate for name, (rate, _) in rates.items()}


def score_player(name: str, action: np.ndarray, value: np.ndarray | None, solved: Solved) -> Score:
    """Judges a player's actions [N], and its values [N] of the positions if given.

    `optimal_move_rate`: share of moves that keep the position's value, if some legal move would not. `keeps_win_rate`:
    the winning-move accuracy, the same over won positions, also by the positions' origin. `loses_win_rate`: share of
    moves that turn such a win into a loss. `value_error`: mean |value - exact value| over all positions. A rate over no
    positions is None.
    """
    exact = solved.solutions
    chosen = exact.action_values[np.arange(len(action)), action]
    result: Score = {"player": name}
    for rate_name, (rate, count) in _rates(chosen == exact.value, chosen == -1, solved).items():
        result[rate_name] = rate
        result[f"{rate_name}_ci95"] = None if rate is None else list(wilson_interval(rate, count))
    result["value_error"] = None if value is None else float(np.abs(value - exact.value).mean())
    result["illegal_actions"] = int((chosen == ILLEGAL).sum())
    return result


def _rates(keeps: np.ndarray, loses: np.ndarray, solved: Solved) -> dict[str, tuple[float | None, int]]:
    """Each rate with its number of positions."""
    can_win_and_err = solved.can_win_and_err
    is_own_play = solved.is_own_play
    parts = {
        "optimal_move_rate": (keeps, solved.solutions.can_err),
        "keeps_win_rate": (keeps, can_win_and_err),
        "keeps_win_rate_random_play": (keeps, can_win_and_err & ~is_own_play),
        "keeps_win_rate_own_play": (keeps, can_win_and_err & is_own_play),
        "loses_win_rate": (loses, can_win_and_err),
    }
    return {n: (float(x[at].mean()) if at.any() else None, int(at.sum())) for n, (x, at) in parts.items()}
