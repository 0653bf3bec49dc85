"""Reads traced programs, compiles some that run only a few times."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp

from muzero_jax.ops.mesh import AXIS

QUICKLY: dict = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Compiler options that save compile time and cost speed."""


def compiled_before(compile):
    """Stands for a jitted program: traced, lowered and compiled, it gives what `compile()` gives."""
    lowered = SimpleNamespace(compile=compile)
    traced = SimpleNamespace(jaxpr=SimpleNamespace(eqns=[], outvars=[]), lower=lambda: lowered)
    return SimpleNamespace(trace=lambda *inputs: traced)


def on_devices(function, *arguments):
    """`function` of what each device has, along a leading axis."""
    return jax.jit(jax.vmap(function, axis_name=AXIS))(*arguments)


def alone(function, *arguments):
    """`function` as the only device runs it."""

    def run(*arguments):
        found = on_devices(function, *jax.tree.map(lambda x: jnp.asarray(x)[None], arguments))
        return jax.tree.map(lambda x: x[0], found)

    return jax.jit(run)(*arguments)


def equations(jaxpr):
    """Every equation of a jaxpr, those of its inner programs included: bodies of loops, branches."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for inner in value if isinstance(value, (tuple, list)) else (value,):
                if hasattr(inner, "eqns") or hasattr(inner, "jaxpr"):
                    yield from equations(getattr(inner, "jaxpr", inner))


def primitives(jaxpr):
    """The names of what it computes with."""
    return {equation.primitive.name for equation in equations(jaxpr)}
