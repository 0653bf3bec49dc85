"""Measures a trained agent: python experiments/evaluate.py match --run runs/hex-5-seed0 --opponent mcts:1000

The command itself is muzero_jax/apps/commands/evaluate.py, which `python -m muzero_jax evaluate` starts too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax.apps.commands.entry import start

if __name__ == "__main__":
    sys.exit(start("evaluate", sys.argv[1:]))
