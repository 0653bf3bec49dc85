"""Whether a model keeps the contract of `types.Model`, as far as shapes and dtypes tell: it is traced, never run."""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from muzero_jax.networks.layers import MUZERO, Abilities
from muzero_jax.own import python_file
from muzero_jax.types import Environment, Model, NetworkOutput

BATCH_SIZES = (3, 5)
"""Two, so that a model for one batch size alone is found."""


class Broken(ValueError):
    """A function of the model that cannot even be traced; in one sentence."""


def breaches(model: Model, environment: Environment, abilities: Abilities = MUZERO) -> list[str]:
    """Breaches of the contract, in one sentence each; empty if nothing does. The model needs these `abilities`."""
    for num_rows in BATCH_SIZES:
        try:
            found = list(_breaches(model, environment, abilities, num_rows))
        except Broken as error:
            found = [str(error)]
        if found:
            return found
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
    """The shapes of `function(*arguments)`; raises `Broken`, which calls it `name`, if it cannot be traced."""
    try:
        return jax.eval_shape(lambda *inputs: function(*inputs), *arguments)
    except Exception as error:
        raise Broken(f"{name} {_explain(error)}") from error


def path_name(path: Any) -> str:
    """A parameter's name: "Dense_0/kernel"."""
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _breaches(model: Model, environment: Environment, abilities: Abilities, num_rows: int) -> Iterator[str]:
    one = observation_of(environment)
    observation = jax.ShapeDtypeStruct((num_rows, *one.shape), one.dtype)
    action = jax.ShapeDtypeStruct((num_rows,), jnp.int32)
    params = traced("init", model.init, jax.random.key(0))
    yield from _of_params(params)
    root = traced("initial_inference", model.initial_inference, params, observation)
    yield from _of_output("initial_inference", root, environment.num_actions, num_rows)
    if not isinstance(root, NetworkOutput):
        return
    if _shape(root.embedding)[:1] != (num_rows,):
        wanted = f"one array whose first axis is the batch, here {num_rows}"
        yield f"initial_inference's embedding must be {wanted}; it is {_shown(root.embedding)}"
        return
    if abilities.dynamics:
        child = traced("recurrent_inference", model.recurrent_inference, params, root.embedding, action)
        yield from _of_output("recurrent_inference", child, environment.num_actions, num_rows)
        yield from _of_child(root, child, environment.num_actions, abilities)
        seen = traced("reconstruct", model.reconstruct, params, root.embedding)
        meaning = "a logit for each number of the observation"
        yield from _of_array("reconstruct's result", seen, observation.shape, meaning)
        if abilities.encodes_chance:
            yield from _of_encoder(model, params, observation, root, abilities.num_codes)
    if abilities.projection and (model.project is None or model.predict_projection is None):
        yield "--optimiser.consistency-weight needs a model with `project` and `predict_projection`; add them"
    logits = jax.ShapeDtypeStruct((num_rows, 2, root.value_logits.shape[-1]), jnp.float32)
    target = jax.ShapeDtypeStruct(logits.shape[:-1], jnp.float32)
    scalar = traced("to_scalar", model.to_scalar, logits)
    loss = traced("scalar_loss", model.scalar_loss, logits, target)
    for name, result in (("to_scalar", scalar), ("scalar_loss", loss)):
        yield from _of_array(f"{name}'s result of logits {logits.shape}", result, target.shape, "a number for each row")


