"""An optimiser over a few large arrays in place of a network's many small ones.

A network has some hundred weights, and an optimiser computes the same of each: on a GPU that is hundreds of kernels a
step, most of them for a few hundred numbers. So matrices and kernels of one shape become one stack, and all other
weights one vector. Only stacks decay, and Muon takes each matrix of a stack as a whole. What is computed of a weight
stays the same, and a norm over all of them too, but for rounding.
"""

from typing import Any

import jax
import jax.numpy as jnp
import optax

REST = "rest"
"""The name of the weights with at most one axis."""


def _name(weight: jax.Array) -> str:
    return REST if weight.ndim < 2 else "x".join(map(str, weight.shape))


def join(tree: Any) -> dict[str, jax.Array]:
    """The leaves by shape, as stacks [number, *shape]: {"3x4": ...}; those with at most one axis as one vector."""
    named: dict[str, list[jax.Array]] = {}
    for leaf in jax.tree.leaves(tree):
        named.setdefault(_name(leaf), []).append(leaf.ravel() if leaf.ndim < 2 else leaf[None])
    return {name: jnp.concatenate(leaves) for name, leaves in named.items()}


def part(joined: dict[str, jax.Array], like: Any) -> Any:
    """The inverse of `join`: a tree of arrays shaped as those of `like`."""
    taken = dict.fromkeys(joined, 0)

    def take(leaf: jax.Array) -> jax.Array:
        name = _name(leaf)
        start, taken[name] = taken[name], taken[name] + (leaf.size if leaf.ndim < 2 else 1)
        return joined[name][start : taken[name]].reshape(leaf.shape).astype(leaf.dtype)

    return jax.tree.map(take, like)


def decays(joined: dict[str, jax.Array]) -> dict[str, bool]:
    """Which arrays of `join` are of matrices and convolution kernels."""
    return {name: name != REST for name in joined}


def over(optimiser: optax.GradientTransformation) -> optax.GradientTransformationExtraArgs:
    """`optimiser`, whose weights, gradients and state are joined; to others it looks as before."""
    inner = optax.with_extra_args_support(optimiser)

    def update(gradients: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        known = None if params is None else join(params)
        updates, state = inner.update(join(gradients), state, known, **extra)
        return part(updates, gradients), state

    return optax.GradientTransformationExtraArgs(lambda params: inner.init(join(params)), update)


def apply(params: Any, updates: Any) -> Any:
    """`optax.apply_updates`, a sum an array of `join`: what an optimiser took apart is not joined again for it."""
    return part(jax.tree.map(jnp.add, join(params), join(updates)), params)


def norm(tree: Any) -> jax.Array:
    """The Euclidean norm of all leaves together."""
    return optax.tree.norm(join(tree))
