"""The searches of a run: with the learned or the ground-truth model, with noise or without, in full or cheap."""

from functools import partial

from muzero_jax.building.worlds import gamma, predicts_discount
from muzero_jax.learning.algorithm import World
from muzero_jax.ops import micro_batches
from muzero_jax.search import loop_free, mctx_reference, playout_cap, policies
from muzero_jax.search.bounded import bounded
from muzero_jax.search.simulator import Simulator, ground_truth_model, learned_chance_model, learned_model
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment, QTransform, SearchFn

IMPLEMENTATIONS = {"own": policies, "loop_free": loop_free, "mctx": mctx_reference}
"""By `--search.engine`: the modules with a `gumbel_search` and a `puct_search`."""


def make_search(config: Config, world: World, *, noise: bool, num_simulations: int | None = None) -> SearchFn:
    """The configured search; without `noise` it is deterministic and greedy, as evaluation and play want it.

    Raises ValueError if `--search.engine` cannot plan with the chance of the game.
    """
    search, simulator = config.search, make_simulator(config, world)
    cannot_plan = {"mctx": simulator.num_outcomes is not None, "loop_free": simulator.passes_afterstates}
    if cannot_plan.get(search.engine):
        raise ValueError(f"use --search.engine own: {search.engine} cannot plan with the chance of this game")
    implementation = IMPLEMENTATIONS[search.engine]
    budget = num_simulations or search.num_simulations
    if search.policy == "gumbel":
        return implementation.gumbel_search(
            simulator,
            num_simulations=budget,
            max_num_considered_actions=num_considered(config, world.environment, budget),
            gumbel_scale=search.gumbel_scale if noise else 0.0,
            qtransform=QTransform(search.value_scale, search.maxvisit_init, search.rescale_values),
            improved_value=search.improved_value,
        )
    return implementation.puct_search(
        simulator,
        num_simulations=budget,
        dirichlet_fraction=search.dirichlet_fraction if noise else 0.0,
        dirichlet_alpha=search.dirichlet_alpha,
        pb_c_init=search.pb_c_init,
        pb_c_base=search.pb_c_base,
        temperature=search.temperature if noise else 0.0,
    )


def num_considered(config: Config, environment: Environment, num_simulations: int) -> int:
    """How many root actions Gumbel's search considers: it grows as the root of the budget above self-play's."""
    search = config.search
    ratio = max(1.0, num_simulations / search.num_simulations)
    return min(round(search.max_num_considered_actions * ratio**0.5), environment.num_actions)


def make_simulator(config: Config, world: World) -> Simulator:
    """The model that a search plans with: the learned one, or with `--model rules` the ground-truth model.

    Where a game's returns have a known range, no value in the tree leaves it.
    """
    made, bound = unbounded_simulator(config, world), world.model.bound
    return bounded(made, bound) if world.environment.num_players == 2 and bound else made


def unbounded_simulator(config: Config, world: World) -> Simulator:
    """`make_simulator` without that range."""
    environment, model = world.environment, micro_batches.for_inference(world.model)
    if config.model == "rules":
        return ground_truth_model(environment, model)
    make, predicted = learned_model, predicts_discount(config, environment)
    if model.num_codes:
        make = partial(learned_chance_model, num_actions=environment.num_actions, num_outcomes=model.num_codes)
    return make(
        model,
        gamma(environment) if predicted else environment.constant_discount,
        predicted_legality=config.model == "learned_legality",
        predicted_discount=predicted,
    )


def build_self_play_search(config: Config, world: World) -> SearchFn:
    """The search of self-play, with noise; for a share of the moves a cheap one without."""
    play, full = config.self_play, make_search(config, world, noise=True)
    if play.full_search_share == 1.0:
        return full
    cheap = make_search(config, world, noise=False, num_simulations=play.cheap_simulations)
    return playout_cap.mix(full, cheap, share=play.full_search_share)
