"""Several runs, as `train.py --seeds N --vary ...` asks for (`variants`).

The runs are trained one after another. Each is a process of its own: it gives its memory back, and what it prints and
saves is what it would alone.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from muzero_jax.apps.commands.requirements import ROOT
from muzero_jax.apps.commands.train_flags import differing
from muzero_jax.apps.study import comparison
from muzero_jax.run import budget
from muzero_jax.run import session as sessions
from muzero_jax.run.interrupt import SYSTEMS, Stopped
from muzero_jax.run.session import Session
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config
from muzero_jax.storage.fields import Name, check_value
from muzero_jax.storage.validation import validate

PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
COMMAND = ["-P", "-m", "muzero_jax", "train"]
"""The command that trains one run, by this Python; -P keeps it from importing what lies in the current folder."""

Parse = Callable[[list[str]], tuple[Config, Session, Config, int] | None]
"""`train.parse`: the config of a run with these flags and its session, what they overrode, and the devices at hand;
None after printing help."""


class Folders(NamedTuple):
    """Where the runs shall lie, and what happens to those that lie there."""

    run_dir: Path | None  # around all of them
    resume: bool
    overwrite: bool
    if_any: bool = False  # to resume where there is nothing yet is to begin


class Run(NamedTuple):
    """One of the runs."""

    name: str  # for a person
    run_dir: Path
    config: Config
    flags: list[str]  # its own, beyond those that all share


def read(
    arguments: list[str], *flags: str, lists: Sequence[str] = ()
) -> tuple[argparse.Namespace, Folders, list[str]] | None:
    """The given flags' values as texts, the folders, and all other arguments; None where a flag has no value.

    Each time one of `lists` is given, that is a list of texts.

    The command's own parser then says what is wrong.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for name in ("--run-dir", *flags):
        parser.add_argument(*dict.fromkeys([name, f"--{name[2:].replace('-', '_')}"]))
    for name in lists:
        parser.add_argument(name, action="append", nargs="*")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--resume-if-any", "--resume_if_any", action="store_true")
    parser.add_argument("--overwrite", action="store_true")
    try:
        known, others = parser.parse_known_args(arguments)
    except argparse.ArgumentError:
        return None
    if known.run_dir is not None:
        check_value(known.run_dir, Name, "--run-dir")
    run_dir, if_any = known.run_dir and Path(known.run_dir), known.resume_if_any
    return known, Folders(run_dir, known.resume or if_any, known.overwrite, if_any), others


def spare_accelerator() -> None:
    """Keeps this process, which only starts others, from taking an accelerator's memory for itself."""
    os.environ.setdefault(PREALLOCATE, "false")


def check_flags(asked: Sequence[Config], session: Session, build: Any) -> None:
    """Raises ValueError in one sentence for what one of several runs cannot be, before the first begins."""
    for config in asked:
        validate(config)
        if missing := [file for file in config.own_files if not Path(file).is_file()]:
            raise ValueError(f"there is no file {missing[0]}; name a Python file of yours")
    if len(games := sorted({config.env_name for config in asked})) > 1:
        raise ValueError(f"runs are compared, and {games[0]} and {games[1]} are two games; vary something else")
    sessions.validate(session)
    if session.autotune:
        raise ValueError(
            "--autotune may find other sizes for each seed; run it with one, and give the flags that it prints"
        )
    if build:
        raise ValueError("--seeds starts processes that know no parts of your own; train one seed after another")


def train(runs: Sequence[Run], folders: Folders, shared: list[str]) -> int:
    """Trains them all; returns the exit status of the first that did not end well, or 0.

    With `resume` those that have ended are left as they are, and those that never began begin. Raises ValueError in one
    sentence for folders that cannot take the runs.
    """
    check_folders(runs, folders)
    if folders.overwrite:
        for config in {run.config.init_from: run.config for run in runs}.values():  # before anything is deleted
            _check_weights(config, trust_code="--trust-code" in shared)
        run_directory.make_room_for_all(run.run_dir for run in runs)
    for number, run in enumerate(runs, 1):
        print(f"{run.name}, {number} of {len(runs)}", flush=True)
        has_begun = run_directory.holds_run(run.run_dir)
        if has_begun and has_spent(run):
            print(f"has ended   {run.run_dir}", flush=True)
            continue
        further = ["--resume-if-any"] if has_begun else []  # which, unlike --resume, may stand beside --config
        try:
            status = wait([*shared, "--run-dir", str(run.run_dir), *run.flags, *further])
        except Stopped:
            _say_how_to_go_on(run, runs)
            raise
        if status:
            _say_how_to_go_on(run, runs)
            return status
    return 0


