"""Parts of a network whose parameters do not depend on the board's size: pooling, heads by cell, kinds of actions.

A convolution sees a few cells. The rest of the board reaches a cell through the mean and the maximum of each channel
(KataGo's global pooling: Wu 2019, arXiv 1902.10565, section 3.3), so the same weights play every size.
"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from muzero_jax.networks.layers import BoardLayout, NetworkSizes, split


class ActionKinds(NamedTuple):
    """Actions by kind instead of place: a network for any size has one output for each kind."""

    num_cell: int  # kinds of actions on a cell: the most that share one
    num_free: int  # actions that touch no cell (a pass, Hex's swap), each a kind of its own
    kind: tuple[int, ...]  # [A], below num_cell for actions on a cell
    output: np.ndarray  # [A] int32, where an action stands among all outputs: cells * num_cell of them, then the free


def kinds_of(board: BoardLayout) -> ActionKinds:
    """The kinds of a board's actions: those on one cell in their order, then those on none."""
    location = np.asarray(board.action_location)
    num_cells = board.shape[0] * board.shape[1]
    on_cell = location >= 0
    rank = np.zeros(len(location), np.int32)
    for cell in np.unique(location):
        rank[location == cell] = np.arange((location == cell).sum())
    num_cell = int(rank[on_cell].max(initial=-1)) + 1
    output = np.where(on_cell, location * num_cell + rank, num_cells * num_cell + rank).astype(np.int32)
    kind = np.where(on_cell, rank, num_cell + rank)
    return ActionKinds(num_cell, int((~on_cell).sum()), tuple(kind.tolist()), output)


def pooled(x: Float[Array, "N H W C"]) -> Float[Array, "N D"]:
    """The mean and the maximum of every channel over the board; D = 2 C."""
    return jnp.concatenate([jnp.mean(x, axis=(1, 2)), maximum(x)], axis=-1)


@jax.custom_vjp
def maximum(x: Float[Array, "N H W C"]) -> Float[Array, "N C"]:
    """The maximum of every channel over the board; cells that share it share its gradient.

    JAX's own gradient divides by the number of such cells. XLA may compute `x` again for it with other rounding and
    find none, and then 0 / 0 ends the run. Here the gradient is 0 in that case.
    """
    return jnp.max(x, axis=(1, 2))


def _maximum_backward(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array]:
    x, largest = residuals
    is_largest = (x == largest[:, None, None, :]).astype(x.dtype)
    share = cotangent / jnp.maximum(jnp.sum(is_largest, axis=(1, 2)), 1)
    return (is_largest * share[:, None, None, :],)


def _maximum_forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
    largest = maximum(x)
    return largest, (x, largest)


maximum.defvjp(_maximum_forward, _maximum_backward)


class PooledBias(nn.Module):
    """Adds a linear function of `pooled` to every cell, so that each cell sees the whole board."""

    sizes: NetworkSizes

    @nn.compact
    def __call__(self, x):
        return x + nn.Dense(self.sizes.width, dtype=self.sizes.dtype)(pooled(x))[:, None, None, :]


class CellHeads(nn.Module):
    """Linear read-outs of a board, initially zero: maps of a number for every action, and vectors of the whole board.

    [N, H, W, C] -> by name, maps [N, A], each read at the action's cell, and vectors [N, size].
    """

    sizes: NetworkSizes
    kinds: ActionKinds
    maps: tuple[str, ...]
    vectors: Mapping[str, int]

    @nn.compact
    def __call__(self, x):
        s = self.sizes
        kinds = self.kinds
        zeros = partial(nn.Dense, dtype=s.dtype, kernel_init=nn.initializers.zeros)
        x = s.activation(nn.LayerNorm(dtype=s.dtype)(x))
        whole = s.activation(nn.Dense(s.width, dtype=s.dtype)(pooled(x)))
        free = {name: kinds.num_free for name in self.maps}
        whole = zeros(sum(free.values()) + sum(self.vectors.values()))(whole).astype(jnp.float32)
        found = split(whole, free | dict(self.vectors))
        if self.maps:
            cells = zeros(len(self.maps) * kinds.num_cell)(x).astype(jnp.float32)
            for name, cell in zip(self.maps, jnp.split(cells, len(self.maps), axis=-1), strict=True):
                found[name] = self._by_action(cell, found[name])
        return found

    def _by_action(self, cells, free):
        outputs = jnp.concatenate([cells.reshape(cells.shape[0], -1), free], axis=-1)
        order = self.kinds.output
        return outputs if np.array_equal(order, np.arange(outputs.shape[1])) else outputs[:, order]
