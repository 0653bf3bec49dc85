"""Measures a trained agent: python experiments/evaluate.py --run runs/hex-5-seed0 --opponent mcts:1000 --games 256

Colours are balanced and openings varied: every random opening is played twice, with the seats exchanged. The agent
searches without noise. `--json` prints one JSON object instead of a table.
"""

import json
import sys
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


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = tyro.cli(Arguments, args=arguments, description=__doc__)
    num_devices = devices.configure_devices(a.devices)
    if a.games < 1:
        raise ValueError(f"--games is {a.games}, but must be positive")
    from muzero_jax import arena

    agent = arena.load_agent(a.run, a.num_simulations)
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


def print_table(result: dict) -> None:
    """One line a field, aligned."""
    for name, value in result.items():
        text = f"{value:.3f}" if isinstance(value, float) else str(value)
        print(f"{name:>18}  {text}")


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:]))
