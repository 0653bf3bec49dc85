"""A traced JAX function as an ONNX graph: one node a primitive, for the primitives that our networks consist of.

jax2onnx would do this too, but asks for an older orbax-checkpoint than ours. Two things keep the table below short.
What depends on no input is computed now, and stands in the graph as a constant. What depends on nothing but the action
is computed now for every action; the graph only looks it up. So no gather with clipped or shifted indices is left.
"""

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
import onnx
from jax.extend.core import Literal
from onnx import helper, numpy_helper

OPSET, IR_VERSION = 17, 8  # old enough for every onnxruntime of the last years

SAME = {
    "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "neg": "Neg", "abs": "Abs",
    "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh", "logistic": "Sigmoid", "erf": "Erf", "sign": "Sign",
    "gt": "Greater", "ge": "GreaterOrEqual", "lt": "Less", "le": "LessOrEqual", "eq": "Equal", "and": "And",
    "or": "Or", "not": "Not", "stop_gradient": "Identity", "copy": "Identity", "optimization_barrier": "Identity",
    "name": "Identity",
}  # fmt: skip
"""Primitives that ONNX has under another name, with the same operands."""
INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""Where a primitive that calls a function keeps it."""


class Table(NamedTuple):
    """A value that only the action decides: row a is it for action a."""

    rows: np.ndarray


class Graph:
    """The nodes and constants so far; a value is an array (known now), a `Table`, or the name of a node's result."""

    def __init__(self, action: str | None):
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._action = action
        self._names = (f"v{i}" for i in itertools.count())

    def name_of(self, value: Any) -> str:
        """The name under which the graph has `value`."""
        if isinstance(value, str):
            return value
        if isinstance(value, Table):
            return self.node("Gather", value.rows, self.node("Reshape", self._action, _integers([])), axis=0)
        name = next(self._names)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def node(self, kind: str, *inputs: Any, **attributes: Any) -> str:
        """Adds a node with one result; returns that one's name."""
        return self.nodes_results(kind, 1, *inputs, **attributes)[0]

    def nodes_results(self, kind: str, count: int, *inputs: Any, **attributes: Any) -> list[str]:
        """Adds a node with `count` results."""
        names, results = [self.name_of(value) for value in inputs], [next(self._names) for _ in range(count)]
        self.nodes.append(helper.make_node(kind, names, results, **attributes))
        return results


def export(
    function: Callable[..., dict[str, jax.Array]], inputs: dict[str, jax.ShapeDtypeStruct], num_actions: int
) -> onnx.ModelProto:
    """The ONNX model of `function`, whose named arguments are `inputs` and whose results have names as well.

    An input `action`, int32 [1] and below `num_actions`, is looked up, as the module says. ValueError names a primitive
    that has no counterpart here.
    """

    def called(*values):
        return function(**dict(zip(inputs, values, strict=True)))

    closed, shapes = jax.make_jaxpr(called, return_shape=True)(*inputs.values())
    graph = Graph("action" if "action" in inputs else None)
    every_action = Table(np.arange(num_actions, dtype=np.int32)[:, None])
    values = [every_action if name == "action" else name for name in inputs]
    results = _walk(graph, closed.jaxpr, [np.asarray(constant) for constant in closed.consts], values)
    for name, result in zip(shapes, results, strict=True):
        graph.nodes.append(helper.make_node("Identity", [graph.name_of(result)], [name]))
    return _model(graph, inputs, shapes)


