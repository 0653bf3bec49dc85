"""Wiring: fields of a config reach the functions that they are for, and games of the user's own fit in."""

from dataclasses import replace
from functools import partial
from unittest.mock import Mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec

from examples import pig
from muzero_jax.agent import make_agent
from muzero_jax.algorithm import learning, make_algorithm, playing, training
from muzero_jax.apps import start
from muzero_jax.config.config import with_values
from muzero_jax.config.session import Session
from muzero_jax.games.own_game import environment_from
from muzero_jax.learning import targets
from muzero_jax.ops.mesh import AXIS, make_mesh, shard_map
from muzero_jax.run import program, run
from muzero_jax.run.compiled import Program
from muzero_jax.run.flops import Flops
from muzero_jax.run.memory import Plan
from muzero_jax.run.metrics import RANDOM_RETURN, RETURN, read_records
from muzero_jax.run.program import make_chunk, make_init
from muzero_jax.types import ActorState, Batch, LearnerState, ReplayState, Sample, TrainState
from tests.reference import double_nim, gamble, tiny_run
from tests.reference.models import random_params
from tests.reference.tiny_run import CONFIG, on_host
from tests.reference.windows import random_window

OBSERVATION = (3, 3, 2)


def changed(group, **fields):
    """The tiny run's config with other fields in one group."""
    return replace(CONFIG, **{group: replace(getattr(CONFIG, group), **fields)})


def batch_of(algorithm, window):
    """The batch that the algorithm makes of a window."""

    @jax.jit
    def make(window):
        wanted = algorithm.make_targets(window, jnp.float32(0.0))
        return algorithm.make_batch(window, wanted, jnp.ones(16), jax.random.key(0), num_frames=algorithm.num_frames)

    return make(window)


@pytest.fixture(scope="module")
def params():
    """A network with opinions: fresh heads are zero, and then no key could make a difference."""
    return random_params(tiny_run.algorithm().model)


@pytest.fixture(scope="module")
def window():
    drawn = random_window(0, 16, CONFIG.window_length, 9, OBSERVATION, gamma=1.0)
    return drawn._replace(observation=np.asarray(drawn.observation) > 0.5)


# --- noise ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["gumbel", "puct"])
def test_self_play_searches_with_noise_and_evaluation_and_play_without(params, policy):
    """Without noise eight keys give one answer, with noise several."""
    config = changed("search", policy=policy)
    roots = tiny_run.openings(4)

    def answers(noise):
        search = jax.jit(make_algorithm(config).search(noise=noise))
        return {tuple(search(params, jax.random.key(seed), roots).action.tolist()) for seed in range(8)}

    assert len(answers(noise=False)) == 1 < len(answers(noise=True))


def test_self_play_explores_as_the_config_says():
    assert make_algorithm(changed("self_play", exploration=0.7)).choose.keywords["exploration"] == 0.7  # type: ignore


def test_reanalyze_searches_without_noise_and_as_large_a_share_as_the_config_says(params, window):
    algorithm = make_algorithm(changed("replay", reanalyze_fraction=0.5))
    state = LearnerState(params, None, jnp.int32(0))
    whole = PartitionSpec()
    reanalyze = partial(algorithm.reanalyze, search=algorithm.search())
    refresh = jax.jit(shard_map(reanalyze, make_mesh(1), whole, whole))
    sample = Sample(jnp.zeros(16, jnp.int32), jnp.arange(16), jnp.ones(16))
    found = [jax.device_get(refresh(state, sample, window, jax.random.key(seed))) for seed in (0, 1)]
    (one, _, metrics), (other, _, _) = found
    np.testing.assert_array_equal(one.search_policy, other.search_policy)
    np.testing.assert_array_equal(one.search_value, other.search_value)
    is_fresh = one.search_value != np.asarray(window.search_value)
    wanted = (np.arange(16) < 8)[:, None] & (np.arange(CONFIG.window_length) < 3)  # the frames that are learned from
    np.testing.assert_array_equal(is_fresh, wanted)
    assert metrics["train/stale_value"] > 0


