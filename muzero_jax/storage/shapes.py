"""The shapes of a tree's arrays by name, and how those of two networks differ, in words. No array is read."""

from collections.abc import Callable
from typing import Any

import jax


def named(tree: Any) -> dict[str, Any]:
    """The leaves by their paths, as Orbax writes them: {"dense.kernel": ...}, in the tree's order."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in leaves}


def describe(tree: Any) -> dict[str, str]:
    """The shape and dtype of each array by its path: {"dense.kernel": "float32[3,4]"}; for a random key, its words'."""

    def array(leaf: Any) -> str:
        dtype = getattr(leaf.dtype, "numpy_dtype", leaf.dtype)  # TensorStore has its own
        if jax.numpy.issubdtype(dtype, jax.dtypes.prng_key):
            return array(jax.eval_shape(jax.random.key_data, leaf))
        return f"{dtype}[{','.join(map(str, leaf.shape))}]"

    return {name: array(leaf) for name, leaf in named(tree).items()}


def of_network(init: Callable[[jax.Array], Any]) -> dict[str, str]:
    """`describe` for the parameters that a network's `init` would make; nothing is computed."""
    return describe(jax.eval_shape(init, jax.random.key(0)))


def difference(saved: dict[str, str], wanted: dict[str, str]) -> str | None:
    """The first array that is missing, additional, or of another shape or dtype, in words; None if there is none.

    Args:
      saved: a result of `describe`; the words call it "it".
      wanted: a result of `describe`; the words call it "this one".
    """
    name = next((name for name in (*wanted, *saved) if saved.get(name) != wanted.get(name)), None)
    if name is None:
        return None
    if name not in saved:
        return f"it has no {name} (this one needs {wanted[name]})"
    if name not in wanted:
        return f"it has {name} ({saved[name]}), which this one does not have"
    return f"its {name} is {saved[name]} (this one needs {wanted[name]})"
