"""Whether a model keeps the contract of `types.Model`, as far as shapes and dtypes tell: it is traced, never run."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.networks.layers import MUZERO, Abilities
from muzero_jax.own.faults import Fault, guarded
from muzero_jax.types import Environment, Model, NetworkOutput

BATCH_SIZES = (3, 5)
"""Two, so that a model for one batch size alone is found."""


def breaches(model: Model, environment: Environment, abilities: Abilities = MUZERO) -> list[str]:
    """The first breach of the contract, in one sentence; empty if there is none. The model needs these `abilities`."""
    try:
        for num_rows in BATCH_SIZES:
            _require_all(model, environment, abilities, num_rows)
    except Fault as fault:
        return [str(fault)]
    return []


def checked(model: Any, environment: Environment, abilities: Abilities, *, source: str) -> Model:
    """The model that came from `source`, if it keeps the contract; else ValueError with the first breach."""
    if not isinstance(model, Model):
        what = f"make_model returns a {type(model).__name__}, but must return a muzero_jax.types.Model"
        raise ValueError(f"{source}: {what}")
    if found := breaches(model, environment, abilities):
        raise ValueError(f"{source}: {found[0]}")
    return model


def observation_of(environment: Environment) -> jax.ShapeDtypeStruct:
    """Shape and dtype of one observation."""
    return jax.eval_shape(lambda key: environment.observe(environment.init(key)), jax.random.key(0))


def traced(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """The shapes of `function(*arguments)`; raises Fault, which calls it `name`, if it cannot be traced."""
    return guarded(jax.eval_shape, name)(lambda *inputs: function(*inputs), *arguments)


def path_name(path: Any) -> str:
    """A parameter's name: "Dense_0/kernel"."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _require_all(model: Model, environment: Environment, abilities: Abilities, num_rows: int) -> None:
    one = observation_of(environment)
    observation = jax.ShapeDtypeStruct((num_rows, *one.shape), one.dtype)
    action = jax.ShapeDtypeStruct((num_rows,), jnp.int32)
    params = traced("init", model.init, jax.random.key(0))
    _require_float32(params)
    root = traced("initial_inference", model.initial_inference, params, observation)
    _require_output("initial_inference", root, environment.num_actions, num_rows)
    if abilities.dynamics:
        child = traced("recurrent_inference", model.recurrent_inference, params, root.embedding, action)
        _require_output("recurrent_inference", child, environment.num_actions, num_rows)
        _require_alike(root, child)
        wanted = {
            "legal_logits": abilities.legality * environment.num_actions,  # --model learned_legality
            "discount_logits": abilities.discount * 3,  # -gamma, 0 and +gamma, where turns do not always alternate
            "chance_logits": abilities.num_codes,
        }
        for name in [name for name, size in wanted.items() if size]:
            _require(f"recurrent_inference's extras[{name!r}]", child.extras.get(name), num_rows, wanted[name])
        seen = traced("reconstruct", model.reconstruct, params, root.embedding)
        _require("reconstruct's result", seen, *observation.shape)
    if abilities.encodes_chance:
        if model.encode_chance is None or model.follow_code is None:
            raise Fault(
                "--model learned needs a model with `encode_chance` and `follow_code` in a game with chance; add them, "
                "or take --model learned_outcomes or --network.chance-codes 0"
            )
        code = jax.ShapeDtypeStruct((num_rows, abilities.num_codes), jnp.float32)
        logits = traced("encode_chance", model.encode_chance, params, observation, observation)
        _require("encode_chance's result", logits, *code.shape)
        followed = traced("follow_code", model.follow_code, params, root.embedding, code)
        _require_output("follow_code", followed, environment.num_actions, num_rows)
    if abilities.projection and (model.project is None or model.predict_projection is None):
        raise Fault("--optimiser.consistency-weight needs a model with `project` and `predict_projection`; add them")
    logits = jax.ShapeDtypeStruct((num_rows, 2, root.value_logits.shape[-1]), jnp.float32)
    target = jax.ShapeDtypeStruct(logits.shape[:-1], jnp.float32)
    scalar = traced("to_scalar", model.to_scalar, logits)
    loss = traced("scalar_loss", model.scalar_loss, logits, target)
    for name, result in (("to_scalar", scalar), ("scalar_loss", loss)):
        _require(f"{name}'s result of logits {logits.shape}", result, *target.shape)


def _require_float32(params: Any) -> None:
    leaves = jax.tree_util.tree_leaves_with_path(params)
    if not leaves:
        raise Fault("init returns no parameters; it must return a pytree of float32 arrays")
    if wrong := [f"{path_name(path)} ({leaf.dtype})" for path, leaf in leaves if leaf.dtype != jnp.float32]:
        raise Fault(f"every parameter must be float32, whatever the arithmetic, but these are not: {', '.join(wrong)}")


def _require_output(name: str, output: Any, num_actions: int, num_rows: int) -> None:
    if not isinstance(output, NetworkOutput):
        raise Fault(f"{name} returns a {type(output).__name__}, but must return a muzero_jax.types.NetworkOutput")
    if getattr(output.embedding, "shape", ())[:1] != (num_rows,):
        wanted = f"one array whose first axis is the batch, here {num_rows}"
        raise Fault(f"{name}'s embedding must be {wanted}; it is {_shown(output.embedding)}")
    num_bins = (getattr(output.value_logits, "shape", ()) or ("S",))[-1]
    for field, size in (("policy_logits", num_actions), ("value_logits", num_bins), ("reward_logits", num_bins)):
        _require(f"{name}'s {field}", getattr(output, field), num_rows, size)


def _require_alike(root: NetworkOutput, child: NetworkOutput) -> None:
    pairs = {name: (getattr(root, name), getattr(child, name)) for name in ("embedding", "value_logits")}
    names = sorted({*root.extras, *child.extras})
    pairs |= {f"extras[{name!r}]": (root.extras.get(name), child.extras.get(name)) for name in names}
    for field, outputs in pairs.items():
        seen, imagined = (_shown(output) for output in outputs)
        if seen != imagined:
            raise Fault(
                f"{field} is {seen} from initial_inference and {imagined} from recurrent_inference; make them alike, "
                "because searches and losses store them together"
            )


def _require(name: str, array: Any, *shape: int | str) -> None:
    if (wanted := f"float32 {shape}") != _shown(array):
        raise Fault(f"{name} must be {wanted}, but is {_shown(array)}")


def _shown(value: Any) -> str:
    """The dtypes and shapes of arrays; of anything else the kind."""
    if isinstance(value, dict):
        return str({name: _shown(part) for name, part in sorted(value.items())})
    return (
        f"{value.dtype} {value.shape}" if hasattr(value, "dtype") else "None" if value is None else type(value).__name__
    )
