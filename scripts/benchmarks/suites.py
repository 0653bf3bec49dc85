"""The suites: the cases of each, the promised ratios, and the measurement of a case."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax

from muzero_jax import presets
from muzero_jax.config.config import Config
from muzero_jax.ops import precision
from muzero_jax.ops.mesh import largest_divisor
from scripts.benchmarks import programs, timing
from scripts.benchmarks.programs import MLP, playing, searching
from scripts.benchmarks.timing import Effort, Variant

OWN = "own search"
PASSES = "search in passes"
MCTX = "mctx"
NETWORK = "network calls"
PYTHON = "Python tree"
PLAIN = "baseline"
ONE = "ours, 1 device"
ALL = "ours, all devices"
HOST = "ours, driven from Python"
AUTO = "ours, all devices, automatic precision"
TREE = "Python tree, one game"
ONE_GAME = "ours, one game, driven from Python"
AGAINST_PLAIN = (ALL, PLAIN), (ALL, ONE), (ONE, PLAIN)


class Ratio(NamedTuple):
    """A ratio to measure: how many times faster is one variant than another?"""

    numerator: str
    denominator: str
    aim: float | None = None  # what the project promises


class Case(NamedTuple):
    """Variants that are measured in turn, and the ratios to compute from them."""

    suite: str
    name: str
    unit: str
    make: Callable[[], dict[str, Variant]]  # builds and compiles; called just before the case is measured
    ratios: tuple[Ratio, ...]
    num_devices: int | None = None  # of the variants on all devices, if there are any


def measure(case: Case, effort: Effort) -> dict[str, Any]:
    """The case's record: rates by variant, and each ratio as the median of the rounds' ratios."""
    variants = case.make()
    seconds = timing.in_turn(variants, effort)
    rates = {name: [variants[name].work / value for value in values] for name, values in seconds.items()}
    found = {ratio: timing.ratio(rates[ratio.numerator], rates[ratio.denominator]) for ratio in case.ratios}
    return {
        "suite": case.suite,
        "case": case.name,
        "num_devices": case.num_devices,
        "unit": case.unit,
        "rates": {name: timing.summarise(x)._asdict() | {"samples": x} for name, x in rates.items()},
        "ratios": [ratio._asdict() | sample._asdict() for ratio, sample in found.items()],
    }


def search(quick: bool) -> Iterator[Case]:
    """One search of a batch of positions, MLP of width 64, one device: ours against mctx and only the network."""
    hex9 = ("hex", 9, 20)
    small = ("tic_tac_toe", None, 2)
    aims = {("gumbel", 82, 1024): 5.0, ("puct", 82, 1024): 14.0, ("gumbel", 9, 256): 1.7, ("puct", 9, 256): 8.0}
    sizes = [(small, 256, 32), (small, 1, 32)]
    if not quick:
        sizes += [(small, 1024, 64), (hex9, 64, 32), (hex9, 1, 32), (hex9, 1024, 64)]
    for (env, board_size, num_moves), games, simulations in sizes:
        config = playing(env, MLP, games, simulations, board_size=board_size)
        actions = 9 if env == small[0] else 82
        for policy in ("gumbel", "puct"):
            aim = 1.0 if games == 1 else aims.get((policy, actions, games))
            name = f"{policy}, {actions} actions, {games:,} game{'s' * (games > 1)}, {simulations} simulations"
            ratios = [Ratio(OWN, MCTX, aim), Ratio(OWN, NETWORK), Ratio(MCTX, NETWORK)]
            ratios += [Ratio(PASSES, OWN)] if policy == "gumbel" else [Ratio(OWN, PYTHON)] if games == 1 else []
            engines = {OWN: "own", MCTX: "mctx"} | ({PASSES: "passes"} if policy == "gumbel" else {})
            make = partial(_searches, config, policy, num_moves, engines, with_python=policy == "puct" and games == 1)
            yield Case("search", name, "searches/s", make, tuple(ratios))


def _searches(
    config: Config, policy: str, num_moves: int, engines: dict[str, str], *, with_python: bool
) -> dict[str, Variant]:
    asked = programs.positions(config, num_moves)
    found = {name: programs.search(searching(config, engine, policy), asked) for name, engine in engines.items()}
    found[NETWORK] = programs.bare_network(config, asked)
    return found | ({PYTHON: programs.python_search(config, asked)} if with_python else {})


def self_play(quick: bool) -> Iterator[Case]:
    """Moves a second of tic-tac-toe (W2) and Connect Four (W1): ours, the baseline, a Python loop."""
    pairs = ((ALL, PLAIN),) if quick else ((ALL, PLAIN), (ALL, ONE), (ONE, HOST), (ONE, PLAIN))
    for policy in ("gumbel",) if quick else ("gumbel", "puct"):
        config = searching(programs.W2, policy=policy)
        name = f"W2: tic-tac-toe, MLP 64, 25 simulations, {policy}, {config.self_play.num_envs} games"
        yield _case("self-play", name, config, pairs, aim=3.0)
    few = playing("tic_tac_toe", MLP, 16, 8, rollout_length=8)
    yield _case("self-play", "tic-tac-toe, MLP 64, 8 simulations, gumbel, 16 games", few, ((ONE, HOST),))
    if not quick:
        name = "W1: Connect Four, tower 64x4, 50 simulations, gumbel, 128 games, 4 moves a call"
        yield _case("self-play", name, programs.W1, pairs, aim=2.8)


def learner(quick: bool) -> Iterator[Case]:
    """Gradient steps a second on Connect Four's tower (W3), ours against the baseline."""
    if quick:
        name = "tower 64x2 on Connect Four, K = 2, batch 64, 4 updates a call"
        yield _case("learner", name, programs.SMALL_W3, ((ALL, PLAIN),))
    else:
        name = "W3: tower 64x4 on Connect Four, K = 5, batch 256, 4 updates a call"
        yield _case("learner", name, programs.W3, AGAINST_PLAIN, aim=2.5)