def _model(graph: Graph, inputs: dict[str, Any], outputs: dict[str, Any]) -> onnx.ModelProto:
    def described(values):
        return [helper.make_tensor_value_info(name, _kind(x.dtype), x.shape) for name, x in values.items()]

    made = helper.make_graph(graph.nodes, "muzero_jax", described(inputs), described(outputs), graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    onnx.checker.check_model(model)
    return model


def _walk(graph: Graph, jaxpr: Any, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    """The results of a jaxpr, called functions included."""
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))

    def read(atom):
        return np.asarray(atom.val) if isinstance(atom, Literal) else known[atom]

    for equation in jaxpr.eqns:
        values = [read(atom) for atom in equation.invars]
        known.update(zip(equation.outvars, _results(graph, equation, values), strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _results(graph: Graph, equation: Any, values: list[Any]) -> list[Any]:
    """The results of one equation: computed now where that is possible, else as nodes."""
    inner = next((equation.params[key] for key in INNER if key in equation.params), None)
    if inner is not None:
        return _walk(graph, inner.jaxpr, [np.asarray(constant) for constant in inner.consts], values)
    if not any(isinstance(value, str) for value in values):
        return _compute(equation, values)
    name = equation.primitive.name
    if name in SAME:
        return [graph.node(SAME[name], *values)]
    if name not in CONVERSIONS:
        raise ValueError(f"the network computes {name}, which the export lacks; add it to scripts/browser/graph.py")
    results = CONVERSIONS[name](graph, equation, *values)
    return results if isinstance(results, list) else [results]


def _compute(equation: Any, values: list[Any]) -> list[Any]:
    """The results of an equation of arrays and tables."""
    axes = [0 if isinstance(value, Table) else None for value in values]

    def run(*arrays):
        results = equation.primitive.bind(*arrays, **equation.params)
        return results if equation.primitive.multiple_results else [results]

    arrays = [value.rows if isinstance(value, Table) else value for value in values]
    if 0 not in axes:
        return [np.asarray(result) for result in run(*arrays)]
    return [Table(np.asarray(result)) for result in jax.vmap(run, in_axes=axes)(*arrays)]


def _integers(values: Any) -> np.ndarray:
    return np.array([int(value) for value in values], np.int64)


def _kind(dtype: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def _shape(equation: Any) -> np.ndarray:
    return _integers(equation.outvars[0].aval.shape)


def _reshape(graph: Graph, equation: Any, x: Any) -> str:
    return graph.node("Reshape", x, _shape(equation))


def _broadcast(graph: Graph, equation: Any, x: Any) -> str:
    shape = np.ones(len(_shape(equation)), np.int64)
    shape[list(equation.params["broadcast_dimensions"])] = equation.invars[0].aval.shape
    return graph.node("Expand", graph.node("Reshape", x, shape), _shape(equation))


def _dot_general(graph: Graph, equation: Any, left: Any, right: Any) -> str:
    """A matrix product where it is one, else the sum that Einsum's letters say."""
    (of_left, of_right), (batch_left, batch_right) = equation.params["dimension_numbers"]
    ranks = [len(atom.aval.shape) for atom in equation.invars]
    if not batch_left and list(of_left) == [ranks[0] - 1] and list(of_right) == [0] and ranks[1] == 2:
        return graph.node("MatMul", left, right)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    first = [next(letters) for _ in range(ranks[0])]
    second = [next(letters) for _ in range(ranks[1])]
    for i, j in zip([*of_left, *batch_left], [*of_right, *batch_right], strict=True):
        second[j] = first[i]
    rest = [letter for i, letter in enumerate(first) if i not in (*of_left, *batch_left)]
    rest += [letter for j, letter in enumerate(second) if j not in (*of_right, *batch_right)]
    result = "".join([*(first[i] for i in batch_left), *rest])
    return graph.node("Einsum", left, right, equation=f"{''.join(first)},{''.join(second)}->{result}")


def _pad(graph: Graph, equation: Any, x: Any, fill: Any) -> str:
    low, high, between = zip(*equation.params["padding_config"], strict=True)
    if any(between):
        raise ValueError("the ONNX export knows no padding between elements; write the network without it")
    return graph.node("Pad", x, _integers([*low, *high]), fill)


def _slice(graph: Graph, equation: Any, x: Any) -> str:
    p = equation.params
    start, stop = _integers(p["start_indices"]), _integers(p["limit_indices"])
    return graph.node("Slice", x, start, stop, np.arange(len(start)), _integers(p["strides"] or np.ones(len(start))))


def _gather(graph: Graph, equation: Any, x: Any, indices: Any) -> str:
    """Whole slices of one axis, in an order that is known now."""
    numbers, sizes = equation.params["dimension_numbers"], equation.params["slice_sizes"]
    (axis,), shape = numbers.start_index_map, equation.invars[0].aval.shape
    whole = all(size == (1 if i == axis else length) for i, (size, length) in enumerate(zip(sizes, shape, strict=True)))
    if isinstance(indices, str) or indices.ndim != 2 or not whole or numbers.collapsed_slice_dims != (axis,):
        raise ValueError("the ONNX export knows gathers of whole slices alone, in a fixed order; write it so")
    return graph.node("Gather", x, indices[:, 0].astype(np.int64), axis=axis)


def _stack(graph: Graph, equation: Any, *xs: Any) -> str:
    axis = equation.params["axis"]
    return graph.node("Concat", *(graph.node("Unsqueeze", x, _integers([axis])) for x in xs), axis=axis)


def _unstack(graph: Graph, equation: Any, x: Any) -> list[str]:
    axis, count = equation.params["axis"], len(equation.outvars)
    pieces = graph.nodes_results("Split", count, x, _integers([1] * count), axis=axis)
    return [graph.node("Squeeze", piece, _integers([axis])) for piece in pieces]


def _reduce(kind: str, graph: Graph, equation: Any, x: Any) -> str:
    return graph.node(kind, x, axes=_integers(equation.params["axes"]), keepdims=0)


def _reduce_bools(kind: str, graph: Graph, equation: Any, x: Any) -> str:
    """Whether any is true (the largest of 0 and 1), or all are (the smallest): this opset reduces no bools."""
    numbers = graph.node("Cast", x, to=onnx.TensorProto.FLOAT)
    return graph.node("Cast", _reduce(kind, graph, equation, numbers), to=onnx.TensorProto.BOOL)


CONVERSIONS: dict[str, Callable[..., Any]] = {
    "reshape": _reshape,
    "squeeze": _reshape,
    "expand_dims": _reshape,
    "broadcast_in_dim": _broadcast,
    "dot_general": _dot_general,
    "pad": _pad,
    "slice": _slice,
    "convert_element_type": lambda graph, equation, x: graph.node("Cast", x, to=_kind(equation.params["new_dtype"])),
    "integer_pow": lambda graph, equation, x: graph.node("Pow", x, np.float32(equation.params["y"])),
    "square": lambda graph, equation, x: graph.node("Mul", x, x),
    "rsqrt": lambda graph, equation, x: graph.node("Reciprocal", graph.node("Sqrt", x)),
    "select_n": lambda graph, equation, which, no, yes: graph.node("Where", which, yes, no),
    "transpose": lambda graph, equation, x: graph.node("Transpose", x, perm=_integers(equation.params["permutation"])),
    "concatenate": lambda graph, equation, *xs: graph.node("Concat", *xs, axis=equation.params["dimension"]),
    "stack": _stack,
    "gather": _gather,
    "ne": lambda graph, equation, x, y: graph.node("Not", graph.node("Equal", x, y)),
    "split": lambda graph, equation, x: graph.nodes_results(
        "Split", len(equation.outvars), x, _integers(equation.params["sizes"]), axis=equation.params["axis"]
    ),
    "unstack": _unstack,
    "reduce_sum": lambda graph, equation, x: graph.node("ReduceSum", x, _integers(equation.params["axes"]), keepdims=0),
    "reduce_max": partial(_reduce, "ReduceMax"),
    "reduce_min": partial(_reduce, "ReduceMin"),
    "reduce_or": partial(_reduce_bools, "ReduceMax"),
    "reduce_and": partial(_reduce_bools, "ReduceMin"),
}
"""Primitives that need more than a name: (graph, equation, operands) -> the result, or a list of them."""
