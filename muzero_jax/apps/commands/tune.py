"""Searches for better settings of a game: python experiments/tune.py --env hex --board-size 4 --minutes 2

Each trial is a run with other values of some settings, chosen by Optuna. The first trial has the preset's own values,
and all others get as many frames as it. At the end, the best settings and the preset's are trained with seeds that the
search never saw, because the best of many noisy scores is partly luck. The same command again continues the study, or
helps as another worker. All flags of train.py apply to every trial.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muzero_jax.algorithm import playing
from muzero_jax.apps.commands import parser, train
from muzero_jax.apps.commands.command_line import EXIT_INTERRUPTED, command
from muzero_jax.apps.study import comparison, tuning
from muzero_jax.apps.study.tuning import Objective, Space, Span
from muzero_jax.config import config_file
from muzero_jax.config.config import Config
from muzero_jax.config.fields import NotNegativeInt, PositiveInt, differing, fields_of, flag_of, names, value_at
from muzero_jax.config.session import Session
from muzero_jax.games.catalogue import game_of, hides
from muzero_jax.own.files import write_whole
from muzero_jax.run import metrics
from muzero_jax.run.interrupt import Stopped
from muzero_jax.run.machine import count_devices
from muzero_jax.storage import run_directory
from muzero_jax.types import Environment


@dataclass(frozen=True)
class TuneFlags:
    """The flags of the search; all other flags are those of train.py."""

    trials: PositiveInt = 30
    """total number of trials; a larger number continues a study that has ended"""
    study: Path | None = None
    """folder of the study; default: runs/tune-<game>-<size>-seed<seed>. If it exists, the search continues"""
    vary: tuple[tuple[str, ...], ...] = ()
    """a setting to vary; give it once for each: --vary optimiser.learning-rate 1e-4:1e-2 (a range), --vary network.kind
    mlp tower (a list), --vary replay.end-weight (its own range); default: all settings with a range (docs/tune.md)"""
    metric: str = ""
    """the score of a trial: mcts:N (the score against rollout MCTS with N simulations; with N above 100 only at the end
    of a trial), a key of metrics.jsonl of which more is better, or exploitability, of which less is; default: mcts:100
    (random where something is hidden), with points/ before it in a game for points, or the mean return in single-player
    games"""
    seeds: NotNegativeInt = 3
    """number of new seeds for the comparison at the end; 0: no comparison"""


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status, as `train.main` does."""
    given = parser.split(arguments, Config, Session, TuneFlags)
    if parser.HELP in given or parser.HELP_ALL in given:
        print(f"{(__doc__ or '').strip()}\n\n{parser.help_text(parser.flags_of(TuneFlags))}")
        return 0
    own = parser.convert(TuneFlags, {f.name: given.pop(f.name) for f in fields_of(TuneFlags) if f.name in given})
    session = parser.convert(Session, given)
    config, session, _ = train.settle(given, session)
    num_devices = count_devices(session.devices)
    check(config, session, has_budget=not given.keys().isdisjoint(("minutes", "frames")))
    metric = metric_of(own.metric, playing.build_environment(config))
    base = for_trials(config, metric)
    default = run_directory.default(config)
    folder = own.study or default.parent / f"tune-{default.name}"
    varied = tuning.space(base, ranges(base, own.vary))
    objective = Objective(base, varied, folder, metric, session, num_devices)
    study = tuning.open_study(folder, base, metric)
    print(f"study       {folder}: {own.trials} trials, scored by {metric}")
    for name, values in varied.items():
        between = f"{values.low:.3g} to {values.high:.3g}" if isinstance(values, Span) else values
        print(f"varies      {flag_of(name)} {between}")
    print("workers     the same command again is another one; Ctrl-C stops and saves", flush=True)
    try:
        tuning.search(study, objective, own.trials, announce)
        conclude(study, objective, config, own.seeds)
    except KeyboardInterrupt as error:
        print(f"stopped and saved; continue with: {command('tune')} {shlex.join(arguments)}")
        return 0 if isinstance(error, Stopped) else EXIT_INTERRUPTED
    return 0


def check(config: Config, session: Session, *, has_budget: bool) -> None:
    """Raises ValueError for flags that trials cannot have."""
    for name in names(Session, "single"):
        if getattr(session, name) != getattr(Session(), name):
            raise ValueError(f"{flag_of(name)} is for one run; leave it out (--study names the folder)")
    if not has_budget or config.updates or config.flops or config.max_iterations or config.offline:
        raise ValueError(
            "all trials get equally many frames: add --frames, or --minutes 2 (of the first trial), and no other budget"
        )


