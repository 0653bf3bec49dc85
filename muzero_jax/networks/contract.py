"""Checks that a model keeps the contract of `types.Model` in shapes and dtypes; it is traced, never run."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from muzero_jax.own.faults import Fault, kind_of, require, traced
from muzero_jax.types import Environment, Head, Model, NetworkOutput

BATCH_SIZES = (3, 5)
"""Two, to find a model that works for only one batch size."""


class Abilities(NamedTuple):
    """Abilities of a network beyond judging a position."""

    dynamics: bool = True  # imagine moves; AlphaZero's does not
    heads: tuple[Head, ...] = ()  # read-outs beyond policy, value and reward
    projection: bool = False  # project embeddings, for a loss that compares them
    canonical: bool = False  # see canonical observations
    num_codes: int = 0  # C, codes of chance to tell apart after every move; 0: no chance
    encodes_chance: bool = False  # find the code of what chance did in the next observation


MUZERO = Abilities()


def check(model: Model, environment: Environment, abilities: Abilities = MUZERO) -> None:
    """Raises Fault at the first breach of the contract; the model must have these `abilities`."""
    for num_rows in BATCH_SIZES:
        _require_all(model, environment, abilities, num_rows)


def checked(model: Any, environment: Environment, abilities: Abilities, *, source: str) -> Model:
    """The model that came from `source`, if it keeps the contract; otherwise raises Fault."""
    if not isinstance(model, Model):
        what = f"make_model returns a {type(model).__name__}, but must return a muzero_jax.types.Model"
        raise Fault(f"{source}: {what}")
    try:
        check(model, environment, abilities)
    except Fault as fault:
        raise Fault(f"{source}: {fault}") from None
    return model


def observation_of(environment: Environment) -> jax.ShapeDtypeStruct:
    """Shape and dtype of one observation."""
    return jax.eval_shape(lambda key: environment.observe(environment.init(key)), jax.random.key(0))


def _require_all(model: Model, environment: Environment, abilities: Abilities, num_rows: int) -> None:
    one = observation_of(environment)
    num_actions = environment.num_actions
    observation = jax.ShapeDtypeStruct((num_rows, *one.shape), one.dtype)
    action = jax.ShapeDtypeStruct((num_rows,), jnp.int32)
    params = traced("init", model.init, jax.random.key(0))
    _require_float32(params)
    root = traced("initial_inference", model.initial_inference, params, observation)
    _require_output("initial_inference", root, num_actions, num_rows)
    wanted = {head.output: head.size or num_actions for head in abilities.heads}
    for head in abilities.heads:
        if head.at == "position":
            size = f"float32[{num_rows}, {wanted[head.output]}]"
            require(f"initial_inference's extras[{head.output!r}]", root.extras.get(head.output), size)
    if abilities.dynamics:
        child = traced("recurrent_inference", model.recurrent_inference, params, root.embedding, action)
        _require_output("recurrent_inference", child, num_actions, num_rows)
        require_alike(root, child)
        if abilities.num_codes:
            wanted["chance_logits"] = abilities.num_codes
        for name, size in wanted.items():
            require(f"recurrent_inference's extras[{name!r}]", child.extras.get(name), f"float32[{num_rows}, {size}]")
        seen = traced("reconstruct", model.reconstruct, params, root.embedding)
        require("reconstruct's result", seen, f"float32{list(observation.shape)}")
    if abilities.encodes_chance:
        if model.encode_chance is None or model.follow_code is None:
            raise Fault(
                "--model learned needs a model with `encode_chance` and `follow_code` in a game with chance; add them, "
                "or use --model learned_outcomes or --network.chance-codes 0"
            )
        code = jax.ShapeDtypeStruct((num_rows, abilities.num_codes), jnp.float32)
        logits = traced("encode_chance", model.encode_chance, params, observation, observation)
        require("encode_chance's result", logits, kind_of(code))
        followed = traced("follow_code", model.follow_code, params, root.embedding, code)
        _require_output("follow_code", followed, num_actions, num_rows)
    if abilities.projection and (model.project is None or model.predict_projection is None):
        raise Fault("--optimiser.consistency-weight needs `project` and `predict_projection`; add them, or set it to 0")
    logits = jax.ShapeDtypeStruct((num_rows, 2, root.value_logits.shape[-1]), jnp.float32)
    target = jax.ShapeDtypeStruct(logits.shape[:-1], jnp.float32)
    require("to_scalar's result", traced("to_scalar", model.to_scalar, logits), kind_of(target))
    require("scalar_loss's result", traced("scalar_loss", model.scalar_loss, logits, target), kind_of(target))


def _require_float32(params: Any) -> None:
    if not jax.tree.leaves(params):
        raise Fault("init returns no parameters; it must return a pytree of float32 arrays")
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        name = jax.tree_util.keystr(path, simple=True, separator="/")  # "Dense_0/kernel"
        require(f"the parameter {name}", leaf, f"float32{list(leaf.shape)}")


def _require_output(name: str, output: Any, num_actions: int, num_rows: int) -> None:
    if not isinstance(output, NetworkOutput):
        raise Fault(f"{name} returns a {type(output).__name__}, but must return a muzero_jax.types.NetworkOutput")
    if getattr(output.embedding, "shape", ())[:1] != (num_rows,):
        wanted = f"one array whose first axis is the batch, here {num_rows}"
        raise Fault(f"{name}'s embedding must be {wanted}; it is {kind_of(output.embedding)}")
    num_bins = (getattr(output.value_logits, "shape", ()) or ("S",))[-1]
    for field, size in (("policy_logits", num_actions), ("value_logits", num_bins), ("reward_logits", num_bins)):
        require(f"{name}'s {field}", getattr(output, field), f"float32[{num_rows}, {size}]")


def require_alike(root: NetworkOutput, child: NetworkOutput) -> None:
    """Outputs of both inferences must have the same shapes, because searches and losses store them together."""
    seen, imagined = (
        {"embedding": output.embedding, "value_logits": output.value_logits}
        | {f"extras[{name!r}]": head for name, head in output.extras.items()}
        for output in (root, child)
    )
    for name in sorted(seen | imagined):
        require(f"recurrent_inference's {name}, as initial_inference's,", imagined.get(name), kind_of(seen.get(name)))
