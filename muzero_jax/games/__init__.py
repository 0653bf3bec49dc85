"""Games: what every game is, one file for each, and the catalogue that lists them."""
