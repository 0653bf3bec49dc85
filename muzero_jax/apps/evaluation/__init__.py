"""How strong an agent is: players, matches, ratings, oracles, fidelity."""
