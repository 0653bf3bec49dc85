"""Plays against a trained agent: python experiments/play.py --agent hex_5x5 --web

The command itself is muzero_jax/apps/commands/play.py, which `python -m muzero_jax play` starts too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax.apps.commands.entry import start

if __name__ == "__main__":
    sys.exit(start("play", sys.argv[1:]))
