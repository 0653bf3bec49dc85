"""The equity that an agent loses per turn in backgammon, judged by GNU Backgammon.

Each position is the start of a turn, with rolled dice, from a separate game of the agent's policy head against itself.
Dice make these games differ, so no moves are random. The agent's search plays the turn one die at a time. GNU
Backgammon lists all legal turns with their equities, evaluated two moves ahead (2-ply) without the doubling cube. The
loss is the best equity minus that of the agent's turn.

Positions with only one legal turn are left out. So are turns that GNU Backgammon does not list: pgx allows leaving a
die unplayed although it could be played. (The agent `backgammon` plays no such turn in 300 positions.)
"""

import shutil

import jax
import numpy as np

from muzero_jax.agent import Agent
from muzero_jax.apps.engines import engines
from muzero_jax.apps.engines.engines import EngineSpec
from muzero_jax.apps.engines.gnubg import GnubgEngine, after_turn
from muzero_jax.apps.evaluation import players, positions
from muzero_jax.apps.evaluation.batches import in_keyed_batches
from muzero_jax.games.backgammon import mover_points, turn_begins
from muzero_jax.games.catalogue import game_of
from muzero_jax.ops.conditional import where_each
from muzero_jax.types import EnvState

JUDGE = "GNU Backgammon, 2-ply"
SETTINGS = "set evaluation chequerplay evaluation plies 2", "set evaluation movefilter 2 0 -1 0 0"
"""2-ply for every legal turn; by default only likely turns are searched so deeply."""
SECONDS, MOST_TURNS = 60.0, 5000
"""The time for the turns of a position, and a bound on their number."""
LONGEST_GAME, DICE_A_TURN = 256, 4
"""In moves of one die: the longest game (299 of 300 games of the agent `backgammon` are shorter), and a turn."""


def judge_of(agent: Agent) -> EngineSpec | None:
    """GNU Backgammon as an engine; None if it is not installed or the game is not backgammon."""
    program = shutil.which("gnubg") or shutil.which("/usr/games/gnubg")
    if program is None or game_of(agent.environment).protocol != engines.GNUBG:
        return None
    return EngineSpec(program, engines.GNUBG, (program, "-t", "-q"), SETTINGS)


def losses(agent: Agent, judge: EngineSpec, *, num_positions: int, seed: int) -> np.ndarray:
    """The equity lost in each judged turn: [M] with M <= `num_positions`.

    Raises EngineError if the judge fails.
    """
    before = _draw(agent, num_positions, seed)
    after = _play_turns(agent, before, seed)
    found = []
    engine = engines.start(judge, agent.environment, seconds=SECONDS)
    assert isinstance(engine, GnubgEngine)
    with engine.process:
        for index in range(num_positions):
            state, played = jax.tree.map(lambda leaf, index=index: leaf[index], (before, after))
            start = mover_points(state)
            board = tuple(mover_points(played))
            equities = {tuple(after_turn(start, turn)): value for turn, value in engine.hints(state, MOST_TURNS)}
            if len(equities) > 1 and board in equities:
                found.append(max(equities.values()) - equities[board])
    return np.array(found)


def _draw(agent: Agent, num_positions: int, seed: int) -> EnvState:
    """The start of a uniformly random turn from each of `num_positions` games: leaves [num_positions, ...]."""
    key = jax.random.key(seed)
    shares = np.zeros(num_positions)
    states = positions.play(agent.environment, players.policy_head(agent), agent.params, key, shares, LONGEST_GAME)
    chances = np.random.default_rng(seed).random(states.terminated.shape)
    ply = (chances * (turn_begins(states) & ~states.terminated)).argmax(axis=0)
    return jax.tree.map(lambda leaf: leaf[ply, np.arange(num_positions)], states)


def _play_turns(agent: Agent, states: EnvState, seed: int) -> EnvState:
    """The states after the turns that the agent's search plays, before the next roll."""
    player = players.searching(agent)
    chance = agent.environment.chance
    assert chance is not None

    @jax.jit
    def play_die(key, states, is_over):
        after = jax.vmap(chance.move)(states, player.act(agent.params, key, states))
        states = where_each(is_over, states, after.state)
        return states, is_over | after.awaits_chance | after.state.terminated

    is_over = np.zeros(states.terminated.shape, bool)
    for _ in range(DICE_A_TURN):
        states, is_over = in_keyed_batches(play_die, seed, states, is_over)
    return states