def _of_child(root: NetworkOutput, child: Any, num_actions: int, abilities: Abilities) -> Iterator[str]:
    """Faults in the output of an imagined move, beyond what every output must be."""
    if not isinstance(child, NetworkOutput):
        return
    pairs = {name: (getattr(root, name), getattr(child, name)) for name in ("embedding", "value_logits")}
    names = sorted({*root.extras, *child.extras})
    pairs |= {f"extras[{name!r}]": (root.extras.get(name), child.extras.get(name)) for name in names}
    for field, outputs in pairs.items():
        seen, imagined = (_shown(output) for output in outputs)
        if seen != imagined:
            yield (
                f"{field} is {seen} from initial_inference and {imagined} from recurrent_inference; make them alike, "
                "because searches and losses store them together"
            )
    num_rows = _shape(child.policy_logits)[0]
    wanted = {
        "legal_logits": (abilities.legality, num_actions, "above 0 for a legal move (--model learned_legality)"),
        "discount_logits": (abilities.discount, 3, "for -gamma, 0 and +gamma (turns do not always alternate)"),
        "chance_logits": (abilities.num_codes > 0, abilities.num_codes, "for each code of what chance does"),
    }
    for name, (is_wanted, size, meaning) in wanted.items():
        if is_wanted:
            head = f"recurrent_inference's extras[{name!r}]"
            yield from _of_array(head, child.extras.get(name), (num_rows, size), meaning)


def _of_encoder(model: Model, params: Any, observation: Any, root: NetworkOutput, num_codes: int) -> Iterator[str]:
    """Faults in how codes of chance are found, and followed as one-hots."""
    if model.encode_chance is None or model.follow_code is None:
        yield (
            "--model learned needs a model with `encode_chance` and `follow_code` in a game with chance; add them, or "
            "take --model learned_outcomes or --network.chance-codes 0"
        )
        return
    num_rows = observation.shape[0]
    code = jax.ShapeDtypeStruct((num_rows, num_codes), jnp.float32)
    logits = traced("encode_chance", model.encode_chance, params, observation, observation)
    yield from _of_array("encode_chance's result", logits, code.shape, "a logit for each code")
    followed = traced("follow_code", model.follow_code, params, root.embedding, code)
    yield from _of_output("follow_code", followed, root.policy_logits.shape[-1], num_rows)


def _of_params(params: Any) -> Iterator[str]:
    leaves = jax.tree_util.tree_leaves_with_path(params)
    if not leaves:
        yield "init returns no parameters; it must return a pytree of float32 arrays"
    wrong = [f"{path_name(path)} ({leaf.dtype})" for path, leaf in leaves if leaf.dtype != jnp.float32]
    if wrong:
        yield f"every parameter must be float32, whatever the arithmetic, but these are not: {', '.join(wrong)}"


def _of_output(name: str, output: Any, num_actions: int, num_rows: int) -> Iterator[str]:
    if not isinstance(output, NetworkOutput):
        yield f"{name} returns a {type(output).__name__}, but must return a muzero_jax.types.NetworkOutput"
        return
    shape = _shape(output.value_logits)
    num_bins = shape[-1] if len(shape) == 2 else "S"
    meanings = {
        "policy_logits": ((num_rows, num_actions), "a logit for each action"),
        "value_logits": ((num_rows, num_bins), "a logit for each bin of the support"),
        "reward_logits": ((num_rows, num_bins), "a logit for each bin, as value_logits"),
    }
    for field, (wanted, meaning) in meanings.items():
        yield from _of_array(f"{name}'s {field}", getattr(output, field), wanted, meaning)


def _of_array(name: str, array: Any, shape: tuple[Any, ...], meaning: str) -> Iterator[str]:
    if _shape(array) != shape or array.dtype != jnp.float32:
        wanted = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        yield f"{name} must be float32 ({wanted}), {meaning}, but is {_shown(array)}"


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of an array; empty for anything else."""
    return getattr(value, "shape", ())


def _shown(value: Any) -> str:
    if value is None:
        return "None"
    return f"{value.dtype} {value.shape}" if hasattr(value, "dtype") else f"a {type(value).__name__}"


def _explain(error: Exception) -> str:
    """The end of a sentence on why a function cannot be traced."""
    if isinstance(error, python_file.ASKS_FOR_A_VALUE):
        place = python_file.own_line(error)
        where = f" ({place[0].name}:{place[1]})" if place else ""
        remedy = "use jnp.where, lax.cond or lax.scan in place of Python's if, loops and NumPy"
        return f"cannot be compiled, because it asks for the value of a traced array{where}; {remedy}"
    return f"fails with {python_file.describe(error)}; mend it"
