"""Players by name: parses names, loads what they need, and makes the players, which search without noise.

    RUN[@N]          a run's agent, searching with N simulations
    RUN:rules[@N]    the same network and search, planning with the ground-truth model
    RUN:sampled[@N]  the same search, each move sampled from its policy
    RUN:greedy       the likeliest move of its policy head, without search
    RUN:head         a move drawn from its policy head; RUN itself in a game with hidden information
    rules:N, sampled:N, greedy, head
                     the same for the host, which is the run that the others play against
    mcts:N, random   rollout MCTS with N simulations; uniformly random legal moves
    gtp:COMMAND, uci:COMMAND, usi:COMMAND, gnubg:COMMAND
                     another program, with settings after semicolons (`apps.engines.engines`)
    expectimax:N, highest-gain, pip-count
                     by the rules: N moves ahead with all chance; the largest reward; expectimax:1 of backgammon

RUN is a run's directory (its newest checkpoint), RUN/versions/N (that run after iteration N), RUN/versions (all of its
versions, each a player), or agent:NAME, a trained agent in a file (`storage.agent_file`). Without N, the budget is the
command's, or else the run's own for evaluation.
"""

from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp

from muzero_jax.agent import Agent, load_agent, policy_head_search
from muzero_jax.agent.agent import check_budget
from muzero_jax.apps.engines import engines
from muzero_jax.apps.engines.engines import EngineSpec
from muzero_jax.apps.evaluation.expectimax import expectimax_player, gain_player, pip_count_player
from muzero_jax.apps.evaluation.player import Player, random_player, sampling_player, search_player
from muzero_jax.apps.evaluation.rollout_mcts import rollout_mcts_player
from muzero_jax.config.config import AGENT_PREFIX, Config
from muzero_jax.games.catalogue import check_for_two, check_open, hides
from muzero_jax.storage import agent_file, run_directory
from muzero_jax.types import Environment, Params

SPECS = (
    "random, greedy, head, mcts:N, rules:N, sampled:N, expectimax:N, highest-gain, pip-count, RUN, RUN@N, RUN:rules@N, "
    "RUN:sampled@N, RUN:greedy or RUN:head, where RUN is a run directory, RUN/versions/N or agent:NAME; or another "
    "program, gtp:COMMAND, uci:COMMAND, usi:COMMAND or gnubg:COMMAND (docs/commands.md)"
)
BY_RULES: dict[str, Callable[[Environment], Player]] = {"highest-gain": gain_player, "pip-count": pip_count_player}
"""Players that need neither a network nor a budget."""
SEARCHES = {"rules": "ground-truth model", "sampled": "sampled policy"}
"""Kinds of player that change how an agent's search plays, as the tables call them."""
HEADS = ("greedy", "head")
"""Kinds of player that do not search."""


class PlayerSpec(NamedTuple):
    """A parsed player name."""

    kind: str  # agent, mcts, expectimax, random, engine, or one of `SEARCHES`, `HEADS` or `BY_RULES`
    run: str | None = None  # the run whose network plays; None: the host's, or no network
    num_simulations: int | None = None  # N of the name, for expectimax a depth; None: the name gives none
    engine: EngineSpec | None = None  # for another program


class Entrant(NamedTuple):
    """A player ready to play."""

    name: str
    player: Player | EngineSpec  # an engine is another program, which `EngineMatch` asks for moves
    params: Params
    program: Hashable  # equal for players that differ only in their params

    @property
    def is_engine(self) -> bool:
        """Whether another program plays."""
        return isinstance(self.player, EngineSpec)


LoadAgent = Callable[[Path], Agent]
"""Loads a run: `agent.load_agent` with the budget and the board of a command."""


def searching(agent: Agent, num_simulations: int | None = None, *, kind: str = "agent") -> Player:
    """Plays the choice of the agent's search, or as one of `SEARCHES`: with the ground-truth model, or sampled.

    Without a model its policy head plays; in a game with hidden information a move is drawn from it.
    """
    check_kind(agent.environment, kind)
    kind = without_search(agent, kind)
    if kind in HEADS:
        return policy_head(agent, sampled=kind == "head")
    budget = num_simulations or agent.num_simulations
    name = f"{SEARCHES.get(kind, kind)} ({budget} simulation{'s' * (budget != 1)})"
    make = sampling_player if kind == "sampled" else search_player
    return make(agent.environment, agent.search_fn(num_simulations, true_rules=kind == "rules"), name)


def policy_head(agent: Agent, *, sampled: bool = False) -> Player:
    """Plays the action with the largest prior, or one drawn from the prior, without search."""
    search = policy_head_search(agent.model)
    if sampled:
        return sampling_player(agent.environment, search, "policy head")
    return search_player(agent.environment, search, "greedy prior")


def without_search(agent: Agent, kind: str) -> str:
    """The kind of player, for an agent without a model one of `HEADS` instead of its search."""
    if kind != "agent" or agent.searches:
        return kind
    return "head" if hides(agent.environment) else "greedy"


def check_kind(environment: Environment, kind: str) -> None:
    """Raises ValueError if this kind of player would use hidden information."""
    if kind in ("mcts", "expectimax", *SEARCHES, *BY_RULES):
        check_open(environment, f"a player that looks ahead ({kind})")


