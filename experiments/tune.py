"""Searches for better settings of a game: python experiments/tune.py --env hex --board-size 4 --minutes 2

The command itself is muzero_jax/apps/commands/tune.py, which `python -m muzero_jax tune` starts too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax.apps.commands.entry import start

if __name__ == "__main__":
    sys.exit(start("tune", sys.argv[1:]))
