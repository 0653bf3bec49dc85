"""Files that people bring: loading a Python file with trust, small files whole, one sentence about what is wrong."""
