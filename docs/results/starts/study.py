"""Where games of self-play begin: trains and judges all runs on one core, and goes on where it stopped.

    python docs/results/starts/study.py FOLDER CORE GAME...

A job trains a seed of an arm, then judges it: exam, openings, rollout MCTS, and a match against the default of its
seed. FOLDER/results.jsonl gets a line for each, which draw.py reads.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from muzero_jax.storage import run_directory

CHECKOUT = Path(__file__).parents[3]
ARMS = {
    "default": ["--self-play.starts", "beginning"],  # what every preset had when this was recorded
    "random": ["--self-play.starts", "random", "--self-play.start-moves", "12"],
    "archive": ["--self-play.starts", "archive"],
    "regret": ["--self-play.starts", "regret"],
    "random25": ["--self-play.starts", "random", "--self-play.start-moves", "12", "--self-play.start-share", "0.25"],
}
GAMES = {  # flags, frames of the default (the other arms have its FLOPs), positions of the exam, seeds
    "hex5": (["--env", "hex", "--board-size", "5"], 800_000, 1000, 5),
    "connect4": (["--env", "connect_four"], 900_000, 600, 5),
    "hex7": (["--env", "hex", "--board-size", "7"], 1_000_000, 300, 5),
    "othello": (["--env", "othello"], 200_000, 300, 3),
}
TRAINING = "--devices 1 --evaluation.parts 6 --evaluation.mcts-simulations 100 --evaluation.games 256 --no-tensorboard"


def run(core, log, *words):
    """Runs a command of experiments/ on a core; returns what it printed."""
    command = ["nice", "-n", "19", "taskset", "-c", core, sys.executable, *words]
    with log.open("a") as out:
        done = subprocess.run(
            command,
            cwd=CHECKOUT,
            env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
            stdout=subprocess.PIPE,
            stderr=out,
            text=True,
            check=True,
        )
        out.write(done.stdout)
    return done.stdout


def main(folder, core, games):
    """Does all jobs that have no line in results.jsonl yet."""
    home = Path(folder).resolve()
    home.mkdir(exist_ok=True)
    results = home / "results.jsonl"

    def ask(*words):
        return json.loads(
            run(core, home / "evaluate.log", "experiments/evaluate.py", *words, "--devices", "1", "--json")
        )

    for game in games:
        flags, frames, positions, seeds = GAMES[game]
        for seed, (arm, own) in ((seed, arm) for seed in range(seeds) for arm in ARMS.items()):
            done = [json.loads(line)["key"] for line in results.open()] if results.exists() else []
            if [game, arm, seed] in done:
                continue
            trained, rival = (str(home / "runs" / f"{game}-{name}-{seed}") for name in (arm, "default"))
            budget = ["--frames", str(frames)]
            if arm != "default":
                first = home / "runs" / f"{game}-default-0" / "summary.json"
                budget = ["--flops", repr(json.loads(first.read_text())["flops"]["total"])]
            start = time.time()
            how = [
                *flags,
                "--seed",
                str(seed),
                *own,
                *budget,
                *TRAINING.split(),
                "--run-dir",
                trained,
                "--resume-if-any",
            ]
            if not run_directory.has_ended(Path(trained)):  # `--resume-if-any` would refuse it
                run(core, home / "train.log", "experiments/train.py", *how)
            row = {"key": [game, arm, seed], "minutes": round((time.time() - start) / 60, 2)}
            row["exam_raw"] = ask("exam", "--run", trained, "--positions", str(positions))
            if game.startswith("hex"):
                row["openings_raw"] = ask("openings", "--run", trained)
            for opponent in ("mcts:100", "mcts:1000"):
                row[opponent] = ask("match", "--run", trained, "--opponent", opponent, "--games", "256")
            if arm != "default":
                match = "match", "--run", trained, "--opponent", rival, "--opening-plies", "4", "--games", "512"
                row["match_raw"] = ask(*match)
            with results.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(*row["key"], row["minutes"], flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