# --- replay and symmetries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end_weight, share", [(1, 0.25), (1000, 1.0)])
def test_windows_with_an_end_are_sampled_as_often_as_the_config_says(end_weight, share):
    """A full buffer of games that end every 8 moves: of all windows a quarter see an end in their first 2 moves."""
    config = changed("replay", end_weight=end_weight)
    config = replace(config, optimiser=replace(config.optimiser, batch_size=512))
    algorithm = make_algorithm(config)
    ring = on_host(tiny_run.make_init()().replay)
    discount = np.where(np.arange(32)[:, None] % 8 == 7, 0.0, -1.0) * np.ones((1, 8))
    full = ring.transitions._replace(discount=discount.astype(np.float32))
    ring = ring._replace(transitions=full, num_stored=np.int32(32))
    sampling = jax.jit(jax.vmap(lambda key: algorithm.sample(key, ring), axis_name=AXIS))
    sample = sampling(jax.random.split(jax.random.key(0), 1))
    assert sample.slot.shape == (1, CONFIG.optimiser.updates_per_iteration, 512)
    assert np.isin(np.asarray(sample.slot) % 8, [6, 7]).mean() == pytest.approx(share, abs=0.05)


def test_symmetries_are_applied_unless_the_config_says_no(window):
    key = jax.random.key(0)
    turning, leaving = (make_algorithm(changed("replay", symmetries=choice)) for choice in (True, False))
    batch = batch_of(turning, window)
    turned, left = jax.jit(turning.augment)(batch, key), leaving.augment(batch, key)
    assert left is batch
    is_turned = (np.asarray(turned.observation) != np.asarray(batch.observation)).reshape(16, -1).any(axis=1)
    assert 0.6 < is_turned.mean() < 1  # 7 of 8 symmetries turn


def test_targets_are_those_of_the_config(window):
    config = changed("targets", td_lambda=0.5, stop_at_exploration=False)
    how = {"unroll_steps": 2, "td_steps": 4, "td_lambda": 0.5, "stop_at_exploration": False}
    wanted = jax.jit(partial(targets.make, **how))(window)
    found = batch_of(make_algorithm(config), window).targets
    chex.assert_trees_all_close(found, wanted, rtol=1e-6, atol=1e-6)
    other = batch_of(make_algorithm(CONFIG), window).targets
    assert (np.asarray(other.value) != np.asarray(found.value)).any()


# --- one gradient step ------------------------------------------------------------------------------------------------


def test_a_step_learns_from_the_window_that_was_sampled_searched_again_and_augmented():
    """Each stage of the record marks what it passes on; the update must see all marks, in this order."""
    asked, given = [], {}

    def mark(name, result):
        def call(*arguments, **bound):
            asked.append((name, *arguments))
            given[name] = bound
            return result

        return call

    algorithm = tiny_run.algorithm()._replace(
        make_search=lambda _, *how: partial(print, *how),
        gather=mark("gather", "window"),
        reanalyze=mark("reanalyze", ("fresh", (), {"train/stale_value": jnp.ones(())})),
        make_targets=mark("make_targets", "targets"),
        make_batch=mark("make_batch", "batch"),
        augment=mark("augment", "augmented"),
        update=mark("update", (LearnerState("new params", None, 1), {"train/loss": jnp.zeros(())})),  # type: ignore
        write_back=mark("write_back", ((), {"train/priority": jnp.ones(())})),
    )
    learner, ring, half = LearnerState("params", None, 0), ReplayState("ring", 0, 0), jnp.float32(0.5)  # type: ignore
    sample = Sample("slots", "games", "weights")  # type: ignore

    def step(key):
        return training.learn_step(learner, (sample, key), buffer=ring, progress=half, algorithm=algorithm)[1][1]

    metrics = jax.vmap(step, axis_name=AXIS)(jax.random.split(jax.random.key(0), 1))
    keyed = {"reanalyze", "make_batch", "augment"}
    assert [call[:-1] if call[0] in keyed else call for call in asked] == [
        ("gather", ring, sample),
        ("reanalyze", learner, sample, "window"),
        ("make_targets", "fresh", half),
        ("make_batch", "fresh", "targets", "weights"),
        ("augment", "batch"),
        ("update", learner, "augmented", half),
        ("write_back", sample, "fresh", "batch"),
    ]
    assert set(metrics) == {"train/stale_value", "train/priority", "train/loss"}
    assert given["reanalyze"]["search"].args == (None, False), "self-play's budget, without noise"


