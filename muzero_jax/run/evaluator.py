"""What a run wants to know of its agent's strength; `apps.evaluation.progress.Versions` finds it out by matches."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from jax.sharding import Mesh

from muzero_jax.algorithm import Algorithm
from muzero_jax.storage.config import Config
from muzero_jax.types import Params


@runtime_checkable
class Evaluator(Protocol):
    """Judges a run's weights while it trains, and at its end."""

    has_matches: bool  # whether there is anything to judge by

    def compilations(self) -> Sequence[Callable[[], None]]:
        """Functions that compile its programs beside the training, those that are needed first to begin with."""
        ...

    def begin(self, params: Params) -> dict[str, float]:
        """Keeps the untrained weights; returns metrics `eval/...`."""
        ...

    def measure(self, params: Params, iteration: int) -> dict[str, float]:
        """Judges the weights after an iteration, and keeps them; returns metrics `eval/...`."""
        ...

    def conclude(self, params: Params, iteration: int) -> tuple[dict[str, Any], dict[str, float]]:
        """Judges the weights in full: entries of the summary, among them `strength`, and metrics `eval/...`."""
        ...

    def ratings(self) -> dict[str, float]:
        """Elo of every kept version, by its iteration."""
        ...


MakeEvaluator = Callable[[Config, Algorithm, Mesh, Path, Params, int], Evaluator]
"""(config, algorithm, mesh, run's folder, shapes of the weights, iteration where the run continues) -> its evaluator"""
