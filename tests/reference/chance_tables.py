"""A game of chance that is a table, its rules and a model of it, and a search of its rules in plain loops."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from muzero_jax.types import Afterstate, Chance, Environment, Model, NetworkOutput, Step


class Table(NamedTuple):
    """S positions with A actions, and P afterstates with C outcomes; a position, or an afterstate, is its index."""

    reward: np.ndarray  # [S, A], of the action, for who takes it
    awaits: np.ndarray  # [S, A] bool, chance acts after the action; a learned model thinks so of every action
    after: np.ndarray  # [S, A], the afterstate that the action leads to, where it awaits chance
    straight: np.ndarray  # [S, A], the position that it leads to elsewhere
    straight_discount: np.ndarray  # [S, A]
    successor: np.ndarray  # [P, C], the position after each outcome
    outcome_reward: np.ndarray  # [P, C]; a learned model expects it with the action's
    outcome_discount: np.ndarray  # [P, C]
    value: np.ndarray  # [S], what the value head says
    after_value: np.ndarray  # [P]
    policy_logits: np.ndarray  # [S, A]
    chance_logits: np.ndarray  # [P, C]


def make_table(num_states, num_actions, num_afterstates, num_outcomes, **given) -> Table:
    """Zeros in all fields that are not given; every action awaits chance."""
    edges, outcomes = (num_states, num_actions), (num_afterstates, num_outcomes)
    shapes = [edges] * 5 + [outcomes] * 3 + [(num_states,), (num_afterstates,), edges, outcomes]
    dtypes = {"awaits": bool, "after": np.int32, "straight": np.int32, "successor": np.int32}
    fields = {
        name: np.full(shape, name == "awaits", dtypes.get(name, np.float32))
        for name, shape in zip(Table._fields, shapes, strict=True)
    }
    return Table(**fields | {name: np.asarray(value, fields[name].dtype) for name, value in given.items()})


def random_table(seed, num_actions, num_outcomes, num_states=64, num_afterstates=96):
    """A world for two players in which no two numbers are equal, so that no choice is a tie."""
    generator = np.random.default_rng(seed)
    edges, outcomes = (num_states, num_actions), (num_afterstates, num_outcomes)

    def normal(*shape):
        return generator.normal(size=shape).astype(np.float32)

    def index(count, shape):
        return generator.integers(0, count, shape, dtype=np.int32)

    return Table(
        reward=np.where(generator.random(edges) < 0.3, normal(*edges), 0).astype(np.float32),
        awaits=generator.random(edges) < 0.7,
        after=index(num_afterstates, edges),
        straight=index(num_states, edges),
        straight_discount=generator.choice([1.0, -1.0, 0.0], edges).astype(np.float32),
        successor=index(num_states, outcomes),
        outcome_reward=np.where(generator.random(outcomes) < 0.3, normal(*outcomes), 0).astype(np.float32),
        outcome_discount=generator.choice([1.0, -1.0, 0.0], outcomes, p=[0.2, 0.7, 0.1]).astype(np.float32),
        value=np.tanh(normal(num_states)),
        after_value=np.tanh(normal(num_afterstates)),
        policy_logits=normal(*edges),
        chance_logits=normal(*outcomes),
    )


# --- a model ----------------------------------------------------------------------------------------------------------

UNSAID = 99.0
"""The model's outputs that a search must ignore: an outcome's reward, an afterstate's policy."""


def _initial_inference(table: Table, observation) -> NetworkOutput:
    """The observation is the position's index [N, 1]; one that is not finite gives only NaN."""
    state, taint = observation.astype(jnp.int32)[:, 0], observation - observation
    value, policy_logits = jnp.asarray(table.value)[state][:, None], jnp.asarray(table.policy_logits)[state]
    return NetworkOutput(state[:, None], taint, value + taint, policy_logits + taint)


def _recurrent_inference(table: Table, embedding, index) -> NetworkOutput:
    table = Table(*(jnp.asarray(field) for field in table))
    num_actions = table.policy_logits.shape[1]
    here, is_action = embedding[:, 0], index < num_actions
    action, outcome = jnp.minimum(index, num_actions - 1), jnp.maximum(index - num_actions, 0)
    after, state = table.after[here, action], table.successor[here, outcome]
    reward = jnp.where(is_action, table.reward[here, action], UNSAID)
    value = jnp.where(is_action, table.after_value[after], table.value[state])
    policy_logits = jnp.where(is_action[:, None], UNSAID, table.policy_logits[state])
    chance_logits = jnp.where(is_action[:, None], table.chance_logits[after], UNSAID)
    embedding = jnp.where(is_action, after, state)[:, None]
    return NetworkOutput(embedding, reward[:, None], value[:, None], policy_logits, {"chance_logits": chance_logits})


MODEL = Model(
    init=lambda key: None,
    initial_inference=_initial_inference,
    recurrent_inference=_recurrent_inference,
    reconstruct=lambda params, embedding: embedding,
    to_scalar=lambda logits: logits[..., 0],
    scalar_loss=lambda logits, target: (logits[..., 0] - target) ** 2,
)
"""A model whose params are a `Table`. As `networks` have it, index a leads to an afterstate and A + c on from there."""


