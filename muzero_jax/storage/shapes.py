"""The shapes of a tree's arrays by their names, and in words how those of two networks differ. Reads no array."""

import re
from collections.abc import Callable
from typing import Any

import jax


def describe(tree: Any) -> dict[str, str]:
    """The shape and dtype of every array by its path: {"['w']": "float32[3,4]"}."""
    return {
        jax.tree_util.keystr(path): f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def of_network(init: Callable[[jax.Array], Any]) -> dict[str, str]:
    """Those of the parameters that a network's `init` would make; nothing is computed."""
    return describe(jax.eval_shape(init, jax.random.key(0)))


def difference(saved: dict[str, str], wanted: dict[str, str], by: str = "this one") -> str | None:
    """The first array that is missing, of another shape or dtype, or too many, in words; None if there is none.

    Args:
      saved: of what "it" is in these words, as `describe` says it.
      wanted: likewise, of what the words call `by`.
    """
    path = next((path for path in (*wanted, *saved) if saved.get(path) != wanted.get(path)), None)
    if path is None:
        return None
    name = re.sub(r"\['?(.*?)'?\]", r".\1", path).lstrip(".")
    if path not in saved:
        return f"it has no {name} ({by} needs {wanted[path]})"
    if path not in wanted:
        return f"it has {name} ({saved[path]}), which {by} has no use for"
    return f"its {name} is {saved[path]} ({by} needs {wanted[path]})"
