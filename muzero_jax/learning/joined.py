"""An optimiser over a few large arrays in place of a network's many small ones.

A network has some hundred weights, and an optimiser computes the same of each: on a GPU that is hundreds of kernels a
step, most of them for a few hundred numbers. So weights that are treated alike are joined: matrices, which decay, and
the rest, each as one vector; or for an optimiser of whole matrices as one stack of each shape. What is computed of a
weight stays the same, and a norm over all of them too, but for rounding.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

REST = "rest"
"""The name of the weights with at most one axis."""

Name = Callable[[jax.Array], str]
"""A weight -> the name of what it is joined with."""


def by_decay(weight: jax.Array) -> str:
    """Matrices and convolution kernels, and the rest."""
    return REST if weight.ndim < 2 else "matrices"


def by_shape(weight: jax.Array) -> str:
    """The same, those of each shape apart."""
    return REST if weight.ndim < 2 else "x".join(map(str, weight.shape))


def join(tree: Any, name: Name) -> dict[str, jax.Array]:
    """The leaves as one array for each name: stacked [number, *shape] by shape, else one vector."""
    named: dict[str, list[jax.Array]] = {}
    for leaf in jax.tree.leaves(tree):
        named.setdefault(name(leaf), []).append(leaf)
    return {key: jnp.stack(leaves) if is_stack(key) else _vector(leaves) for key, leaves in named.items()}


def part(joined: dict[str, jax.Array], like: Any, name: Name) -> Any:
    """The inverse of `join`: a tree of arrays shaped as those of `like`."""
    leaves, tree = jax.tree.flatten(like)
    taken, found = dict.fromkeys(joined, 0), []
    for leaf in leaves:
        key = name(leaf)
        size = 1 if is_stack(key) else leaf.size
        some = joined[key][taken[key] : taken[key] + size]
        taken[key] += size
        found.append(some.reshape(leaf.shape).astype(leaf.dtype))
    return jax.tree.unflatten(tree, found)


def is_stack(key: str) -> bool:
    """Whether the array of this name is a stack of weights of one shape."""
    return key[0].isdigit()


def decays(joined: dict[str, jax.Array]) -> dict[str, bool]:
    """Which arrays of `join` are of matrices and convolution kernels."""
    return {key: key != REST for key in joined}


def over(optimiser: optax.GradientTransformation, name: Name) -> optax.GradientTransformationExtraArgs:
    """`optimiser`, whose weights, gradients and state are joined; to others it looks as before."""
    inner = optax.with_extra_args_support(optimiser)

    def init(params: Any) -> Any:
        return inner.init(join(params, name))

    def update(gradients: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        known = None if params is None else join(params, name)
        updates, state = inner.update(join(gradients, name), state, known, **extra)
        return part(updates, gradients, name), state

    return optax.GradientTransformationExtraArgs(init, update)


def apply(params: Any, updates: Any) -> Any:
    """`optax.apply_updates`, as one sum: what an optimiser over joined weights took apart is not joined anew for it."""
    old, new = join(params, by_decay), join(updates, by_decay)
    return part({key: old[key] + new[key] for key in old}, params, by_decay)


def norm(tree: Any) -> jax.Array:
    """The Euclidean norm of all leaves together."""
    return optax.tree.norm(join(tree, by_decay))


def _vector(leaves: list[jax.Array]) -> jax.Array:
    return jnp.concatenate([leaf.ravel() for leaf in leaves])