def parse(text: str, *, others: str = "") -> PlayerSpec:
    """The player that `text` names; if a run has that name, it is the run.

    Raises ValueError for an unknown name, with the known ones and `others` (further names that the caller accepts), or
    if the name asks for too many simulations.
    """
    if is_run(text):
        return PlayerSpec("agent", str(Path(text)))
    if (engine := engines.parse(text)) is not None:
        return PlayerSpec("engine", engine=engine)
    rest, budget = _split_budget(text, "@")
    run, _, kind = rest.rpartition(":")
    if is_run(rest):
        return PlayerSpec("agent", str(Path(rest)), budget)
    if is_run(run) and (kind in SEARCHES or (kind in HEADS and budget is None)):
        return PlayerSpec(kind, str(Path(run)), budget)
    kind, budget = _split_budget(text, ":")
    if (kind in ("mcts", "expectimax", *SEARCHES) and budget) or text in ("random", *HEADS, *BY_RULES):
        return PlayerSpec(kind, None, budget)
    if text.startswith(AGENT_PREFIX):  # for the same error message as elsewhere
        name = text.removeprefix(AGENT_PREFIX).partition("@")[0].partition(":")[0]
        agent_file.check_exists(agent_file.SHIPPED / f"{name}{agent_file.SUFFIX}")
    raise ValueError(f"there is no player {text!r}: choose {others}{SPECS}")


def parse_all(text: str, *, others: str = "") -> list[PlayerSpec]:
    """The players that `text` names: one, as `parse` reads it, or all versions of a run if it names their folder."""
    spec = parse(text, others=others)
    versions = None if spec.run is None else run_directory.versions_in(Path(spec.run))
    if versions is None:
        return [spec]
    if not versions:
        raise ValueError(f"there are no versions in {spec.run}; leave it out or name a run directory")
    return [spec._replace(run=str(version)) for version in versions]


def load(spec: PlayerSpec, host: Agent, load_agent: LoadAgent = load_agent) -> Entrant:
    """The player that `spec` means, as an opponent of the host; raises ValueError as its callees do."""
    if spec.run is None:
        return enter(spec, host)
    agent = load_agent(Path(spec.run))
    check_same_game(host.config, agent.config, spec.run)
    return enter(spec, agent)


def enter(spec: PlayerSpec, agent: Agent) -> Entrant:
    """The player that `spec` means in the agent's game; if it needs a network, with the agent's."""
    environment = agent.environment
    budget = spec.num_simulations or agent.num_simulations
    if spec.engine is not None:
        engines.check(spec.engine, environment)
        return Entrant(spec.engine.name, spec.engine, None, spec.engine)
    check_kind(environment, spec.kind)
    match spec.kind:
        case "random":
            name = "random"
            player = random_player(environment)
        case "mcts":
            check_for_two(environment, "rollout MCTS needs")
            name = f"mcts:{budget}"
            player = rollout_mcts_player(environment, most_simulations=budget)
            return Entrant(name, player, jnp.int32(budget), name)
        case "expectimax":
            name = f"expectimax:{budget}"
            player = expectimax_player(environment, budget)
        case kind if kind in BY_RULES:
            name = kind
            player = BY_RULES[kind](environment)
        case kind:
            return _enter_network(kind, budget, agent)
    return Entrant(name, player, None, name)


def _enter_network(kind: str, budget: int, agent: Agent) -> Entrant:
    """The agent's policy head, or its search."""
    kind = without_search(agent, kind)
    if kind in HEADS:
        budget = 0
        name = f"{agent.name}:{kind}"
        player = policy_head(agent, sampled=kind == "head")
    else:
        way = f":{kind}" if kind in SEARCHES else ""
        name = f"{agent.name}{way}@{budget}"
        player = searching(agent, budget, kind=kind)
    config = agent.config
    plays_alike = kind, budget, config.model, config.network, config.search, config.targets, config.algorithm
    if config.algorithm.files:  # it may read any field of the config
        plays_alike = *plays_alike, replace(config, seed=0)
    return Entrant(name, player, agent.params, plays_alike)


def is_run(text: str) -> bool:
    """Whether `text` is a run's directory, a part of one, or a trained agent."""
    file = agent_file.find(text)
    return run_directory.find_saved(Path(text)) is not None if file is None else file.is_file()


def names_a_way_to_play(text: str) -> bool:
    """Whether `text` is a run followed by a colon and a kind of player: RUN:greedy."""
    run, _, kind = _split_budget(text, "@")[0].rpartition(":")
    return not is_run(text) and is_run(run) and (kind in SEARCHES or kind in HEADS)


def check_same_game(one: Config, other: Config, other_run: str) -> None:
    """Raises ValueError if two runs are of different games or board sizes."""
    for name in ("env", "board_size"):
        ours, theirs = getattr(one, name), getattr(other, name)
        if ours != theirs:
            remedy = "; --board-size puts both on one board, if their networks fit it" if name == "board_size" else ""
            raise ValueError(
                f"the runs are of different games: {name} is {ours} here and {theirs} in {other_run}{remedy}"
            )


def _split_budget(text: str, separator: str) -> tuple[str, int | None]:
    """`kind:N` as (kind, N); anything else, also a budget of 0, as (text, None)."""
    kind, _, digits = text.rpartition(separator)
    if not digits.isdecimal() or not int(digits):
        return text, None
    return kind, check_budget(int(digits), f"the budget of {text!r}")
