"""Other programs that play: both ends of GTP and UCI, and the process at the other end."""
