"""How much could anybody score against rollout MCTS on a small Hex board? python scripts/best_reply.py --board-size 4

After one random stone the swap lets the second player win, if it plays without fault. So the first player starts lost
and wins only where its opponent errs. The first player of this script knows perfect play. It also knows how often MCTS
errs in each position that it can lead to, because MCTS is sampled there many times beforehand. It goes where MCTS errs
most. An agent without such samples does no better. So this is about the most that any agent can score in a match from
such openings, each played from both sides.

The first of two figures is judged by the samples that the replies were chosen by: a maximum over noise, too high. The
second is judged by fresh ones: what these replies do score. After as many decisions as there are --samples MCTS counts
as faultless; the last line of progress says how often it still erred in the last of them. Positions that are images of
each other under the board's symmetries count as one, though MCTS breaks exact ties by the order of its actions.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import muzero_jax.apps.commands.requirements  # noqa: F401  # first: it says what to do where packages are missing

# isort: split
import jax
import numpy as np

from muzero_jax.apps.commands import flag_reader
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.apps.evaluation.batches import in_batches
from muzero_jax.apps.evaluation.exact_play import hex_solver
from muzero_jax.apps.evaluation.exact_play.oracle import Oracle, solve
from muzero_jax.apps.evaluation.rollout_mcts import rollout_mcts_player
from muzero_jax.games.environment import make_environment
from muzero_jax.games.hex_rules import MIN_SIZE
from muzero_jax.learning.symmetries import transform_observation
from muzero_jax.ops import devices
from muzero_jax.storage.fields import Constraint, PositiveInt, check_fields
from muzero_jax.types import Environment, EnvState

BATCH = 512
HALVES, CHOOSING = 2, 0
"""Two halves of the samples: the first half chooses the replies, the second half judges them."""
SOLVED = Constraint(
    lambda size: MIN_SIZE <= size <= hex_solver.MAX_SIZE, f"Hex is solved from {MIN_SIZE} to {hex_solver.MAX_SIZE}"
)
ASKED = Constraint(bool, "must be at least one number")

Opponent = Callable[[EnvState, Any], Any]
"""(states, a number that no other call has had [N]) -> its action in each [N]."""


@dataclass(frozen=True)
class Arguments:
    """Board and opponent."""

    board_size: Annotated[int, SOLVED] = 4
    """side of the Hex board; 4 takes a quarter of an hour on two cores, 3 a minute, 5 days"""
    num_simulations: PositiveInt = 1000
    """search budget of rollout MCTS"""
    samples: Annotated[tuple[PositiveInt, ...], ASKED] = (1024, 64, 16, 4)
    """samples of MCTS in a position, at its first decision, its second and so on; drawn twice, for the two figures"""


def best_reply(
    environment: Environment, oracle: Oracle, opponent: Opponent, samples: tuple[int, ...], say: Callable[[str], None]
) -> np.ndarray:
    """The first player's best score [2] against `opponent`, in [0, 1], a mean over all openings of one stone.

    By the samples that the replies were chosen by, and by fresh ones.
    """
    start = jax.vmap(environment.init)(jax.random.split(jax.random.key(0), 1))
    stones = environment.num_actions - 1  # the last action is the swap
    openings = jax.tree.map(lambda x: np.repeat(np.asarray(x), stones, axis=0), start)
    replies = _Replies(environment, oracle, opponent, say)
    return replies.awaiting(replies.move(openings, np.arange(stones)), samples).mean(axis=0)


class _Replies:
    """The search for the best reply. States are host arrays [N, ...]; a value is the first player's chance [N, 2]."""

    def __init__(self, environment: Environment, oracle: Oracle, opponent: Opponent, say: Callable[[str], None]):
        assert environment.board is not None
        symmetries = environment.board.symmetries
        images = np.arange(symmetries.action_permutation.shape[0])
        self._oracle, self._opponent, self._say = oracle, opponent, say
        self._num_actions = environment.num_actions
        self._play = jax.jit(jax.vmap(lambda state, action: environment.move(state, action).state))
        self._images = jax.jit(
            jax.vmap(lambda view: jax.vmap(lambda index: transform_observation(symmetries, index, view))(images))
        )
        self._num_asked = 0

    def move(self, states: EnvState, action: np.ndarray) -> EnvState:
        """The states after one action each."""
        return in_batches(self._play, BATCH, states, np.asarray(action, np.int32))

    def awaiting(self, states: EnvState, samples: tuple[int, ...]) -> np.ndarray:
        """The value where the opponent is to move, and has won if it plays well."""
        first, same = self._distinct(states)
        distinct = _take(states, first)
        shares = self._ask(distinct, samples[0])
        solved = solve(self._oracle, distinct.observation, num_actions=self._num_actions, report=lambda *_: None)
        is_error = solved.action_values < 0
        value = (shares * is_error[..., None]).sum(axis=1)
        self._say(f"{len(first)} positions: asked {samples[0]} times, it errs in {value.mean():.2%} of its moves")
        position, action = np.nonzero(shares.any(axis=-1) & ~is_error)
        goes_on = self.move(_take(distinct, position), action)
        alive = np.flatnonzero(~goes_on.terminated)
        if alive.size and samples[1:]:
            later = self._leading(_take(goes_on, alive), samples[1:])
            np.add.at(value, position[alive], shares[position[alive], action[alive]] * later)
        return value[same]

    def _leading(self, states: EnvState, samples: tuple[int, ...]) -> np.ndarray:
        """The value where the first player is to move, lost if the opponent goes on without fault."""
        first, same = self._distinct(states)
        distinct = _take(states, first)
        position, action = np.nonzero(distinct.legal_action_mask)
        after = self.awaiting(self.move(_take(distinct, position), action), samples)
        # Of the moves of each position the best by the first half; sorted, it comes last.
        order = np.lexsort((after[:, CHOOSING], position))
        best = order[np.searchsorted(position[order], np.arange(len(first)), side="right") - 1]
        return after[best][same]

    def _ask(self, states: EnvState, times: int) -> np.ndarray:
        """How large a share of the opponent's moves each action is: [N, A, 2]."""
        total = len(states.terminated) * HALVES * times
        row = np.repeat(np.arange(len(states.terminated)), HALVES * times)
        draw = self._num_asked + np.arange(total)
        self._num_asked += total
        moves = in_batches(self._opponent, BATCH, _take(states, row), draw).reshape(-1, HALVES, times)
        return np.stack([(moves == action).mean(axis=-1) for action in range(self._num_actions)], axis=1)

    def _distinct(self, states: EnvState) -> tuple[np.ndarray, np.ndarray]:
        """One state of each kind, images under symmetries being the same: (their rows, which of these each row is)."""
        images = in_batches(self._images, BATCH, states.observation)
        packed = np.packbits(images.reshape(*images.shape[:2], -1).astype(bool), axis=-1)
        names = [min(image.tobytes() for image in row) for row in packed]
        _, first, same = np.unique(np.array(names, object), return_index=True, return_inverse=True)
        return first, same


def _take(states: EnvState, rows: np.ndarray) -> Any:
    return jax.tree.map(lambda x: np.asarray(x)[rows], states)


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = flag_reader.read(Arguments, arguments, description=__doc__)
    check_fields(a)
    devices.configure_devices(1)
    oracle, environment = hex_solver.make_oracle(a.board_size), make_environment("hex", board_size=a.board_size)
    player = rollout_mcts_player(environment, num_simulations=a.num_simulations)
    ask = jax.jit(lambda states, draws: player.act(None, jax.random.key(draws[0]), states))
    found = best_reply(environment, oracle, ask, a.samples, lambda text: print(text, flush=True))
    for name, score in zip(("as chosen", "asked again"), found, strict=True):
        print(f"best reply, {name}: {score:.1%} as first player, 100% as second, {(1 + score) / 2:.1%} in all")
    return 0


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "lower --num-simulations or --board-size"))
