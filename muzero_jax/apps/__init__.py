"""The commands, and all that they add to the core: play, evaluation, studies. The core does not import them."""