def _say_how_to_go_on(run: Run, runs: Sequence[Run]) -> None:
    more = " and --resume (in place of --overwrite)" if _have_begun(runs) else ""
    print(f"stopped at {run.name}; go on with the same command{more}")


def check_folders(runs: Sequence[Run], folders: Folders) -> None:
    """Raises ValueError in one sentence for folders that cannot take the runs, before any of them is trained."""
    if folders.resume and folders.overwrite:
        raise ValueError("--overwrite begins anew and --resume goes on; give one of them")
    if folders.run_dir and run_directory.holds_run(folders.run_dir):
        raise ValueError(f"{folders.run_dir} is a run itself, and takes no others; choose another --run-dir")
    if folders.resume and not (folders.if_any or _have_begun(runs)):
        raise ValueError(f"there is no run to resume in {runs[0].run_dir} and the others; leave out --resume")
    run_dirs = [run.run_dir for run in runs]
    if twice := [run_dir for run_dir in run_dirs if run_dirs.count(run_dir) > 1]:
        raise ValueError(f"two of the runs would lie in {twice[0]}; give each value once, and files names of their own")
    for run in runs:
        goes_on = folders.resume and run_directory.holds_run(run.run_dir)
        run_directory.check(run.run_dir, resume=goes_on, overwrite=folders.overwrite, sources=run.config.sources)
        if goes_on and (flags := _other_flags(run)):
            raise ValueError(f"{run.run_dir} was trained with other flags; with --resume give {' '.join(flags)} too")


def _have_begun(runs: Sequence[Run]) -> bool:
    """Whether there is anything to go on with."""
    return any(run_directory.holds_run(run.run_dir) for run in runs)


def _check_weights(config: Config, *, trust_code: bool) -> None:
    """Raises ValueError in one sentence for weights that a run cannot begin with."""
    if config.init_from:
        from muzero_jax.algorithm import playing  # here, because pgx starts JAX when it is imported
        from muzero_jax.run.sources import warm_start

        model = playing.build_model(config, playing.build_environment(config))
        warm_start.open_source(config, model, lambda line: None, trust_code=trust_code)


def _other_flags(run: Run) -> list[str]:
    """The flags that a run was made with and does not have now, but for its budget."""
    made_with = configs.inspect(run.run_dir)
    if made_with.seed == run.config.seed and comparison.are_alike(made_with, run.config, budgets=False):
        return []
    changed = {field: getattr(run.config, field) for field in budget.FIELDS}
    return differing(replace(made_with, **changed), run.config)


def has_spent(run: Run) -> bool:
    """Whether a run has spent the budget that is asked for, and played its final matches."""
    return run_directory.has_ended(run.run_dir) and comparison.are_alike(configs.inspect(run.run_dir), run.config)


def wait(arguments: list[str]) -> int:
    """The exit status of one run. Ctrl-C reaches it too: it saves and ends, and is waited for.

    SIGTERM and SIGHUP are passed on to it; where it has then ended well, this raises `Stopped`, for no other may begin.
    """
    environment = {name: value for name, value in os.environ.items() if name != PREALLOCATE or value != "false"}
    given = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))  # an empty part is the current folder
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *given])
    with _Passing() as passing, subprocess.Popen([sys.executable, *COMMAND, *arguments], env=environment) as process:
        passing.begin(process)
        while True:
            try:
                status = process.wait()
                break
            except KeyboardInterrupt:
                continue
    if passing.received and not status:
        raise Stopped
    return status if status >= 0 else 128 - status  # as a shell reports a process that a signal killed


class _Passing:
    """Passes SIGTERM and SIGHUP on to a process, also those that come just before it begins."""

    def __init__(self):
        self.received: list[int] = []
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "_Passing":
        heard = [number for number in SYSTEMS if signal.getsignal(number) is not signal.SIG_IGN]
        self._previous = {number: signal.signal(number, self._receive) for number in heard}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler or signal.SIG_DFL)

    def begin(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        for number in self.received:
            process.send_signal(number)

    def _receive(self, signum: int, frame: Any) -> None:
        del frame
        self.received.append(signum)
        if self._process is not None:
            self._process.send_signal(signum)
