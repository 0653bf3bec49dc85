"""What several modules of the commands share: the repository's folder and exit statuses; it imports nothing of ours."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
"""The repository; for an installed package, the folder that holds it."""
EXIT_ERROR = 2
EXIT_UNFINISHED = 75
"""A run of several processes is saved but not finished, so a scheduler should start it again."""
EXIT_INTERRUPTED = 130
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"
"""Set to false in a process that only starts others, so that it leaves them the accelerator's memory."""
