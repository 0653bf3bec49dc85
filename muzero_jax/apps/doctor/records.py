"""What the records of a run say, as numbers by name; starts no JAX."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from muzero_jax.config.config import Config
from muzero_jax.run import metrics

Numbers = dict[str, float]
"""What was measured, by name. A number that this run does not have is absent."""
RISE, GOOD = 0.1, 0.8
"""A score that rose by so much, or is so high, shows that a run learned something."""
SERIES = 8
"""Records from which it shows whether a loss moves."""
JUMP = 1.3
"""A loss that grows by this factor from one record to the next has jumped."""


def measure(config: Config, records: Sequence[Mapping[str, Any]], usual: Config) -> Numbers:
    """The numbers of `metrics.jsonl`, and beside some of them (`usual_...`) what the preset `usual` would have.

    Args:
      config: of the run. records: as `metrics.read_records` returns them. usual: the preset of its game.
    """
    learned = [record for record in records if record.get("train/loss") is not None]
    if not learned:
        return {}
    last = records[-1]
    found = {"updates": float(last["total/updates"]), "evaluation_games": float(config.evaluation.games)}
    if frames := last.get("total/frames"):
        found["samples_per_frame"] = last["total/updates"] * config.optimiser.batch_size / frames
        found["usual_samples_per_frame"] = samples_per_frame(usual)
    if rates := _series(learned, "train/learning_rate"):
        found["learning_rate_left"] = rates[-1] / max(rates)
        found["usual_learning_rate_left"] = 0.1 if usual.optimiser.schedule == "cosine" else 1.0
        if config.optimiser.name == usual.optimiser.name:  # others need other rates
            found["learning_rate"] = max(rates)
            found["usual_learning_rate"] = usual.optimiser.learning_rate
    if norms := _series(learned, "train/gradient_norm"):
        later = np.array(norms[len(norms) // 2 :])  # the first gradients are always large
        found["clipped_share"] = float(np.mean(later > config.optimiser.max_gradient_norm))
    last_board = learned[-1].get("train/board_size")  # in a run over several, whose losses differ
    of_one_board = [record for record in learned if record.get("train/board_size") == last_board]
    losses = np.array(_series(of_one_board, "train/loss"))
    if len(losses) > 1:
        found["jump_share"] = float(np.mean(losses[1:] > JUMP * losses[:-1]))
    for name in ("policy", "value"):
        if len(series := _series(learned, f"train/{name}_loss")) >= SERIES:
            found[f"{name}_loss_varies"] = float(np.std(series) / (np.mean(series) + 1e-9))
    return found


def have_risen(records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the run became better: a score rose by `RISE`, is `GOOD`, or that against random play is above a half.

    Returns count if they are above those of random play. It is True if fewer than two evaluations can tell nothing.
    """
    scored = {record["iteration"]: metrics.scores(record) for record in records if metrics.is_evaluation(record)}
    if len(scored) < 2:
        return True
    opponents = {name for score in scored.values() for name in score if not metrics.is_points(name)}
    series = {name: [x[name] for x in scored.values() if x.get(name) is not None] for name in opponents}
    verdicts = [
        x[-1] >= GOOD or x[-1] > x[0] + RISE or (name == "random" and x[-1] > 0.5 + RISE)
        for name, x in series.items()
        if x
    ]
    by_chance = _series(records, metrics.RANDOM_RETURN)
    returns = _series(records, metrics.RETURN)
    if by_chance and returns:
        verdicts.append(returns[-1] > by_chance[-1])
    return any(verdicts) or not verdicts


def samples_per_frame(config: Config) -> float:
    """How often a run learns from each frame."""
    optimiser = config.optimiser
    play = config.self_play
    return optimiser.updates_per_iteration * optimiser.batch_size / (play.num_envs * play.rollout_length)


def _series(records: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [record[name] for record in records if record.get(name) is not None]
