"""Where a config becomes functions: the one package that reads hyperparameters.

`playing` makes the game, the network, searches and self-play; `learning` makes what an update needs. `algorithm.make`
puts them together.
"""