def metric_of(given: str, environment: Environment) -> str:
    """The score of a trial: the one that the flag gives, or the game's usual one.

    Raises ValueError for a score of another kind of game.
    """
    if environment.num_players == 1:
        return given or metrics.RETURN
    is_for_points = game_of(environment).is_for_points
    usual = "random" if hides(environment) else "mcts:100"  # rollout MCTS would see what is hidden
    metric = given or (f"points/{usual}" if is_for_points else usual)
    opponent = metrics.opponent_of(metric)
    if opponent.startswith(("mcts:", "random")) and metrics.is_points(metric) != is_for_points:
        right = f"points/{opponent}" if is_for_points else opponent
        raise ValueError(f"--metric {metric} is not measured in {environment.name}; --metric {right} is")
    return metric


def for_trials(config: Config, metric: str) -> Config:
    """The config with a trial's evaluations: after equal parts of it, only against the opponent of `metric`."""
    opponent, _, simulations = metrics.opponent_of(metric).partition(":")
    changed = {"evaluation.mcts_simulations": [simulations]} if opponent == "mcts" else {}
    if config.evaluation.interval_minutes:
        changed |= {"evaluation.parts": str(tuning.PARTS)}
    return parser.override(config, changed)


def ranges(base: Config, vary: Sequence[Sequence[str]]) -> Space:
    """The values of each field that a `--vary` names; raises ValueError for a field that cannot vary."""
    chosen: dict[str, Any] = {}
    for name, *texts in vary:
        low, is_span, high = (texts or [""])[0].partition(":")
        if is_span and len(texts) > 1:
            raise ValueError(f"--vary {name} takes a range or some values, not both: leave {texts[1]} out")
        texts = [low, high] if is_span else texts
        given = [parser.of_value(Config, name, text) for text in texts or ["true"]]
        field = next(field for field in fields_of(Config) if field.name in given[0])
        if field.kind is str or field.may_be_none or field.fact.own or field.fact.budget:
            raise ValueError(f"--vary {name}: a study varies numbers and choices; compare others by train.py --vary")
        values = [value_at(parser.override(base, one), field.name) for one in given if texts]
        if is_span and values[0] >= values[1]:
            raise ValueError(f"--vary {name} {low}:{high}: the first number of a range must be the smaller one")
        chosen[field.name] = Span(*values, log=values[0] > 0) if is_span else values or None
    return chosen


def announce(study: Any, trial: Any) -> None:
    """Prints how a trial of this worker ended."""
    shown = "" if trial.value is None else f"  {trial.value:.4g}, best so far {study.best_value:.4g}"
    print(f"trial {trial.number:<6}{trial.state.name.lower()}{shown}", flush=True)


def conclude(study: Any, objective: Objective, config: Config, num_seeds: int) -> None:
    """Prints and draws the results, then compares the best settings with the preset's on new seeds."""
    folder = objective.folder
    found = tuning.best(study, objective)
    table = study.trials_dataframe(attrs=("number", "value", "state", "duration", "params"))
    write_whole(folder / "trials.csv", table.to_csv(index=False))
    write_whole(folder / "best.json", config_file.to_json(replace(found, evaluation=config.evaluation)))
    tuning.draw(study, folder)
    best_first = table.sort_values("value", ascending=tuning.is_cost(objective.metric))
    shown = best_first[["number", "value", "state", "duration"]]
    flags = " ".join(differing(found, tuning.with_frames(objective.base, found.frames)))
    print(f"\n{shown.head(10).to_string(index=False)}\n\nresults:  trials.csv, best.json and pictures in {folder}")
    print(f"best:     trial {study.best_trial.number}, {flags or 'the preset itself'}", flush=True)
    if flags and num_seeds:
        seeds = range(config.seed + 1, config.seed + 1 + num_seeds)
        print(f"now both with the seeds {', '.join(map(str, seeds))}, which the search did not see", flush=True)
        print(f"\n{comparison.report(tuning.compare(objective, found, f'trial{study.best_trial.number}', seeds))}\n")
    again = ["--config", str(folder / "best.json"), "--seed", str(config.seed), "--run-dir", "runs/best"]
    print(f"longer:   {command('train')} {shlex.join(again)} --minutes ...")