def test_the_rollout_gets_replaced_fields_of_the_algorithm_and_the_newest_weights():
    """Another search, choice of actions, game or network; and not the target network's weights, nor the average's,
    which is what a run measures and saves.
    """
    seen = {}

    def rollout(params, actor, key, **bound):
        seen.update(bound, params=params)
        raise StopIteration

    algorithm = tiny_run.algorithm()._replace(
        rollout=rollout, make_search=lambda *of: partial(print, *of), make_simulator=lambda *of: of, choose="mine"
    )
    algorithm = algorithm._replace(environment="my game", model="my network")
    learner = LearnerState("new", None, None, "target", "average")  # type: ignore
    state = TrainState(ActorState(None, None), learner, None, jnp.int32(0), jax.random.key(0))  # type: ignore
    with pytest.raises(StopIteration):
        jax.vmap(lambda progress: training.train_iteration(state, progress, algorithm=algorithm), axis_name=AXIS)(
            jnp.zeros(1)
        )
    assert (seen["environment"], seen["model"], seen["choose"]) == ("my game", "my network", "mine")
    assert seen["search"].args == (("my game", "my network"), None, True)
    assert seen["params"] == "new" and run.Run.params.fget(Mock(state=state)) == "average"


def test_only_self_plays_searches_are_cheap_and_only_its_full_ones_noisy(monkeypatch):
    seen = []
    monkeypatch.setitem(
        playing.GUMBEL_SEARCHES,
        "own",
        lambda world, **bound: seen.append((bound["num_simulations"], bound["gumbel_scale"])) or print,
    )
    config = changed("self_play", full_search_share=0.25, cheap_simulations=2)
    algorithm = make_algorithm(replace(config, search=replace(config.search, engine="own")))
    algorithm.search()
    algorithm.search(noise=True)
    full = CONFIG.search.num_simulations
    assert seen == [(full, 0.0), (full, CONFIG.search.gumbel_scale), (2, 0.0)]


def test_playout_cap_searches_the_configured_share_in_full_and_the_rest_cheaply(params):
    algorithm = make_algorithm(changed("self_play", full_search_share=0.25, cheap_simulations=2))
    search = jax.jit(algorithm.search(noise=True))
    found = [search(params, jax.random.key(seed), tiny_run.openings(1)) for seed in range(64)]
    spent = {bool(f.in_full[0]): int(f.simulations[0]) for f in found}
    assert spent == {True: CONFIG.search.num_simulations, False: 2}
    assert 5 <= sum(bool(f.in_full[0]) for f in found) <= 27, "16 are expected, with a spread of 3.5"


# --- learning ---------------------------------------------------------------------------------------------------------


def test_the_learning_rate_falls_with_the_progress_and_the_average_follows(params, window):
    algorithm = make_algorithm(changed("optimiser", schedule="cosine", average_decay=0.9))
    batch = batch_of(algorithm, window)
    loss = partial(algorithm.loss, model=algorithm.model, terms=algorithm.terms)

    @jax.jit
    def step(state, progress):
        whole = partial(algorithm.update, loss=loss, optimiser=algorithm.optimiser)
        return shard_map(whole, make_mesh(1), PartitionSpec(), PartitionSpec())(state, batch, progress)

    start = jax.jit(partial(algorithm.init_learner, algorithm.model, algorithm.optimiser))(jax.random.key(0))
    first, at_start = step(start, jnp.float32(0.0))
    second, at_half = step(first, jnp.float32(0.5))
    rates = [float(metrics["train/learning_rate"]) for metrics in (at_start, at_half)]  # it ends at a tenth
    np.testing.assert_allclose(rates, np.array([1.0, 0.55]) * CONFIG.optimiser.learning_rate, rtol=1e-5)
    mean = jax.tree.map(lambda one, two: (one + two) / 2, first.params, second.params)  # 0.9 counts from the tenth on
    chex.assert_trees_all_close(second.average_params, mean, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("values", "terms"),
    [
        ({"network.kind": "mlp", "network.chance_codes": 4}, "reconstruction consistency chance commitment"),
        ({"model": "learned_legality", "network.predict_discount": True}, "legality discount"),
        ({"search.policy": "none", "model": "none"}, "policy advantage action_value"),
    ],
)
def test_each_term_has_the_weight_of_its_own_name(values, terms):
    names = terms.split()
    weights = {f"optimiser.{name}_weight": 2.0 + index for index, name in enumerate(names)}
    found = {term.name: term.weight for term in make_algorithm(with_values(CONFIG, weights | values)).terms}
    assert {name: found[name] for name in names} == {name: weights[f"optimiser.{name}_weight"] for name in names}


