"""Moves against exact play: `examine` draws positions, solves them, and judges moves by the solutions.

The positions depend on the run and the seed alone, not on who is judged, so that players are compared on the same
ones; an agent's own games are played by its policy head. Rates are over positions in which a move can be a mistake:
where every move keeps the value, being right says nothing. The yardstick for every rate is a uniformly random move,
which keeps the value in the mean share of moves that do.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from muzero_jax import agent as agents
from muzero_jax.apps.engines import engines
from muzero_jax.apps.evaluation import opponents, players, positions
from muzero_jax.apps.evaluation.batches import in_keyed_batches
from muzero_jax.apps.evaluation.exact_play.oracle import ILLEGAL, Oracle, Solutions, solve
from muzero_jax.apps.evaluation.exact_play.solved import make_oracle
from muzero_jax.apps.evaluation.matches import wilson_interval
from muzero_jax.apps.evaluation.players import Agent, LoadAgent, PlayerSpec
from muzero_jax.apps.evaluation.positions import Positions
from muzero_jax.apps.evaluation.tables import align, fields, percent, percent_interval
from muzero_jax.games.catalogue import check_for_two, game_of
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment, EnvState, Params, SearchFn, SearchOutput

BUDGETS = (16, 64, 256)
"""Simulations a move by default."""

Score = dict[str, Any]


class Candidate(NamedTuple):
    """Somebody whose moves are judged."""

    name: str
    params: Params
    search: SearchFn  # of whose output the action is read, and the value unless it is None


def examine(
    agent: Agent,
    candidates: list[Candidate],
    *,
    num_positions: int,
    seed: int,
    report: Callable[[int, int], None] = lambda solved, total: None,
    say: Callable[[str], None] = lambda line: None,
) -> Score:
    """Judges the candidates on positions of the agent's game; returns the positions' kinds and `scores`, one a player.

    Args:
      num_positions: at most; a game with few positions is examined on all of them all the same.
      report: called with (solved, total) while positions are solved, which can take a minute.
      say: called with a line before each candidate's moves are compiled and found.

    Raises:
      ValueError: no oracle for this game or board, or too few positions asked for.
    """
    if num_positions < 1:
        raise ValueError(f"--positions is {num_positions}, but must be positive")
    check_for_two(agent.environment, "an oracle needs")
    oracle = make_oracle(game_of(agent.environment), agent.config.board_size)
    states, is_own_play = _draw(agent, oracle, num_positions, seed)
    if not is_own_play.size:
        raise ValueError(f"none of the games drawn lasted {oracle.min_plies} moves; ask for more --positions")
    environment = agent.environment
    solutions = solve(oracle, states.observation, num_actions=environment.num_actions, report=report)
    scores = [score_random(solutions, is_own_play)]
    for candidate in candidates:
        say(f"compiling and judging: {candidate.name} ...")
        action, value = in_keyed_batches(jax.jit(partial(_answer, environment, candidate)), seed, states)
        scores.append(score_player(candidate.name, action, value, solutions, is_own_play))
    return describe(solutions, is_own_play) | {"scores": scores}


def winning_move_accuracies(
    judged: Sequence[Agent], *, num_positions: int, seed: int, report: Callable[[int, int], None]
) -> list[tuple[float, int]]:
    """Each agent's share of winning moves where it can win and can err, and the number of those positions.

    All agents, of one game, are judged on the same positions of random games, which are solved once. Raises ValueError
    as `examine`, and where no position can be won and missed.
    """
    agent = judged[0]
    environment, oracle = agent.environment, make_oracle(game_of(agent.environment), agent.config.board_size)
    states, is_own_play = _draw(agent, oracle, num_positions, seed, own_games=False)
    solutions = solve(oracle, states.observation, num_actions=environment.num_actions, report=report)
    count = int((solutions.can_err & (solutions.value > 0)).sum())
    if not count:
        raise ValueError("no position was drawn that can be won and missed; judge each run by evaluate.py oracle")
    searches: dict[Config, Callable] = {}  # agents that differ in their seed alone share a program
    found: list[tuple[float, int]] = []
    for agent in judged:
        act = searches.setdefault(replace(agent.config, seed=0), jax.jit(players.searching(agent).act))
        action = in_keyed_batches(lambda key, batch, of=agent, act=act: act(of.params, key, batch), seed, states)
        score = score_player(agent.name, action, None, solutions, is_own_play)
        found.append((score["keeps_win_rate"], count))
    return found


def format_table(result: Score) -> str:
    """The positions' kinds, then one line a player: percentages with their 95% intervals, and the value error.

    Winning moves are the winning-move accuracy, `keeps_win_rate`; blunders turn a win into a loss, `loses_win_rate`.
    """
    columns = {"optimal_move_rate": "optimal moves", "keeps_win_rate": "winning moves", "loses_win_rate": "blunders"}
    rows = [["", *columns.values(), "value error"]]
    for score in result["scores"]:
        error = score.get("value_error")
        rates = [_format_rate(score[name], score.get(f"{name}_ci95")) for name in columns]
        rows.append([score["player"], *rates, "" if error is None else f"{error:.3f}"])
    kinds = {name: value for name, value in result.items() if name != "scores"}
    return "\n".join([fields(kinds), "", *align(rows)])


def agent_candidates(agent: Agent, budgets: tuple[int, ...]) -> list[Candidate]:
    """The run's policy head by itself, then its search without noise at each budget."""
    if not budgets:
        raise ValueError("--budgets needs one or more numbers of simulations")
    for budget in budgets:
        agents.check_budget(budget, "--budgets")
    searches = {"policy head": agents.policy_head(agent.model)}
    searches |= {f"{budget} simulations": agent.search(budget) for budget in budgets}
    return [Candidate(name, agent.params, search) for name, search in searches.items()]


