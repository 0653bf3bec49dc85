"""An optimiser over a few large arrays instead of a network's many small ones.

A network has some hundred weight arrays, and an optimiser does the same with each: on a GPU that is hundreds of kernels
a step, most of them for a few hundred numbers. Therefore matrices and convolution kernels of one shape are laid into
a stack, and all other weights into one vector. Only stacks decay, and Muon treats each matrix of a stack separately. Up
to rounding, the updates of the weights and the norm over all of them stay the same.
"""

from typing import Any

import jax
import jax.numpy as jnp
import optax

REST = "rest"
"""The name of the weights with at most one axis."""


def _name(weight: jax.Array) -> str:
    return REST if weight.ndim < 2 else "x".join(map(str, weight.shape))


def stack(tree: Any) -> dict[str, jax.Array]:
    """The leaves by shape, as stacks [number, *shape]: {"3x4": ...}; those with at most one axis as one vector."""
    named: dict[str, list[jax.Array]] = {}
    for leaf in jax.tree.leaves(tree):
        named.setdefault(_name(leaf), []).append(leaf.ravel() if leaf.ndim < 2 else leaf[None])
    return {name: jnp.concatenate(leaves) for name, leaves in named.items()}


def unstack(stacked: dict[str, jax.Array], like: Any) -> Any:
    """The inverse of `stack`: a tree of arrays shaped as those of `like`."""
    taken = dict.fromkeys(stacked, 0)

    def take(leaf: jax.Array) -> jax.Array:
        name = _name(leaf)
        start = taken[name]
        taken[name] += leaf.size if leaf.ndim < 2 else 1
        return stacked[name][start : taken[name]].reshape(leaf.shape).astype(leaf.dtype)

    return jax.tree.map(take, like)


def decays(stacked: dict[str, jax.Array]) -> dict[str, bool]:
    """Whether each array of `stack` decays: those of matrices and convolution kernels do."""
    return {name: name != REST for name in stacked}


def over(optimiser: optax.GradientTransformation) -> optax.GradientTransformationExtraArgs:
    """`optimiser` on stacked weights and gradients, so its state is stacked; `update` maps trees to trees as before."""
    inner = optax.with_extra_args_support(optimiser)

    def update(gradients: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        known = None if params is None else stack(params)
        updates, state = inner.update(stack(gradients), state, known, **extra)
        return unstack(updates, gradients), state

    return optax.GradientTransformationExtraArgs(lambda params: inner.init(stack(params)), update)


def apply(params: Any, updates: Any) -> Any:
    """`optax.apply_updates`, with one sum for each array of `stack` instead of one for each weight."""
    return unstack(jax.tree.map(jnp.add, stack(params), stack(updates)), params)


def norm(tree: Any) -> jax.Array:
    """The Euclidean norm of all leaves together."""
    return optax.tree.norm(stack(tree))