def iteration(quick: bool) -> Iterator[Case]:
    """Whole training iterations, self-play and learning: the run's own program."""
    name = "tic-tac-toe, MLP 64, 25 simulations, 4 iterations of 2,048 frames and 4 updates of 256"
    yield _case("iteration", name, programs.WHOLE, AGAINST_PLAIN[: 1 if quick else None])
    if not quick:
        name = "Hex 9x9, tower 64x4, 16 simulations, 4 iterations of 128 frames and 2 updates of 64"
        yield _case("iteration", name, programs.WHOLE_HEX, AGAINST_PLAIN, aim=2.8)


def ablation(quick: bool) -> Iterator[Case]:
    """The gain of each step from a plain pipeline: our search, many games, one program, all devices, bfloat16."""
    games = 64 if quick else 512
    config = searching(playing("hex", MLP, games, 32, rollout_length=4, board_size=5), policy="puct")
    steps = [(later, before) for before, later in pairwise((TREE, ONE_GAME, HOST, ONE, ALL))]
    name = f"Hex 5x5, MLP 64, 32 simulations, puct, {games} games where there are many"
    yield _case("ablation", name, config, ((ALL, TREE), *steps), aim=100.0)


def chunk(quick: bool) -> Iterator[Case]:
    """Whole chunks of Hex's presets for this device: by search, CUDA graphs, precision and number of games."""
    small, large = (_with_fewer_games(presets.preset("hex", size), 16 if quick else 1) for size in (5, 9))
    whole = replace(small, network=replace(small.network, compute_dtype="float32"))
    variants = {
        PASSES: partial(programs.chunk, searching(small, "passes"), 1),
        OWN: partial(programs.chunk, searching(small, "own"), 1),
        f"{PASSES}, graphs by XLA": partial(programs.chunk, searching(small, "passes"), 1, one_graph=False),
        f"{OWN}, graphs by XLA": partial(programs.chunk, searching(small, "own"), 1, one_graph=False),
        f"{PASSES}, float32": partial(programs.chunk, searching(whole, "passes"), 1),
        f"{PASSES}, games / 16": partial(programs.chunk, searching(_with_fewer_games(small, 16), "passes"), 1),
    }
    yield _chunks(f"Hex 5x5, {small.self_play.num_envs:,} games, one device", variants)
    engines = {PASSES: "passes", OWN: "own", MCTX: "mctx"}
    variants = {name: partial(programs.chunk, searching(large, engine), 1) for name, engine in engines.items()}
    yield _chunks(f"Hex 9x9, {large.self_play.num_envs:,} games, one device", variants)


def _chunks(name: str, makers: Mapping[str, Callable[[], Variant]]) -> Case:
    """The first variant against all others, compiled in parallel, because a GPU's program takes a core a minute."""

    def make():
        with ThreadPoolExecutor(len(makers)) as pool:
            return dict(zip(makers, pool.map(lambda maker: maker(), makers.values()), strict=True))

    first, *others = makers
    return Case("chunk", name, "frames/s", make, tuple(Ratio(first, other) for other in others))


def _with_fewer_games(config: Config, divisor: int) -> Config:
    """The config with its games and windows divided by `divisor`."""
    games = config.self_play.num_envs // divisor
    windows = config.optimiser.batch_size // divisor
    play = replace(config.self_play, num_envs=games)
    optimiser = replace(config.optimiser, batch_size=windows)
    return replace(config, self_play=play, optimiser=optimiser)


SUITES: dict[str, Callable[[bool], Iterator[Case]]] = {
    "search": search,
    "self-play": self_play,
    "learner": learner,
    "iteration": iteration,
    "ablation": ablation,
    "chunk": chunk,
}
UNITS = {"self-play": "moves/s", "learner": "updates/s", "iteration": "frames/s", "ablation": "moves/s"}


def _case(suite: str, name: str, config: Config, pairs: Sequence[tuple[str, str]], aim: float | None = None) -> Case:
    """A case with the variants that its ratios need, and one in a run's own precision if the config has another.

    "All devices" are as many as divide the sizes, as in a run; the aim is that of the first ratio.
    """
    ratios = [Ratio(first, second, None if number else aim) for number, (first, second) in enumerate(pairs)]
    automatic = replace(config, network=replace(config.network, compute_dtype="auto"))
    alone = replace(config, self_play=replace(config.self_play, num_envs=1))
    if ratios[0].numerator == ALL and precision.resolve("auto").compute_dtype != config.network.compute_dtype:
        ratios += [Ratio(AUTO, ratios[0].denominator, aim), Ratio(AUTO, ALL)]
    asked = {variant for ratio in ratios for variant in ratio[:2]}
    count = largest_divisor(jax.device_count(), *config.shared_sizes)
    own = {"learner": partial(programs.chunk, plays=False), "iteration": programs.chunk}.get(suite, programs.self_play)
    makers: dict[str, Callable[[], Variant]] = {
        PLAIN: lambda: programs.baseline(suite, config),
        TREE: lambda: programs.python_self_play(config),
        ONE_GAME: lambda: programs.host_driven_self_play(alone),
        HOST: lambda: programs.host_driven_self_play(config),
        ONE: lambda: own(config, 1),
        ALL: lambda: own(config, count),
        AUTO: lambda: own(automatic, count),
    }

    def make():
        return {variant: maker() for variant, maker in makers.items() if variant in asked}

    return Case(suite, name, UNITS[suite], make, tuple(ratios), count if ALL in asked else None)
