"""`muzero_jax.doctor("runs/x")`: what is wrong with a run, from its records, a few games and a few updates.

    print(muzero_jax.doctor("runs/x").text())

It reads the newest checkpoint, so a run in progress can be examined too, and writes nothing. Of a run that diverged
before its first checkpoint it examines the same algorithm with untrained weights.
"""

import math
import sys
import textwrap
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import jax

from muzero_jax import presets
from muzero_jax.agent import make_agent
from muzero_jax.algorithm import Algorithm, Build, make_algorithm, playing
from muzero_jax.apps.doctor import games, learning, records
from muzero_jax.apps.doctor.findings import Symptom, find
from muzero_jax.apps.doctor.records import Numbers
from muzero_jax.apps.evaluation import players
from muzero_jax.apps.evaluation.arena import ShardedMatch
from muzero_jax.config import config_file
from muzero_jax.config.config import Config, without_record
from muzero_jax.games.catalogue import needs_key
from muzero_jax.ops.mesh import make_mesh
from muzero_jax.own.trust import OWN_FILES_ALONE, Trust
from muzero_jax.run import metrics, program
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import checkpoint_steps, restore_learner
from muzero_jax.types import TrainState

NUM_ENVS, MATCH_GAMES, MATCH_SIMULATIONS = 64, 128, 32
"""Games of self-play at once, and of the match between the search and the policy head, with its simulations."""
MOST_FRAMES = 1024
"""Most moves of each game of self-play."""
MOST_BYTES = 2**28
"""Most memory for what is played; its numbers take several times as much."""

WIDTH = 88
"""Columns of the text."""
Say = Callable[[str], None]


class Diagnosis(NamedTuple):
    """What the doctor found."""

    run: str
    iteration: int
    findings: list[Symptom]  # the likeliest cause first
    numbers: Numbers  # everything that was measured

    def result(self) -> dict[str, Any]:
        """As plain numbers and words."""
        return self._asdict() | {"findings": [finding._asdict() for finding in self.findings]}

    def text(self) -> str:
        """For people: each finding with its evidence, what a sound run has, and what to try."""
        lines = [f"{self.run}, iteration {self.iteration:,}"]
        for number, each in enumerate(self.findings, 1):
            rows = {"evidence": each.evidence, "sound runs": each.sound, "try": each.advice}
            lines += ["", f"{number}. {each.surety}: {each.finding}"]
            lines += [line for name, text in rows.items() for line in wrapped(name, text)]
        return "\n".join(lines if self.findings else [*lines, "nothing unusual"])


def wrapped(name: str, text: str) -> list[str]:
    """A text beside its name, in lines that fit a terminal."""
    head = f"   {name:<11}"
    return textwrap.wrap(head + text, WIDTH, subsequent_indent=" " * len(head), break_on_hyphens=False)


def doctor(run: str | Path, *, algorithm: Algorithm | None = None, trust_code: bool = False) -> Diagnosis:
    """Examines a run; takes about a minute, mostly for compiling.

    Args:
      run: its folder.
      algorithm, trust_code: as for `load`.

    Raises ValueError as `load` does.
    """
    build = algorithm and (lambda config: algorithm)
    return examine(Path(run), build=build, trust=Trust(all_code=trust_code))


def examine(
    run: Path, *, build: Build | None = None, trust: Trust = OWN_FILES_ALONE, say: Say = lambda line: None
) -> Diagnosis:
    """`doctor`, with the command's own arguments."""
    config = config_file.load(run, trust)
    known = metrics.read_records(run)
    with redirect_stdout(sys.stderr):  # presets may say what they chose
        usual = presets.preset(config.env, config.board_size)
    numbers = records.measure(config, known, usual)
    numbers["has_ended"] = float(run_directory.has_ended(run))
    num_rollouts, smaller = shortened(config, known)
    algorithm = build(without_record(smaller)) if build else make_algorithm(smaller)
    say("compiling self-play ...")
    init = program.make_init(algorithm, config.seed, make_mesh(1))
    state = init()
    iteration, untrained = 0, []
    if checkpoint_steps(run / run_directory.CHECKPOINTS):
        iteration, learner = restore_learner(run / run_directory.CHECKPOINTS, init.eval_shape().learner)
        untrained = learning.untrained(learner.params, state.learner.params)
        numbers["updates"] = float(learner.num_updates)
        state = state._replace(learner=learner)
    else:
        say("no checkpoint: its games and updates are examined with untrained weights")
        numbers["updates"] = 0.0
    if not config.optimiser.reconstruction_weight:  # then nothing trains it, and perhaps nothing reads it
        untrained = [name for name in untrained if not name.startswith("decoder.")]
    numbers["untrained_weights"] = float(len(untrained))
    after, played = games.play(algorithm, state, num_rollouts)
    numbers |= games.compare_with_rules(algorithm.environment, state.actor.env_state, played)
    if not config.offline:
        numbers |= games.measure(played, algorithm.environment.num_players)
    say("compiling an update ...")
    numbers |= learning.measure(learning.look(config, algorithm, after))
    if needs_key(algorithm.environment):  # a reward of chance cannot be foreseen
        numbers.pop("reward_error", None)
    if algorithm.environment.num_players == 2 and config.model != "none":
        say("compiling a match between the search and the policy head ...")
        numbers["search_beats_head"] = match_with_head(config, algorithm, state)
    numbers = {name: value for name, value in numbers.items() if math.isfinite(value)}
    return Diagnosis(str(run), iteration, find(numbers, untrained), numbers)


def shortened(config: Config, known: list[metrics.Record]) -> tuple[int, Config]:
    """How many rollouts to play, and the config of a run that plays so few games in a buffer that just holds them."""
    length = config.self_play.rollout_length
    lengths = [record["selfplay/mean_length"] for record in known if record.get("selfplay/mean_length")]
    wanted = max(config.frames_to_learn + length, 2.5 * lengths[-1] if lengths else 0.0)
    num_rollouts = -(-int(min(wanted, max(MOST_FRAMES, config.frames_to_learn + length))) // length)
    environment = playing.build_environment(config)
    frame = 4 * (math.prod(environment.observation_shape) + 3 * environment.num_actions)  # bytes
    num_envs = min(NUM_ENVS, config.self_play.num_envs, max(8, MOST_BYTES // (frame * num_rollouts * length)))
    return num_rollouts, replace(
        config,
        board_sizes=(),
        self_play=replace(config.self_play, num_envs=num_envs),
        replay=replace(config.replay, replay_length=num_rollouts * length),
    )


def match_with_head(config: Config, algorithm: Algorithm, state: TrainState) -> float:
    """The score of the search against the policy head."""
    params = state.learner.agent_params
    agent = make_agent(config, algorithm, params=params)
    match = ShardedMatch(
        agent.environment,
        players.searching(agent, min(agent.num_simulations, MATCH_SIMULATIONS)),
        players.policy_head(agent),
        make_mesh(1),
        num_games=MATCH_GAMES,
        opening_plies=max(4, config.evaluation.opening_plies),
    )
    return float(match(params, params, jax.random.key(0))["score"])
