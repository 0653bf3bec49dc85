"""Exports a run's agent to one file: python scripts/export_agent.py runs/hex-5-seed0 --out agents/hex_5x5.safetensors

The file has the weights and the config, and `muzero_jax.load` reads it. A card in Markdown next to it says how the
agent was trained and how strong it is, from the run's summary.
"""

import shlex
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from muzero_jax.apps.commands import parser
from muzero_jax.apps.commands.command_line import report_errors
from muzero_jax.apps.evaluation import tables
from muzero_jax.config.config import Config
from muzero_jax.config.fields import Fact, differing
from muzero_jax.own import files
from muzero_jax.own.trust import Trust
from muzero_jax.run.machine import configure_devices
from muzero_jax.storage import agent_file, run_directory
from scripts.benchmarks.report import commit, fill, table


@dataclass(frozen=True)
class Arguments:
    """Which run to export, and where to."""

    run: Annotated[Path, Fact(positional=True)]
    """the agent's run directory, or RUN/versions/N for the agent after iteration N"""
    out: Path
    """the .safetensors file to write; its name is the agent's. Files in muzero_jax/agents are the included agents"""
    average: tuple[Path, ...] = ()
    """another agent of the same game and network, for example the one with which the run began; the file gets the mean
    of all weights (Wortsman et al. 2022). May be given more than once"""
    trust_code: bool = False
    """run the Python files that somebody else's run or agent names; read these files first"""


def main(arguments: list[str]) -> int:
    """Runs the command; returns its exit status."""
    a = parser.read(Arguments, arguments, __doc__)
    if a.out.suffix != agent_file.SUFFIX:
        raise ValueError(f"--out {a.out} must end in {agent_file.SUFFIX}")
    configure_devices(1, "cpu")
    from muzero_jax.agent import load_agent

    trust = Trust(all_code=a.trust_code)
    agent = load_agent(a.run, trust=trust)
    others = [load_agent(path, board_size=agent.config.board_size, trust=trust) for path in a.average]
    agent = agent._replace(params=mean_params([agent, *others]))
    card = a.out.with_suffix(".md")
    agent_file.save(a.out, agent.config, agent.params, iteration=agent.iteration, card=card.name)
    files.write_whole(card, make_card(a, agent, read_summary(a.run, agent.iteration)))
    print(f"wrote {a.out} ({a.out.stat().st_size / 1e6:.1f} MB) and {card}")
    return 0


def mean_params(agents: Sequence[Any]) -> Any:
    """The mean of the agents' weights; ValueError if their networks or games differ."""
    import jax

    from muzero_jax.agent import misreading
    from muzero_jax.storage import shapes

    first, *others = agents
    for other in others:
        found = misreading(other, first.config.network, shapes.describe(first.params))
        if other.config.env_name != first.config.env_name:  # its network may have the same shapes
            found = f"it plays {other.config.env_name}, not {first.config.env_name}"
        if found:
            raise ValueError(f"{other.name} and {first.name} have no mean: {found}; it needs one game and one network")
    return jax.tree.map(lambda *leaves: sum(leaves) / len(leaves), *(agent.params for agent in agents))


def read_summary(run: Path, iteration: int) -> dict[str, Any]:
    """The run's summary if it is of the agent's iteration, else an empty dict."""
    saved = run_directory.find_saved(run)
    summary = run_directory.read_summary(saved.run_dir if saved else run)
    return summary if summary.get("iteration") == iteration else {}


def make_card(a: Arguments, agent, summary: dict[str, Any]) -> str:
    """The agent's card, in Markdown."""
    from muzero_jax.games.catalogue import game_of

    config = agent.config
    name = a.out.stem
    size = f" {config.board_size}x{config.board_size}" if config.board_size else ""
    player = name if a.out.resolve().parent == agent_file.SHIPPED else str(a.out)
    return f"""# {name}

An agent for {game_of(agent.environment).title}{size}. It {MODELS[config.model]}. To play against it, or to watch it:

    python experiments/play.py --agent {shlex.quote(player)} --web

## Training

    {command(config)}

{trained(a, agent, summary)}

## Strength

{strength(config, {} if a.average else summary.get("strength", {}))}

## Licence

Apache-2.0, as muzero_jax itself.
"""


MODELS = {
    "learned": "searches with a learned model (MuZero)",
    "learned_outcomes": "searches with a learned model of known chance outcomes (Stochastic MuZero)",
    "learned_legality": "searches with a learned model that predicts the legal moves too",
    "rules": "searches with the ground-truth model (AlphaZero); no model was learned",
    "none": "plays by its policy head, without a search",
}


def command(config: Config) -> str:
    """The command that trains such an agent, with every flag that differs from the game's preset."""
    from muzero_jax import presets

    preset = presets.preset(config.env, config.board_size)
    offline = config.offline and Path(config.offline).name
    config = replace(agent_file.without_folders(config), offline=offline)
    named = {name: getattr(config, name) for name in ("env", "board_size", "init_from")}
    if config.minutes is None:  # another budget replaces the preset's minutes
        named["minutes"] = None
    own = differing(config, replace(preset, **named))
    chosen = ["--env", Path(config.env).name] + (["--board-size", str(config.board_size)] if config.board_size else [])
    words = ["python experiments/train.py", shlex.join(chosen), *own]
    return " \\\n        ".join(textwrap.wrap(" ".join(words), 110, break_long_words=False, break_on_hyphens=False))


def trained(a: Arguments, agent, summary: dict[str, Any]) -> str:
    """Seed, hardware, time and work of the training, as far as the summary has them."""
    lines = [f"seed {agent.config.seed}, iteration {agent.iteration:,}"]
    if agent.config.init_from:
        lines.append(f"began with the weights of another run, {Path(agent.config.init_from).name} (--init-from)")
    if a.average:
        lines.append(f"mean of its weights and those of {', '.join(path.name for path in a.average)} (--average)")
    if summary:
        lines.append(f"{summary['device']}, {summary['precision']}")
        minutes = {purpose: seconds / 60 for purpose, seconds in summary["seconds"].items()}
        training = sum(spent for purpose, spent in minutes.items() if "self-play" in purpose or "learning" in purpose)
        evaluation = minutes.get("evaluation", 0.0)
        lines.append(f"{training:.1f} minutes of self-play and learning, {evaluation:.1f} of evaluation")
        lines.append(", ".join(f"{total:,.0f} {name}" for name, total in summary["totals"].items()))
    lines.append(f"exported at commit {commit() or 'unknown'}")
    return "\n".join(f"- {line}" for line in lines)


def strength(config: Config, matches: dict[str, Any]) -> str:
    """The run's final matches as a table."""
    if not matches:
        return "No final matches of these weights are recorded. `evaluate.py exam` measures them."
    lines = [line.split("  ") for line in tables.strength(matches).splitlines()[1:]]  # two blanks between columns
    heading, *rows = ([cell.strip() for cell in line if cell] for line in lines)
    scores = table(heading[:-1], [row[:-1] for row in rows])
    e = config.evaluation
    searched = f"It searched {e.num_simulations} simulations a move without noise"
    played = "It played by its policy head, without a search" if config.model == "none" else searched
    how = f"{played}, after {e.opening_plies} random moves."
    return f"{scores}\n\n{fill(f'{how} Every opening was played from both sides; mcts:N is rollout MCTS.')}"


if __name__ == "__main__":
    sys.exit(report_errors(main, sys.argv[1:], "close other programs"))
