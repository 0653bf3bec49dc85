"""What is wrong with a game, a network or an algorithm of the user's own, in sentences."""
