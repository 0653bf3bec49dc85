"""Measures an agent by the best judge available for its game, in one table.

In small games a solver knows the right moves, so a few hundred positions say more than thousands of games. In
backgammon GNU Backgammon, if it is installed, comes close to that. In other games the agent plays against opponents
that need no training, and in single-player games its mean return is measured.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
from jax.sharding import Mesh

from muzero_jax.agent import Agent, policy_head_search
from muzero_jax.apps.evaluation import equity, openings, oracle_evaluation, players, returns
from muzero_jax.apps.evaluation.arena import ShardedMatch
from muzero_jax.apps.evaluation.exact_play.solved import make_oracle
from muzero_jax.apps.evaluation.exploitability import BestResponses, NotWalkable
from muzero_jax.apps.evaluation.matches import are_for_points, points_of, student_interval, wilson_interval
from muzero_jax.apps.evaluation.player import Player
from muzero_jax.apps.evaluation.tables import align, percent, percent_interval
from muzero_jax.games.catalogue import game_of, hides

BY_RANDOM_GAMES = "mcts:100", "mcts:1000"
BY_DICE = ("expectimax:1",)
"""Opponents that need no training: rollout MCTS, or in backgammon, where that is weak, expectimax over the dice."""
Say = Callable[[str], None]


class Finding(NamedTuple):
    """One line of the table."""

    judge: str
    measure: str
    value: float
    low: float
    high: float
    count: int  # positions, openings, games or episodes
    is_share: bool = True


def examine(agent: Agent, mesh: Mesh, *, positions: int, games: int, seed: int, say: Say) -> list[Finding]:
    """The findings of all judges of the agent's game, with 95% intervals.

    Args:
      positions: to solve or judge, if there is a judge. games: against each opponent, or episodes.
    """
    if agent.environment.num_players == 1:
        return [_returns(agent, mesh, games, seed, say)]
    if hides(agent.environment):
        try:
            return [_best_responses(agent, say)]
        except NotWalkable as error:
            say(f"{error}; a match against random play instead")
            return [*_matches(agent, mesh, games, seed, say, ("random",))]
    found = [*_exact_play(agent, positions, seed, say), *_openings(agent, say)]
    return found or [*_equity(agent, positions, seed, say)] or [*_matches(agent, mesh, games, seed, say)]


def _exact_play(agent: Agent, positions: int, seed: int, say: Say) -> Iterator[Finding]:
    """The moves of the agent and of its policy head, if the game has a solver."""
    try:
        make_oracle(game_of(agent.environment), agent.config.board_size)
    except ValueError:
        return
    say("solving positions ...")
    candidates = oracle_evaluation.agent_candidates(agent, (agent.num_simulations,))
    # Of random games only, so that the tables of two agents of a game compare.
    judged = oracle_evaluation.examine(agent, candidates, num_positions=positions, seed=seed, own_games=False, say=say)
    counts = {"keeps_win_rate": judged["can_win_and_err"], "optimal_move_rate": judged["can_err"]}
    names = {"keeps_win_rate": "winning-move accuracy", "optimal_move_rate": "optimal moves"}
    for score in judged["scores"][1:]:  # the first is a random move
        for rate, count in counts.items():
            if score[rate] is not None:
                low, high = score[f"{rate}_ci95"]
                yield Finding("exact play", f"{names[rate]}, {score['player']}", score[rate], low, high, count)


def _best_responses(agent: Agent, say: Say) -> Finding:
    """The exploitability of the policy head in a game with hidden information."""
    say("walking through the whole game ...")
    found = BestResponses(agent.environment, policy_head_search(agent.model)).examine(agent.params)
    value = found.exploitability
    return Finding("best response", "points it wins a game", value, value, value, found.histories, is_share=False)


def _openings(agent: Agent, say: Say) -> Iterator[Finding]:
    """The opening-value accuracy in Hex up to 7x7."""
    if (searched := openings.solved_openings(agent)) is not None:
        say("searching the opening moves ...")
        judged = openings.judge(searched.values(agent.params))
        share = openings.share_right(judged)
        solved = judged["solved"]
        yield Finding("exact play", "opening-value accuracy", share, *wilson_interval(share, solved), solved)


def _equity(agent: Agent, positions: int, seed: int, say: Say) -> Iterator[Finding]:
    """The equity lost in backgammon, if GNU Backgammon is installed."""
    if (judge := equity.judge_of(agent)) is not None:
        say("compiling, then judging turns by GNU Backgammon ...")
        lost = equity.losses(agent, judge, num_positions=positions, seed=seed)
        if lost.size:
            mean = float(lost.mean())
            share = float((lost == 0).mean())
            yield Finding(equity.JUDGE, "equity lost a turn", mean, *student_interval(lost), lost.size, is_share=False)
            yield Finding(equity.JUDGE, "best turns", share, *wilson_interval(share, lost.size), lost.size)


def _matches(
    agent: Agent, mesh: Mesh, games: int, seed: int, say: Say, rivals: Sequence[str] = ()
) -> Iterator[Finding]:
    """The score against each of the `rivals`, by default those that suit the game."""
    for name in rivals or (BY_DICE if game_of(agent.environment).worth else BY_RANDOM_GAMES):
        say(f"{name}: compiling, then playing {games} games ...")
        rival = players.enter(players.parse(name), agent)
        assert isinstance(rival.player, Player)
        seats = (players.searching(agent), rival.player)
        plies = agent.config.evaluation.opening_plies
        match = ShardedMatch(agent.environment, *seats, mesh, num_games=games, opening_plies=plies)
        result = match(agent.params, rival.params, jax.random.key(seed))
        if are_for_points([result]):
            yield Finding(name, "points a game", *points_of(result), result["games"], is_share=False)
        else:
            low, high = result["ci95"]
            yield Finding(name, "score", result["score"], low, high, result["games"])


def _returns(agent: Agent, mesh: Mesh, games: int, seed: int, say: Say) -> Finding:
    """The mean return."""
    say(f"compiling, then playing {games} episodes ...")
    player = players.searching(agent)
    episodes = returns.play(agent.environment, player, agent.params, mesh, num_games=games, seed=seed)
    found = returns.summarise(agent.environment, episodes)
    low, high = found["ci95"]
    return Finding("the rules", "mean return", found["mean_return"], low, high, found["games"], is_share=False)


def format_table(found: Sequence[Finding]) -> str:
    """A line for each finding."""
    rows = [["judge", "measure", "", "95% interval", "of"]]
    for finding in found:
        ends = finding.low, finding.high
        shown = [percent(finding.value), percent_interval(ends)]
        if not finding.is_share:
            shown = [f"{finding.value:,.4g}", f"[{ends[0]:,.4g}, {ends[1]:,.4g}]"]
        rows.append([finding.judge, finding.measure, *shown, str(finding.count)])
    return "\n".join(align(rows, "<<>"))
