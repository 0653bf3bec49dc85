"""Builds the game, the network and the searches that a config names: with noise or without, full or cheap."""

import inspect
from functools import partial

import jax

from muzero_jax.algorithm.heads import REGRET, build_heads, predicts_discount
from muzero_jax.config.config import Config
from muzero_jax.games.own_game import load_environment, random_games
from muzero_jax.games.random_play import discount_sizes
from muzero_jax.learning import starts
from muzero_jax.learning.starts import Starts
from muzero_jax.networks import contract
from muzero_jax.networks.contract import Abilities
from muzero_jax.networks.model import make_model
from muzero_jax.networks.value_transform import Support
from muzero_jax.ops import micro_batches
from muzero_jax.own import python_file
from muzero_jax.search import mctx_reference, model_free, playout_cap, policies
from muzero_jax.search.bounded import bounded
from muzero_jax.search.simulator import (
    Simulator,
    ground_truth_model,
    learned_chance_model,
    learned_model,
    without_model,
)
from muzero_jax.types import Environment, Model, QTransform, SearchFn

LEAST_REGRET = 0.02
"""By which a stored position is drawn at least, however little regret is predicted there."""
DEFAULT_CODES = 32
"""Codes of an encoder, as in Stochastic MuZero (Antonoglou et al. 2022, appendix D)."""
GUMBEL_SEARCHES = {
    "own": policies.gumbel_search,
    "passes": partial(policies.gumbel_search, in_passes=True),
    "mctx": mctx_reference.gumbel_search,
}
PUCT_SEARCHES = {"own": policies.puct_search, "mctx": mctx_reference.puct_search}
"""By `--search.engine`."""
MOST_IN_PASSES = 256
"""The most simulations of a search in passes, whose work grows with their square; beyond it `own` searches."""


def build_environment(config: Config) -> Environment:
    """The game that the config names."""
    return load_environment(config.env, board_size=config.board_size, gamma=config.targets.discount)


def build_model(config: Config, environment: Environment) -> Model:
    """The network that the config names, or that the user's own file makes."""
    network = config.network
    support = Support(-network.support_range, network.support_range, network.num_bins, network.squash)
    abilities = wanted_abilities(config, environment)
    if network.file:
        make_own = python_file.load_function(network.file, "make_model")
        options = python_file.read_options(network.options)
        if "abilities" in inspect.signature(make_own).parameters:
            options["abilities"] = abilities
        model = contract.checked(make_own(environment, support, **options), environment, abilities, source=network.file)
        encode_chance = model.encode_chance if abilities.encodes_chance else None
        return model._replace(
            bound=support.high, num_codes=abilities.num_codes, encode_chance=encode_chance, heads=abilities.heads
        )
    return make_model(
        environment,
        support,
        kind=network.kind,
        width=network.width,
        num_blocks=network.num_blocks,
        activation=network.activation,
        compute_dtype=network.compute_dtype,
        abilities=abilities,
    )


def wanted_abilities(config: Config, environment: Environment) -> Abilities:
    """The abilities that the network of a run must have."""
    return Abilities(
        dynamics=config.learns_dynamics,
        num_codes=chance_codes(config, environment),
        encodes_chance=config.model == "learned" and chance_codes(config, environment) > 0,
        heads=build_heads(config, environment),
        projection=config.compares_embeddings,
        canonical=config.network.is_canonical,
    )


def chance_codes(config: Config, environment: Environment) -> int:
    """C, how many codes of chance the learned model has; 0 for plain MuZero.

    Raises ValueError if the config needs known chance outcomes and the game lists none.
    """
    chance = environment.chance
    if config.model == "learned_outcomes":
        if chance is None:
            raise ValueError(
                f"--model learned_outcomes needs known chance outcomes, which {environment.name} does not list; choose "
                "--model learned (with --network.chance-codes 32, if there is chance)"
            )
        return chance.num_outcomes + 1  # the last one: chance had no part
    if config.model != "learned":
        return 0
    wanted = config.network.chance_codes
    return DEFAULT_CODES * (chance is not None) if wanted is None else wanted


def gamma(environment: Environment) -> float:
    """|discount| of the moves that end no game, of which a model predicts only the sign.

    If the game does not say it, it is measured in random games. Raises ValueError if it varies.
    """
    if environment.gamma is not None:
        return environment.gamma
    if environment.discount is not None:
        return abs(environment.discount)
    with jax.ensure_compile_time_eval():  # searches are made while a run's program is traced
        sizes = discount_sizes(random_games(environment))
    if len(sizes) > 1:
        raise ValueError(
            f"moves of {environment.name} have discounts of the sizes {sizes[0]:g} and {sizes[-1]:g}, but a model "
            "predicts only their sign; make all of one size, or plan with the ground-truth model (--model rules)"
        )
    return sizes[0] if sizes else 1.0


