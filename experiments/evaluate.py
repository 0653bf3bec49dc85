"""Measures a trained agent: python experiments/evaluate.py --run runs/hex-5-seed0 --opponent mcts:1000 --games 256

Colours are balanced and openings varied: every random opening is played twice, with the seats exchanged. The agent
searches without noise. `--json` prints one JSON object instead of a table.

`--oracle` judges moves by exact play instead of by results (tic-tac-toe, Connect Four after 16 moves, Hex up to 5x5).
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments.command_line import report_errors
from muzero_jax import devices


@dataclass(frozen=True)
class Arguments:
    """What to measure."""

    run: Path
    """run directory of the agent"""
    opponent: str = "random"
    """random, greedy, mcts:N (rollout MCTS with N simulations), another run directory of the same game, or exhaustive
    (every reply there is; tiny games only, and of the other flags just num-simulations applies)"""
    games: int = 256
    """rounded up to a multiple of two games a device"""
    num_simulations: int | None = None
    """search budget of the agent, and of a rival run; default: each run's evaluation.num_simulations"""
    opening_plies: int | None = None
    """random moves before each game; default: the run's evaluation.opening_plies"""
    seed: int = 0
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """print one JSON object"""
    devices: int | None = None
    oracle: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """judge moves by exact play, in place of a match; the flags from here on are for this, and of those above only run,
    num-simulations (the one budget), seed and json apply"""
    player: str = "agent"
    """whose moves: agent (the policy head, and search at every budget), random, greedy or mcts:N"""
    positions: int = 500
    """at most this many positions, half from random games and half from the agent's; tic-tac-toe is judged on all"""
    budgets: tuple[int, ...] | None = None
    """simulations a move of the agent's searches; default: 16 64 256"""


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = tyro.cli(Arguments, args=arguments, description=__doc__)
    num_devices = devices.configure_devices(a.devices)
    if a.games < 1:
        raise ValueError(f"--games is {a.games}, but must be positive")
    from muzero_jax import arena

    agent = arena.load_agent(a.run, a.num_simulations)
    if a.oracle:
        print_oracle_summary(oracle_summary(agent, a), as_json=a.json)
        return 0
    if a.opponent == "exhaustive":
        result = exhaustive_summary(agent)
    else:
        result = match_summary(agent, a, devices.make_mesh(num_devices))
    result |= {"run": str(a.run), "iteration": agent.iteration, "opponent": a.opponent, "player": agent.player.name}
    if a.json:
        print(json.dumps(result))
    else:
        print_table(result)
    return 0


def match_summary(agent, a: Arguments, mesh) -> dict:
    """Plays the match and returns its summary, for the agent."""
    import jax

    from muzero_jax import arena

    rival, rival_params = arena.load_opponent(a.opponent, agent, a.num_simulations)
    plies = agent.config.evaluation.opening_plies if a.opening_plies is None else a.opening_plies
    match = arena.sharded_match(agent.parts, agent.player, rival, mesh, num_games=a.games, opening_plies=plies)
    return match(agent.params, rival_params, jax.random.key(a.seed))


def exhaustive_summary(agent) -> dict:
    """Walks every reply by every opponent, the agent as either colour; counts distinct final moves, not games."""
    from muzero_jax import exhaustive

    results = [
        exhaustive.walk(agent.parts.environment, agent.player, agent.params, moves_first=m) for m in (True, False)
    ]
    wins, draws, losses, positions = (sum(column) for column in zip(*results, strict=True))
    total = wins + draws + losses
    return {
        "wins": wins,
        "draws": draws,
        "losses": losses,
        "games": total,
        "score": (wins + draws / 2) / total,
        "losses_as_first": results[0].losses,
        "losses_as_second": results[1].losses,
        "positions": positions,
    }


def oracle_summary(agent, a: Arguments) -> dict:
    """Judges the agent's moves, or another player's, by exact play."""
    from muzero_jax import oracle_evaluation

    if a.budgets is not None and a.num_simulations is not None:
        raise ValueError("give --budgets or --num-simulations, not both: the second is one budget")
    if a.player == "agent":
        default = oracle_evaluation.BUDGETS if a.num_simulations is None else (a.num_simulations,)
        budgets = default if a.budgets is None else a.budgets
        candidates = oracle_evaluation.agent_candidates(agent, budgets)
    else:
        candidates = [oracle_evaluation.named_candidate(a.player, agent)]
    result = oracle_evaluation.examine(
        agent, candidates, num_positions=a.positions, seed=a.seed, report=make_progress_report("positions solved")
    )
    return result | {"run": str(a.run), "iteration": agent.iteration}


def make_progress_report(what: str, interval: float = 5.0):
    """`report(done, total)` that says so on stderr every `interval` seconds, and nothing about work done sooner."""
    said_at = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal said_at
        if time.monotonic() - said_at > interval:
            said_at = time.monotonic()
            print(f"{done} of {total} {what}", file=sys.stderr, flush=True)

    return report


def print_oracle_summary(result: dict, *, as_json: bool) -> None:
    """The kinds of positions, then one line a player."""
    from muzero_jax.oracles import score

    if as_json:
        print(json.dumps(result))
        return
    print_table({name: value for name, value in result.items() if name != "scores"})
    print("\n" + score.format_table(result["scores"]))


def print_table(result: dict) -> None:
    """One line a field, aligned."""
    for name, value in result.items():
        text = f"{value:.3f}" if isinstance(value, float) else str(value)
        print(f"{name:>18}  {text}")


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:]))
