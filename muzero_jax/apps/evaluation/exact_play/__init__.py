"""Games that are solved: the value of a position after each of its moves, under perfect play."""
