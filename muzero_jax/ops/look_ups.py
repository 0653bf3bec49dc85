"""Rows of a table of weights and permuted columns, with gradients that suit the device.

JAX's gradient of a gather is a scatter-add, which sums in the dtype of the outputs. In bfloat16, 32,768 actions that
look up 26 rows gave a gradient that was 4 to 23% wrong, and on NVIDIA GPUs it is a compare-and-swap loop for every
number, in another order in each run. So on accelerators the gradient is a product with a one-hot matrix, and sums are
in float32 everywhere. A CPU adds row after row, which is faster there. As in `convolution`, the device is read at
trace time.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from muzero_jax.ops.devices import target_device
from muzero_jax.ops.flop_marks import uncounted


def look_up(table: Float[Array, "R *c"], index: Int[Array, " N"], dtype: Any) -> Float[Array, "N *c"]:
    """`table[index]` in `dtype`; the gradient is summed in float32 and has the table's dtype."""
    return _look_up(dtype, table, index)


def _looked_up(dtype: Any, table: Array, index: Any) -> Array:
    return table.astype(dtype)[index]


def _look_up_forward(dtype: Any, table: Array, index: Any) -> tuple[Array, Any]:
    return _looked_up(dtype, table, index), (index, table[:, :0])  # of the table only its dtype and number of rows


def _look_up_backward(dtype: Any, residuals: Any, cotangent: Array) -> tuple[Array, None]:
    index, no_columns = residuals
    num_rows = len(no_columns)
    sum_rows = added_rows if target_device().platform == "cpu" else one_hot_product
    rows = sum_rows(jnp.asarray(index), cotangent.reshape(len(index), -1), num_rows)
    return rows.reshape(num_rows, *cotangent.shape[1:]).astype(no_columns.dtype), None


_look_up = jax.custom_vjp(_looked_up, nondiff_argnums=(0,))
_look_up.defvjp(_look_up_forward, _look_up_backward)


def one_hot_product(index: Int[Array, " N"], cotangent: Float[Array, "N C"], num_rows: int) -> Float[Array, "R C"]:
    """For each row of the table the sum of the cotangents that looked it up, in float32, as one product."""
    one_hot = jax.nn.one_hot(index, num_rows, dtype=cotangent.dtype)
    with uncounted():  # it is a sum, which other devices make without a product
        return jnp.einsum("nr,nc->rc", one_hot, cotangent, precision="highest", preferred_element_type=jnp.float32)


def added_rows(index: Int[Array, " N"], cotangent: Float[Array, "N C"], num_rows: int) -> Float[Array, "R C"]:
    """The same sums, one cotangent after another."""
    return jnp.zeros((num_rows, cotangent.shape[1])).at[index].add(cotangent.astype(jnp.float32))


def permuted(x: Float[Array, "N C"], order: tuple[int, ...]) -> Float[Array, "N C"]:
    """`x[:, order]` for a permutation of the columns, whose gradient is a permutation too, not a scatter."""
    return _permute(order, x)


def _permuted(order: tuple[int, ...], x: Array) -> Array:
    return x[:, np.asarray(order)]


_permute = jax.custom_vjp(_permuted, nondiff_argnums=(0,))
_permute.defvjp(
    lambda order, x: (_permuted(order, x), None),
    lambda order, _, cotangent: (_permuted(tuple(np.argsort(order).tolist()), cotangent),),
)
