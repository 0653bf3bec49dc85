"""The tables that pages take from the code and from result files: the README's results, and what is known of each game.

No row of results mixes two machines: it is of an agent's card, of a study's scores, or of a dated record, which stays
as it is. A figure that a record does not hold leaves an empty cell. Brackets are 95% intervals over the games of one
run; of three seeds the lowest and the highest score are shown.
"""

import csv
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from muzero_jax import presets
from muzero_jax.building import build_environment
from muzero_jax.games.catalogue import GAMES
from muzero_jax.games.game import Game
from muzero_jax.networks.canonical import colour_swap_of
from muzero_jax.networks.model import shows_planes_of_bits
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment

ROOT = Path(__file__).resolve().parents[2]
RESULTS, AGENTS = ROOT / "docs/results", ROOT / "muzero_jax/agents"
AMD = "[AMD](docs/results/2026-11-21-two-cpu-cores.md)"
INTEL = "[Intel](docs/results/2026-11-23-two-intel-cores.md)"
HEX_5X5 = "[November](docs/results/2026-11-24-hex-5x5.md)"
LARGER = "[hex-sizes](docs/results/hex-sizes/README.md)"
GROWN = "[grown](docs/results/2026-11-25-agents.md)"
SHOWN_SIZE = 5
"""The board of a game that has several sizes, where a table shows one."""