OWN_SEARCH = {
    "value_scale": 0.3,
    "maxvisit_init": 7.0,
    "rescale_values": not CONFIG.search.rescale_values,
    "improved_value": not CONFIG.search.improved_value,
    "gumbel_scale": 0.4,
    "dirichlet_fraction": 0.11,
    "dirichlet_alpha": 0.22,
    "pb_c_init": 1.5,
    "pb_c_base": 99.0,
    "temperature": 0.6,
}


@pytest.mark.parametrize(("policy", "table"), [("gumbel", playing.GUMBEL_SEARCHES), ("puct", playing.PUCT_SEARCHES)])
def test_every_field_of_the_search_reaches_its_argument(policy, table, monkeypatch):
    seen = {}
    monkeypatch.setitem(table, "own", lambda world, **bound: seen.update(bound) or print)
    values = OWN_SEARCH | {"policy": policy, "engine": "own"}
    config = with_values(CONFIG, {f"search.{name}": value for name, value in values.items()})
    make_algorithm(config).search(noise=True)
    given = seen | (seen["qtransform"]._asdict() if "qtransform" in seen else {})
    shared = [name for name in OWN_SEARCH if name in given]
    assert len(shared) == 5 and [given[name] for name in shared] == [OWN_SEARCH[name] for name in shared]


def test_other_fields_reach_the_functions_that_read_them():
    values = {
        "self_play.sampled_moves": 3,
        "targets.discount": 0.9,
        "targets.search_value_weight": 0.5,
        "optimiser.target_decay": 0.9,
        "replay.priority_exponent": 0.6,
        "replay.importance_exponent": 0.4,
    }
    config = with_values(CONFIG, values)
    algorithm = make_algorithm(config)
    assert algorithm.choose.keywords["sampled_moves"] == 3 and algorithm.environment.discount == -0.9
    drawn = algorithm.sample.keywords
    assert (drawn["priority_exponent"], drawn["importance_exponent"]) == (0.6, 0.4)
    assert learning.follow_of(config).keywords == {"decay": 0.9}
    priorities = algorithm.write_back.keywords["make_returns"]
    assert "search_value_weight" not in priorities.keywords, "priorities are of pure returns"
    assert make_agent(config, algorithm).num_simulations == CONFIG.evaluation.num_simulations


def test_canonical_observations_are_asked_of_the_network():
    config = replace(changed("network", kind="observation", canonical=True), env="hex", board_size=3)
    assert playing.wanted_abilities(config, playing.build_environment(config)).canonical


def test_each_loss_has_the_weight_of_its_own_name(params, window):
    weights = {"reward": 2.0, "value": 3.0, "policy": 5.0, "reconstruction": 7.0}
    config = changed("optimiser", **{f"{name}_weight": weight for name, weight in weights.items()})
    algorithm = make_algorithm(config)
    batch, loss = batch_of(algorithm, window), partial(algorithm.loss, model=algorithm.model, terms=algorithm.terms)
    total, metrics = jax.jit(loss)(params, batch)
    parts_of_it = {name: float(metrics[f"train/{name}_loss"]) for name in weights}
    assert len({round(part, 4) for part in parts_of_it.values()}) == 4
    np.testing.assert_allclose(total, sum(weights[name] * part for name, part in parts_of_it.items()), rtol=1e-5)


