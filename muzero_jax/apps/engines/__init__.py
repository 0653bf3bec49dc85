"""GTP and UCI: other programs as opponents of the agent, and the agent as an engine for other programs."""