class Row(NamedTuple):
    """One trained agent, or several seeds of one setting."""

    game: str
    trained: str  # minutes or frames
    machine: str
    seeds: str  # how many
    score: str  # against rollout MCTS with 1,000 simulations
    others: str
    source: str  # a link, as README.md writes it, or the name of an agent that comes with the code


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown."""
    return "\n".join(
        f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in (heads, ["---"] * len(heads), *rows)
    )


def results(_: str = "") -> str:
    """The table of all trained agents."""
    return table(("game", "trained for", "cores", "seeds", "against MCTS 1,000", "besides", "record"), rows())


def rows() -> list[Row]:
    """Game by game; the agents that come with the code are those whose record is a card."""
    return [
        Row("Tic-tac-toe", "4 minutes", "2 AMD", "3", "", "3,191 of 3,191 right", AMD),
        of_card("tic_tac_toe", "Tic-tac-toe"),
        Row("Hex 4x4", "8 minutes", "2 AMD", "1", "86.9% [85.4, 88.3]", "99.6% of wins kept", AMD),
        Row(
            game="Hex 5x5, today's preset",
            trained="15 minutes",
            machine="2 Intel",
            seeds="3",
            score="95.2%, from 94.5 to 96.5",
            others="98.7% of wins kept",
            source=HEX_5X5,
        ),
        of_seeds("one-side", "Hex 5x5, today's preset"),
        Row("Hex 5x5", "15 minutes", "2 AMD", "1", "95.2% [93.7, 96.4]", "98.1% of wins kept", AMD),
        of_card("hex_5x5", "Hex 5x5"),
        of_card("hex_5x5_rules", "Hex 5x5, AlphaZero"),
        of_card("hex_6x6", "Hex 6x6, today's preset"),
        of_card("hex_7x7", "Hex 7x7, today's preset"),
        Row(
            game="Hex 9x9, after 5x5 and 7x7",
            trained="8 minutes",
            machine="1 Intel",
            seeds="1",
            score="85.9% [75.4, 92.4]",
            others="100% against MCTS 100",
            source=GROWN,
        ),
        Row("Hex 9x9, after 7x7", "1.0 M + 204,800 frames", "1 Intel", "1", "100% [97.1, 100]", "", LARGER),
        of_card("hex", "Hex 11x11, after 7x7 and 9x9"),
        of_card("connect_four", "Connect Four"),
        Row("Connect Four", "30 minutes", "2 AMD", "1", "90.0% [88.1, 91.7]", "94.6% of wins kept", AMD),
        Row("Connect Four", "30 minutes, 10.8 M frames", "2 Intel", "1", "91.6% [87.6, 94.4]", "", INTEL),
        of_card("othello", "Othello"),
        of_card("go_9x9", "Go 9x9"),
    ]


def of_card(agent: str, title: str) -> Row:
    """The card of a trained agent: one seed."""
    text = (AGENTS / f"{agent}.md").read_text(encoding="utf-8")
    scores = {name: rest for name, *rest in re.findall(r"^\| (\S+) \| (\S+%) \| (\S+) to (\S+) \|", text, re.MULTILINE)}
    spent = re.search(r"([\d.]+) minutes of self-play and learning, ([\d.]+) of evaluation", text)
    minutes = f"{float(spent[1]) + float(spent[2]):.0f} minutes, " if spent else ""
    perfect = re.search(r"in all ([\d,]+) positions", text)
    hardest, budget = ("mcts:10000", "10,000") if "mcts:10000" in scores else ("mcts:100", "100")
    return Row(
        game=title,
        trained=minutes + moves(*re.findall(r"([\d,]+) frames", text)),
        machine=machine(text),
        seeds="1",
        score="{} [{}, {}]".format(*scores["mcts:1000"]) if "mcts:1000" in scores else "",
        others=f"all {perfect[1]} right" if perfect else f"{scores[hardest][0]} against MCTS {budget}",
        source=f"`{agent}`",
    )


def of_seeds(name: str, title: str) -> Row:
    """Several seeds of one setting, from the scores of a result that `scripts/reproduce.py` can train again."""
    with (RESULTS / name / "scores.csv").open(encoding="utf-8") as file:
        final = [row for row in csv.DictReader(file) if row["is_final"] == "True"]

    def scores(opponent: str) -> list[float]:
        return [100 * float(row["score"]) for row in final if row["opponent"] == opponent]

    hard, study = scores("mcts:1000"), json.loads((RESULTS / name / "study.json").read_text(encoding="utf-8"))
    return Row(
        game=title,
        trained=moves(final[0]["frames"]),
        machine=machine(study["made"]["hardware"]),
        seeds=str(len(hard)),
        score=f"{mean(hard):.1f}%, from {min(hard):.1f} to {max(hard):.1f}",
        others=f"{mean(scores('mcts:100')):.1f}% against MCTS 100",
        source=f"[{name}](docs/results/{name}/README.md)",
    )


def machine(text: str) -> str:
    """How many of whose cores a run had."""
    if found := re.search(r"\((Intel|AMD)\(R\).*?(\d+) cores?\)", text):
        return f"{found[2]} {found[1]}"
    found = re.search(r"One core (?:of|or less)", text, re.IGNORECASE)
    assert found, "no processor is named"
    return "1 Intel"


def moves(*frames: str) -> str:
    """Numbers of frames, those of a million and more in millions."""
    numbers = [int(number.replace(",", "")) for number in frames]
    return f"{' + '.join(f'{n / 1e6:.1f} M' if n >= 1e6 else f'{n:,}' for n in numbers)} frames"


def games(_: str = "") -> str:
    """The table of games, whose networks are tried and not assumed."""
    heads = ("game", "actions", "preset's network", "imagined boards", "canonical", "exact play")
    alike = [name for name in GAMES if name.startswith("minatar-")][1:]  # the five differ in nothing that is told here
    return table(heads, (of_game(game) for name, game in GAMES.items() if name not in alike))


def of_game(game: Game) -> tuple[str, ...]:
    """What is accepted for a game: networks that imagine boards, canonical observations, exact play."""
    config = preset(game)
    environment = build_environment(config)
    imagined = "accepted" if environment.chance is None else "without codes"  # of chance, which they have no use for
    size, largest = f" {SHOWN_SIZE}x{SHOWN_SIZE}" if game.sizes else "", game.exact and game.exact.largest_size
    return (
        f"{game.title}{size} (`{game.name}`)",
        f"{environment.num_actions:,}",
        f"`{config.network.kind}`",
        imagined if shows_planes_of_bits(environment) else "refused",
        "accepted" if has_canonical(environment) else "refused",
        f"up to {largest}x{largest}" if largest else "known" if game.exact else "not known",
    )


def preset(game: Game) -> Config:
    """The preset of a game, on a small board where there is a choice."""
    return presets.preset(game.name, SHOWN_SIZE if game.sizes else None)


def has_canonical(environment: Environment) -> bool:
    """Whether a symmetry exchanges the colours, so that every position can be shown from one side."""
    try:
        colour_swap_of(environment)
    except ValueError:
        return False
    return True
