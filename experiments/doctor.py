"""Says why a run does not learn: python experiments/doctor.py runs/hex-5-seed0

The command itself is muzero_jax/apps/commands/doctor.py, which `python -m muzero_jax doctor` starts too.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax.apps.commands.entry import start

if __name__ == "__main__":
    sys.exit(start("doctor", sys.argv[1:]))
