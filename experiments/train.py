"""Trains a MuZero agent from nothing: python experiments/train.py --env hex --board-size 5 --minutes 5

The command itself is muzero_jax/apps/commands/train.py, which `python -m muzero_jax train` starts too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax.apps.commands.entry import start

if __name__ == "__main__":
    sys.exit(start("train", sys.argv[1:]))
