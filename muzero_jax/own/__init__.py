"""The user's own files: loading trusted Python files, writing small files whole, and errors of one sentence."""