def test_only_the_observations_that_losses_and_reanalyze_need_are_gathered():
    ring = tiny_run.abstract_state().replay
    sample = Sample(jnp.zeros(4, jnp.int32), jnp.arange(4), jnp.ones(4))

    def length(config):
        algorithm = make_algorithm(config)
        shapes = jax.eval_shape(partial(algorithm.gather, num_frames=algorithm.num_frames), ring, sample)
        return shapes.observation.shape[1]

    assert length(CONFIG) == 1
    assert length(changed("optimiser", reconstruction_weight=1.0)) == 3
    assert length(changed("optimiser", consistency_weight=1.0)) == 3
    assert length(changed("replay", reanalyze_fraction=0.1)) == 3
    short = replace(changed("replay", reanalyze_fraction=0.1), targets=replace(CONFIG.targets, td_steps=2))
    assert length(short) == short.window_length == 5  # short returns bootstrap from every frame


# --- searches ---------------------------------------------------------------------------------------------------------


def test_a_larger_budget_considers_more_root_actions(params):
    """4 actions with 4 simulations, and all 9 with 64."""
    algorithm = tiny_run.algorithm()
    roots = tiny_run.openings(1)
    for budget, considered in ((4, 4), (64, 9)):
        search = algorithm.search(budget)
        tree = jax.jit(search)(params, jax.random.key(0), roots).tree
        assert (np.asarray(tree.visits[0, 0]) > 0).sum() == considered


# --- a user's own game ------------------------------------------------------------------------------------------------


def nim_of(size_when_again):
    """Double nim as an `Environment` whose discounts are -0.97 and, where the same player moves again, that size."""

    def move(state, action, key=None):
        step = double_nim.move(state, action, key)
        return step._replace(discount=step.discount * jnp.where(step.discount > 0, size_when_again, 0.97))

    return double_nim.GAME._replace(move=move)


def test_a_predicted_discount_has_the_size_of_the_environments_own():
    """The config's is 1, the game's 0.97: of two stones one leaves 1 and the turn stays, of three it passes."""
    model, config = double_nim.exact_model(predicts_legality=False), changed("targets", discount=1.0)
    simulator = playing.unbounded_simulator(config, nim_of(0.97), model)
    node = jax.jit(simulator.expand)(None, jax.random.key(0), jnp.zeros(2, jnp.int32), jnp.array([2, 3]))
    np.testing.assert_allclose(node.discount, [0.97, -0.97], rtol=1e-6)
    constant = nim_of(0.97)._replace(discount=-0.97)
    told = replace(config, network=replace(config.network, predict_discount=True))
    simulator = playing.unbounded_simulator(told, constant, model)
    np.testing.assert_allclose(
        jax.jit(simulator.expand)(None, None, jnp.zeros(1, int), jnp.array([2])).discount, [0.97], rtol=1e-6
    )
    with pytest.raises(ValueError, match=r"double_nim have discounts of the sizes 0\.9 and 0\.97, but a model .* sign"):
        playing.unbounded_simulator(config, nim_of(0.9), model)