# --- the rules --------------------------------------------------------------------------------------------------------


class State(NamedTuple):
    """A position or an afterstate."""

    index: jax.Array  # [] int32
    is_after: jax.Array  # [] bool


def probabilities_of(table: Table) -> np.ndarray:
    """[P, C]."""
    weights = np.exp(table.chance_logits - table.chance_logits.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)).astype(np.float32)


def make_game(table: Table) -> Environment:
    """The table as an environment that lists its chance; an afterstate's observation is not finite."""
    rules, probabilities = jax.device_put((table, probabilities_of(table)))
    num_actions = table.reward.shape[1]

    def move(state, action) -> Afterstate:
        awaits = rules.awaits[state.index, action]
        index = jnp.where(awaits, rules.after[state.index, action], rules.straight[state.index, action])
        discount = jnp.where(awaits, 1.0, rules.straight_discount[state.index, action])
        return Afterstate(State(index, awaits), rules.reward[state.index, action], discount, discount == 0, awaits)

    def resolve(state, outcome) -> Step:
        discount = rules.outcome_discount[state.index, outcome]
        following = State(rules.successor[state.index, outcome], jnp.bool_(False))
        return Step(following, rules.outcome_reward[state.index, outcome], discount, discount == 0, outcome)

    return Environment(
        name="table",
        init=lambda key: State(jnp.int32(0), jnp.bool_(False)),
        move=lambda state, action, key: Step(*move(state, action)[:4]),
        observe=lambda state: (state.index / (1.0 - state.is_after))[None],
        legal=lambda state: jnp.ones(num_actions, bool),
        num_actions=num_actions,
        observation_shape=(1,),
        num_players=2,
        discount=None,
        chance=Chance(table.chance_logits.shape[1], move, lambda state: probabilities[state.index], resolve),
    )


# --- a search of the rules in plain loops -----------------------------------------------------------------------------


class Visit(NamedTuple):
    """A node of a plain tree; lists, which a search changes, hold what it counts."""

    index: int
    is_chance: bool
    prior: np.ndarray  # of actions or of outcomes
    mean: list  # [value, count]
    children: dict  # action or outcome -> (slot, reward, discount)
    visits: np.ndarray


def search_plainly(table: Table, state: int, num_simulations: int, pb_c_init: float, pb_c_base: float):
    """PUCT on the rules: slot -> `Visit`, where slot 2 i + 2 is simulation i's position, and 2 i + 1 its afterstate."""
    probabilities = probabilities_of(table)

    def position(index, over=False):
        weights = np.exp(table.policy_logits[index] - table.policy_logits[index].max())
        value = 0.0 if over else float(table.value[index])
        return Visit(index, False, weights / weights.sum(), [value, 1], {}, np.zeros(len(weights)))

    def choose(node):
        if node.is_chance:
            return int(np.argmax(node.prior / (node.visits + 1)))
        value, count = node.mean
        known = {a: reward + discount * tree[slot].mean[0] for a, (slot, reward, discount) in node.children.items()}
        low, high = min([*known.values(), value]), max([*known.values(), value])
        q = np.array([(known[a] - low) / max(high - low, 1e-8) if a in known else 0 for a in range(len(node.prior))])
        weight = np.sqrt(count) * (pb_c_init + np.log((count + pb_c_base + 1) / pb_c_base))
        return int(np.argmax(q + weight * node.prior / (node.visits + 1)))

    def resolve(slot, after, outcome):
        discount = float(table.outcome_discount[after, outcome])
        tree[slot] = position(table.successor[after, outcome], over=discount == 0)
        return slot, float(table.outcome_reward[after, outcome]), discount

    tree = {0: position(state)}
    for simulation in range(num_simulations):
        slot, path = 0, []
        while slot is not None:
            edge = slot, choose(tree[slot])
            path.append(edge)
            slot = tree[edge[0]].children.get(edge[1], (None,))[0]
        parent, action = edge
        node, new = tree[parent], 2 * simulation + 2
        if node.is_chance:
            node.children[action] = resolve(new, node.index, action)
        elif table.awaits[node.index, action]:
            after = table.after[node.index, action]
            chances = probabilities[after]
            tree[new - 1] = Visit(after, True, chances, [0.0, 0], {}, np.zeros(len(chances)))
            node.children[action] = new - 1, float(table.reward[node.index, action]), 1.0
            outcome = int(np.argmax(chances))
            tree[new - 1].children[outcome] = resolve(new, after, outcome)
            path.append((new - 1, outcome))
        else:
            discount = float(table.straight_discount[node.index, action])
            tree[new] = position(table.straight[node.index, action], over=discount == 0)
            node.children[action] = new, float(table.reward[node.index, action]), discount
        result = tree[new].mean[0]
        for above, action in reversed(path):
            node = tree[above]
            _, reward, discount = node.children[action]
            result = reward + discount * result
            value, count = node.mean
            node.mean[:] = (value * count + result) / (count + 1), count + 1
            node.visits[action] += 1
    return tree
