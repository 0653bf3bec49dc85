"""Folders of runs with made-up scores, so that the code that reads runs is tested without training."""

import json
from dataclasses import replace
from pathlib import Path

from muzero_jax.config import config_file
from muzero_jax.config.config import Config

HEX = Config(env="hex", board_size=5)
FRAMES_A_MINUTE = 1000


def tell(
    run_dir: Path, scores: list[float], *, seed: int = 0, final: float | None = None, config: Config = HEX
) -> Path:
    """A run with these scores against rollout MCTS 100 after 1, 2, ... minutes, and `final` against 1,000."""
    run_dir.mkdir(parents=True)
    config_file.save(replace(config, seed=seed), run_dir)
    lines = [
        {
            "iteration": minute,
            "total/frames": float(minute * FRAMES_A_MINUTE),
            "total/updates": 10.0 * minute,
            "time/minutes": float(minute),
            "total/flops": 1e9 * minute,
            "eval/elo": 100.0 * minute,
            "train/loss": float(minute),
            "eval/mcts:100": score,
        }
        for minute, score in enumerate(scores, 1)
    ]
    lines.insert(1, {"iteration": 1, "train/loss": 1.0})
    if final is not None:
        last = {name: value for name, value in lines[-1].items() if name not in ("train/loss", "eval/elo")}
        lines.append(last | {"eval/mcts:1000": final})
        strength = {"mcts:1000": {"score": final, "games": 512}}
        (run_dir / "summary.json").write_text(
            json.dumps({"finished": True, "iteration": len(scores), "strength": strength})
        )
    (run_dir / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run_dir
