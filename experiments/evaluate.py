"""Measures a trained agent: python experiments/evaluate.py --run runs/hex-5-seed0 --opponent mcts:1000 --games 256

Colours are balanced and openings varied: every random opening is played twice, with the seats exchanged. The agent
searches without noise. `--json` prints one JSON object instead of a table.

`--oracle` judges moves by exact play instead of by results (tic-tac-toe, Connect Four after 16 moves, Hex up to 5x5).
`--fidelity` compares the learned model with the true rules, depth by depth. `--tournament` takes players in place of
`--run` and `--opponent`: python experiments/evaluate.py --tournament runs/a runs/b@256 runs/a:rules mcts:1000 random
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from experiments.command_line import report_errors
from muzero_jax.arithmetic import devices


@dataclass(frozen=True)
class Arguments:
    """What to measure."""

    run: Path | None = None
    """run directory of the agent, or RUN/versions/N for what it was after iteration N; needed but for a tournament"""
    opponent: str = "random"
    """random, greedy, mcts:N (rollout MCTS with N simulations), rules:N (the run's network searching with the true
    rules), another run of the same game (its directory or RUN/versions/N), or exhaustive (every reply there is; tiny
    games only, and of the other flags just num-simulations applies)"""
    games: int = 256
    """of the match, or of each pair of a tournament; rounded up to a multiple of two games a device"""
    num_simulations: int | None = None
    """search budget of the agent, of a rival run, and of a tournament's players that name none; default: each run's
    evaluation.num_simulations"""
    opening_plies: int | None = None
    """random moves before each game; default: the (first) run's evaluation.opening_plies"""
    seed: int = 0
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """print one JSON object"""
    device: Literal["auto", "cpu", "gpu", "tpu"] = "auto"
    """what to run on; auto: the best that JAX finds"""
    devices: int | None = None
    tournament: tuple[str, ...] = ()
    """a round robin among these players: RUN, RUN@N (N simulations), RUN:rules@N (true rules), RUN:greedy, rules:N,
    greedy (both of the first run), mcts:N, random. RUN is a directory, RUN/versions/N what that run was after iteration
    N, or RUN/versions all of its versions"""
    anchor: str | None = None
    """the tournament's player whose Elo is 0, named as the table does; default: random if it plays, else the first"""
    fidelity: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """how far the learned model drifts from the true rules, in place of a match; positions applies too"""
    unroll_steps: int = 8
    """greatest depth of --fidelity"""
    plot: Path | None = None
    """draws --tournament or --fidelity into this file (.png, .svg, .pdf)"""
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
    num_devices = devices.configure_devices(a.devices, a.device)
    check(a)
    if a.tournament:
        show(*tournament(a, devices.make_mesh(num_devices)), a)
        return 0
    from muzero_jax.evaluation import arena

    assert a.run is not None  # `check` saw to it
    agent = arena.load_agent(a.run, a.num_simulations)
    about = {"run": str(a.run), "iteration": agent.iteration}
    if a.fidelity:
        show(*fidelity(agent, a, about), a)
        return 0
    if a.oracle:
        show(*oracle(agent, a, about), a)
        return 0
    if a.opponent == "exhaustive":
        from muzero_jax.evaluation import exhaustive

        result = exhaustive.examine(agent.parts.environment, agent.player, agent.params)
    else:
        result = match_summary(agent, a, devices.make_mesh(num_devices))
    result |= about | {"opponent": a.opponent, "player": agent.player.name}
    show(result, format_fields(result), a)
    return 0


def check(a: Arguments) -> None:
    """Raises ValueError in one sentence for flags that cannot be followed together."""
    if a.games < 1:
        raise ValueError(f"--games is {a.games}, but must be positive")
    modes = [name for name in ("tournament", "fidelity", "oracle") if getattr(a, name)]
    if len(modes) > 1:
        raise ValueError(f"--{modes[0]} and --{modes[1]} are two questions; ask one at a time")
    if a.tournament and a.run is not None:
        raise ValueError("--tournament takes the run as one of its players; leave --run out")
    if a.run is None and not a.tournament:
        raise ValueError("--run is missing: give the directory of a run, or players to --tournament")
    if a.anchor is not None and not a.tournament:
        raise ValueError("--anchor is for --tournament; add it or leave --anchor out")
    if a.plot is not None and not (a.tournament or a.fidelity):
        raise ValueError("--plot draws what --tournament or --fidelity find; add one of them")
    if a.plot is not None:
        from muzero_jax.evaluation import charts

        charts.check_path(a.plot)


def tournament(a: Arguments, mesh) -> tuple[dict, str]:
    """Plays the round robin; returns its result and the table to print."""
    from muzero_jax.evaluation import charts
    from muzero_jax.evaluation import tournament as tournaments

    field = tournaments.enter(a.tournament, a.num_simulations)
    plies = field.host.config.evaluation.opening_plies if a.opening_plies is None else a.opening_plies
    result = tournaments.play(
        field,
        mesh,
        num_games=a.games,
        opening_plies=plies,
        seed=a.seed,
        anchor=a.anchor,
        report=make_progress_report("matches played"),
    )
    if a.plot is not None:
        charts.plot_tournament(result, a.plot)
    return result, tournaments.format_table(result)


def fidelity(agent, a: Arguments, about: dict) -> tuple[dict, str]:
    """Compares the run's model with the rules; returns the result and the tables to print."""
    from muzero_jax.evaluation import charts, fidelity_evaluation

    result = fidelity_evaluation.examine(
        agent,
        num_positions=a.positions,
        unroll_steps=a.unroll_steps,
        num_simulations=a.num_simulations,
        seed=a.seed,
    )
    if a.plot is not None:
        charts.plot_fidelity(result, a.plot)
    return about | result, fidelity_evaluation.format_table(result)


def show(result: dict, table: str, a: Arguments) -> None:
    """The result as JSON, or the table."""
    print(json.dumps(result) if a.json else table)


def match_summary(agent, a: Arguments, mesh) -> dict:
    """Plays the match and returns its summary, for the agent."""
    import jax

    from muzero_jax.evaluation import arena

    rival, rival_params = arena.load_opponent(a.opponent, agent, a.num_simulations)
    plies = agent.config.evaluation.opening_plies if a.opening_plies is None else a.opening_plies
    match = arena.sharded_match(agent.parts, agent.player, rival, mesh, num_games=a.games, opening_plies=plies)
    return match(agent.params, rival_params, jax.random.key(a.seed))


def oracle(agent, a: Arguments, about: dict) -> tuple[dict, str]:
    """Judges the agent's moves, or another player's, by exact play; returns the result and the tables to print."""
    from muzero_jax.evaluation import oracle_evaluation, oracle_scores

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
    kinds = {name: value for name, value in (result | about).items() if name != "scores"}
    return result | about, format_fields(kinds) + "\n\n" + oracle_scores.format_table(result["scores"])


def make_progress_report(what: str, interval: float = 5.0):
    """`report(done, total)` that says so on stderr every `interval` seconds, and nothing about work done sooner."""
    said_at = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal said_at
        if time.monotonic() - said_at > interval:
            said_at = time.monotonic()
            print(f"{done} of {total} {what}", file=sys.stderr, flush=True)

    return report


def format_fields(result: dict) -> str:
    """One line a field, aligned."""
    texts = {name: f"{value:.3f}" if isinstance(value, float) else str(value) for name, value in result.items()}
    return "\n".join(f"{name:>18}  {text}" for name, text in texts.items())


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "lower --games, --num-simulations or --budgets, or use --device cpu"))