@pytest.fixture(scope="module")
def gambled():
    """Two chunks of a game without a board or a pgx state: what an iteration needs is what an `Environment` says."""
    quick = changed("search", num_simulations=2, max_num_considered_actions=2)
    quick = replace(quick, targets=replace(quick.targets, unroll_steps=1, td_steps=2))
    algorithm, mesh = make_algorithm(quick, gamble.GAMBLE), make_mesh(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(program, "train_iteration", chex.assert_max_traces(training.train_iteration, n=1))
        chunk = make_chunk(algorithm, mesh)
        state, _ = chunk(make_init(algorithm, 0, mesh)(), tiny_run.PROGRESS)
        return chunk(state, tiny_run.PROGRESS)  # neither a second call nor a second iteration traces again


def test_a_single_player_game_trains(gambled):
    _, metrics = gambled
    assert np.isfinite(metrics["train/loss"]).all() and metrics["train/loss"][-1] > 0


def test_chance_is_random_and_both_kinds_of_end_are_told_apart(gambled):
    state, _ = gambled
    played = jax.tree.map(lambda x: x[: int(state.replay.num_stored)], on_host(state.replay.transitions))
    by_the_rules, by_time = played.is_last & (played.discount == 0), played.is_last & (played.discount != 0)
    assert by_the_rules.any() and by_time.any()
    bets = played.action == gamble.BET
    assert set(np.unique(played.reward[bets])) == {0.0, 1.0} and not played.reward[~bets].any()
    for game in range(8):  # an episode lasts five moves at most, and the next begins anew
        ends = np.flatnonzero(played.is_last[:, game])
        assert np.diff(ends, prepend=-1).max() <= gamble.TIME_LIMIT


def test_the_ground_truth_model_samples_chance_again_in_each_simulation():
    """Some bets of each tree win and some lose."""
    config = changed("search", num_simulations=32, max_num_considered_actions=2)
    algorithm = make_algorithm(replace(config, model="rules"), gamble.GAMBLE)
    search = jax.jit(algorithm.search())
    roots = tiny_run.openings(64, gamble.GAMBLE)
    tree = jax.device_get(search(random_params(algorithm.model), jax.random.key(1), roots).tree)
    bets = tree.action[1:] == gamble.BET
    share = (tree.reward[1:] * bets).sum(axis=0) / bets.sum(axis=0)  # of each of the 64 trees
    assert bets.sum(axis=0).min() > 4 and ((share > 0) & (share < 1)).mean() > 0.8
    assert 0.4 < share.mean() < 0.6


def test_the_host_loop_trains_a_single_player_game_without_matches(tmp_path, monkeypatch, gambled):
    """`start.train` with the user's own parts. There is no opponent, so the summary has returns and no match."""
    state, metrics = gambled
    algorithm, given = make_algorithm(CONFIG, gamble.GAMBLE), []
    program = Program(lambda state, progress: (state, metrics), str, Plan({}), Flops())
    init = Mock(return_value=state, eval_shape=lambda: state)
    compiled = program, init
    monkeypatch.setattr(run, "compile_agent", lambda config, *others: given.append(others[0]) or compiled)
    config = replace(changed("evaluation", interval_minutes=1.0), max_iterations=2)
    session = Session(tensorboard=False)
    result = start.train(run.Run(config, tmp_path, algorithm, make_mesh(1), session, lambda text: None))
    assert given == [algorithm]
    assert result.summary["strength"] == {} and (tmp_path / "summary.json").is_file()
    returns, games = metrics["selfplay/finished_returns"].sum(), metrics["selfplay/games"].sum()
    played, random = result.summary["returns"].values()
    assert played == pytest.approx(float(returns / games)) and 0.5 < random < 2
    records = read_records(tmp_path)
    assert {record.get(RANDOM_RETURN) for record in records} == {random} and records[0][RETURN] == played


def test_a_game_without_a_board_has_no_symmetries_and_refuses_a_tower():
    algorithm = make_algorithm(CONFIG, gamble.GAMBLE)
    batch = Batch(*[None] * len(Batch._fields))  # type: ignore
    assert algorithm.augment(batch, jax.random.key(0)) is batch
    with pytest.raises(ValueError, match="--network.kind tower"):
        make_algorithm(changed("network", kind="tower"), gamble.GAMBLE)


def test_a_network_that_an_algorithm_brings_is_asked_for_the_configs_heads():
    """It need not name them itself: the sign of a predicted discount is read from what it says."""
    config = changed("network", predict_discount=True)
    usual = make_algorithm(config)
    own = usual._replace(model=usual.model._replace(heads=()))
    params = random_params(usual.model)
    roots = tiny_run.openings(4, usual.environment)
    for algorithm in (usual, own):
        simulator = algorithm.make_simulator(algorithm.environment, algorithm.model)
        root = simulator.root(params, roots)
        node = simulator.expand(params, jax.random.key(0), jnp.zeros(4, jnp.int32), root.embedding)
        embedding = usual.model.initial_inference(params, roots.observation).embedding
        said = usual.model.recurrent_inference(params, embedding, jnp.zeros(4, jnp.int32))
        shares = jax.nn.softmax(said.extras["discount_logits"])
        np.testing.assert_allclose(node.discount, shares[:, 2] - shares[:, 0], rtol=1e-5)


def test_gamma_is_measured_also_while_a_program_is_traced():
    """Searches are made then, and random games of rules without a constant discount cannot be traced."""
    algorithm = make_algorithm(
        changed("network", predict_discount=True), environment_from(pig.make(), "pig")._replace(gamma=None)
    )
    assert algorithm.environment.discount is None
    state = program.make_init(algorithm, 0, make_mesh(1)).eval_shape()
    assert state.actor.num_moves.shape == (8,)
