"""Products of bfloat16 matrices, summed in float32, and their gradients: for CPUs with units for them (AMX).

They take a sixth of float32's time (1584 x 192 x 192 on one Intel core: 1,065 and 167 GFLOP/s). XLA's CPU backend
(jaxlib 0.9 and 0.10) uses those units only if the result is float32 and the sum runs along the rows of the left factor.
So a kernel's gradient, which sums over the batch, needs its left factor transposed.
"""

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import BFloat16, Float

from muzero_jax.ops.devices import has_amx, target_device
from muzero_jax.ops.flop_marks import uncounted

COMPUTE_DTYPE = "bfloat16_products"
"""The config's name for float32 networks whose trunks round the factors of products to bfloat16."""


def dtypes(compute_dtype: str) -> tuple[jnp.dtype, jnp.dtype | None]:
    """The networks' dtype, and the dtype of their trunks' products if it differs. TypeError for an unknown dtype."""
    if compute_dtype == COMPUTE_DTYPE:
        return jnp.dtype(jnp.float32), jnp.dtype(jnp.bfloat16)
    return jnp.dtype(compute_dtype), None


def _has_units() -> bool:
    """Whether to multiply in bfloat16, which is slow on a CPU without units for it."""
    return target_device().platform != "cpu" or has_amx()


def _rounded(factor: Array) -> Array:
    """The value rounded to bfloat16, in float32. XLA would remove a conversion to bfloat16 and back."""
    return lax.reduce_precision(factor.astype(jnp.float32), exponent_bits=8, mantissa_bits=7)


def product(left: Float[Array, "M K"], right: Float[Array, "K N"]) -> Float[Array, "M N"]:
    """The product of both factors rounded to bfloat16, summed and returned in float32. `multiply` has its gradient."""
    if not _has_units():
        return _rounded(left) @ _rounded(right)
    result = jnp.dot(left.astype(jnp.bfloat16), right.astype(jnp.bfloat16), preferred_element_type=jnp.float32)
    # Without the barrier, XLA exchanges the factors if a transposition follows, and then fails.
    return lax.optimization_barrier(result)


def transposed(matrix: Float[Array, "M N"]) -> BFloat16[Array, "N M"]:
    """The transpose, rounded to bfloat16, as the left factor of a product.

    On AMX it is a product with the identity, exact for finite numbers, which XLA cannot merge into the next product:
    1,872 rows of 64 take 80 us instead of the 400 of XLA's transposition.
    """
    if not _has_units():
        return matrix.astype(jnp.bfloat16).T
    identity = jnp.eye(matrix.shape[1], dtype=jnp.bfloat16)
    with uncounted():  # other hardware needs no product here
        rows = lax.dot_general(
            identity, matrix.astype(jnp.bfloat16), (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
        )
    return rows.astype(jnp.bfloat16)


@jax.custom_vjp
def multiply(inputs: Float[Array, "N C"], kernel: Float[Array, "C D"]) -> Float[Array, "N D"]:
    """`product` with only a reverse-mode gradient: products of the rounded cotangent and the other factor."""
    return product(inputs, kernel)


def _backward(residuals: tuple[Array, Array], cotangent: Array) -> tuple[Array, Array]:
    inputs, kernel = residuals
    inputs_cotangent = product(cotangent, transposed(kernel))
    # Transpose the narrower matrix, which takes a seventh of the time for 900 inputs of 128 units.
    if kernel.shape[0] > kernel.shape[1]:
        kernel_cotangent = product(transposed(cotangent), inputs).T
    else:
        kernel_cotangent = product(transposed(inputs), cotangent)
    return inputs_cotangent.astype(inputs.dtype), kernel_cotangent.astype(kernel.dtype)


multiply.defvjp(lambda inputs, kernel: (product(inputs, kernel), (inputs, kernel)), _backward)