def build_starts(config: Config) -> Starts | None:
    """Where games of self-play begin; None: all at the beginning."""
    play = config.self_play
    if play.starts == "beginning" or config.offline:
        return None
    if play.starts == "random":
        return starts.random_moves(share=play.start_share, most=play.start_moves)
    weigh = None
    if play.starts == "regret":
        weigh = partial(starts.predicted_regret, output=REGRET.output, least=LEAST_REGRET)
    return starts.archive(share=play.start_share, slots=play.start_slots, weigh=weigh)


def make_simulator(config: Config, environment: Environment, model: Model) -> Simulator:
    """The model that a search plans with: the learned one, or with `--model rules` the ground-truth model.

    In two-player games no value in its tree leaves [-`model.bound`, `model.bound`], if that is known (`bounded`).
    """
    made = unbounded_simulator(config, environment, model)
    return bounded(made, model.bound) if environment.num_players == 2 and model.bound else made


def unbounded_simulator(config: Config, environment: Environment, model: Model) -> Simulator:
    """`make_simulator` without `bounded`."""
    # The heads that the config asks for, whichever network an algorithm of the user's own brings.
    model = micro_batches.for_inference(model)._replace(heads=build_heads(config, environment))
    if config.model == "none":
        return without_model(model)
    if config.model == "rules":
        return ground_truth_model(environment, model)
    discount = gamma(environment) if predicts_discount(config, environment) else environment.discount
    assert discount is not None  # if it is not constant it is predicted
    if model.num_codes:
        return learned_chance_model(model, discount, num_actions=environment.num_actions)
    return learned_model(model, discount)


def make_search(
    config: Config, simulator: Simulator, num_simulations: int | None = None, noise: bool = False
) -> SearchFn:
    """The configured search; without `noise` it is deterministic and greedy, as in evaluation and play.

    Args:
      num_simulations: None: self-play's, which with noise may mix full and cheap searches (`playout_cap`).

    Raises ValueError for `--search.engine mctx` in a game whose model has chance nodes.
    """
    play = config.self_play
    if noise and num_simulations is None and play.full_search_share < 1.0:
        full = _search(config, simulator, config.search.num_simulations, noise=True)
        cheap = _search(config, simulator, play.cheap_simulations, noise=False)
        return playout_cap.mix(full, cheap, share=play.full_search_share)
    return _search(config, simulator, num_simulations or config.search.num_simulations, noise=noise)


def _search(config: Config, simulator: Simulator, num_simulations: int, *, noise: bool) -> SearchFn:
    search = config.search
    if search.policy == "none" and noise:
        return model_free.regularised(
            simulator,
            kl_weight=search.kl_weight,
            entropy_weight=search.entropy_weight,
            most_value=config.network.support_range,
        )
    if not simulator.plans:
        return model_free.policy_head(simulator)
    if search.engine == "mctx" and simulator.num_outcomes is not None:
        raise ValueError("use --search.engine own: the engine mctx has no chance nodes, which this game's model needs")
    keeps_tree = simulator.passes_afterstates or simulator.shows_tree
    is_puct = search.policy == "puct"
    is_in_turn = keeps_tree or is_puct or num_simulations > MOST_IN_PASSES
    engine = "own" if search.engine == "passes" and is_in_turn else search.engine
    if not is_puct:
        return GUMBEL_SEARCHES[engine](
            simulator,
            num_simulations=num_simulations,
            max_num_considered_actions=num_considered(config, num_simulations),
            gumbel_scale=search.gumbel_scale if noise else 0.0,
            qtransform=QTransform(search.value_scale, search.maxvisit_init, search.rescale_values),
            improved_value=search.improved_value,
        )
    return PUCT_SEARCHES[engine](
        simulator,
        num_simulations=num_simulations,
        dirichlet_fraction=search.dirichlet_fraction if noise else 0.0,
        dirichlet_alpha=search.dirichlet_alpha,
        pb_c_init=search.pb_c_init,
        pb_c_base=search.pb_c_base,
        temperature=search.temperature if noise else 0.0,
    )


def num_considered(config: Config, num_simulations: int) -> int:
    """How many root actions Gumbel's search considers; grows with the square root of the budget above self-play's."""
    ratio = max(1.0, num_simulations / config.search.num_simulations)
    return round(config.search.max_num_considered_actions * ratio**0.5)