def named_candidate(spec: PlayerSpec, agent: Agent, load_agent: LoadAgent = agents.load_agent) -> Candidate:
    """A player by name, as in `players.load`, without an opinion of a position's value."""
    if spec.engine is not None:  # before positions are solved for it
        raise engines.refusal(spec.engine)
    name, player, params, *_ = players.load(spec, agent, load_agent)

    def search(params, key, position):
        return SearchOutput(player.act(params, key, position.state), None, None)  # type: ignore

    return Candidate(name if spec.run else player.name, params, search)


def describe(solutions: Solutions, is_own_play: np.ndarray) -> Score:
    """How many positions there are of each kind; "own play" are those that a player's own games led to."""
    value, can_err = solutions.value, solutions.can_err
    return {
        "positions": len(value),
        "from_own_play": int(is_own_play.sum()),
        "won": int((value > 0).sum()),
        "drawn": int((value == 0).sum()),
        "lost": int((value < 0).sum()),
        "can_err": int(can_err.sum()),
        "can_win_and_err": int((can_err & (value > 0)).sum()),
    }


def score_random(solutions: Solutions, is_own_play: np.ndarray) -> Score:
    """The exact mean score of a uniformly random move; it has no interval and estimates no value."""
    num_legal = (solutions.action_values != ILLEGAL).sum(axis=1)
    share_kept = solutions.keeps_value.sum(axis=1) / num_legal
    share_lost = (solutions.action_values == -1).sum(axis=1) / num_legal
    rates = _rates(share_kept, share_lost, solutions, is_own_play)
    return {"player": "a random move"} | {name: rate for name, (rate, _) in rates.items()}


def score_player(
    name: str, action: np.ndarray, value: np.ndarray | None, solutions: Solutions, is_own_play: np.ndarray
) -> Score:
    """Judges a player's actions [N], and its opinion of its positions' values [N] if it has one.

    `optimal_move_rate`: keeps the position's value, where some legal move would not. `keeps_win_rate`: the winning-move
    accuracy, which is the same where the value is a win, also by the positions' origin. `loses_win_rate`: moves from
    such a win to a loss.
    `value_error`: mean |value - exact value| over all positions. A rate over no positions is None.
    """
    chosen = solutions.action_values[np.arange(len(action)), action]
    rates = _rates(chosen == solutions.value, chosen == -1, solutions, is_own_play)
    result: Score = {"player": name}
    for rate_name, (rate, num_positions) in rates.items():
        result[rate_name] = rate
        result[f"{rate_name}_ci95"] = None if rate is None else list(wilson_interval(rate, num_positions))
    result["value_error"] = None if value is None else float(np.abs(value - solutions.value).mean())
    result["illegal_actions"] = int((chosen == ILLEGAL).sum())
    return result


def _rates(
    keeps: np.ndarray, loses: np.ndarray, solutions: Solutions, is_own_play: np.ndarray
) -> dict[str, tuple[float | None, int]]:
    """Each rate with the number of positions that it is over."""
    can_win_and_err = solutions.can_err & (solutions.value > 0)
    parts = {
        "optimal_move_rate": (keeps, solutions.can_err),
        "keeps_win_rate": (keeps, can_win_and_err),
        "keeps_win_rate_random_play": (keeps, can_win_and_err & ~is_own_play),
        "keeps_win_rate_own_play": (keeps, can_win_and_err & is_own_play),
        "loses_win_rate": (loses, can_win_and_err),
    }
    counts = {name: int(where.sum()) for name, (_, where) in parts.items()}
    return {n: (float(x[where].mean()) if counts[n] else None, counts[n]) for n, (x, where) in parts.items()}


def _format_rate(rate: float | None, interval: list[float] | None) -> str:
    return percent(rate) if interval is None else f"{percent(rate)} {percent_interval(interval)}"


def _answer(environment: Environment, candidate: Candidate, key: Array, states: EnvState) -> tuple[Array, Array | None]:
    """(actions [B], values for the player to move [B], or None if the candidate estimates none)."""
    found = candidate.search(candidate.params, key, environment.roots(states))
    return found.action, found.value


def _draw(agent: Agent, oracle: Oracle, num_positions: int, seed: int, *, own_games: bool = True) -> Positions:
    environment = agent.environment
    if oracle.is_small:
        return positions.enumerate_all(environment)
    return positions.sample(
        environment,
        players.policy_head(agent) if own_games else opponents.random_player(environment),
        agent.params,
        num_positions=num_positions,
        min_plies=oracle.min_plies,
        seed=seed,
    )
