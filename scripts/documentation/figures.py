"""The README's table of results, made from result files and agents' cards alone.

Each row reads one file, so no row mixes two machines. A figure that a file does not hold leaves an empty cell.
Brackets are 95% intervals over the games of one run; of three seeds the lowest and the highest score are shown.
"""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RESULTS, AGENTS = ROOT / "docs/results", ROOT / "muzero_jax/agents"
AMD, INTEL = "2026-11-21-two-cpu-cores.md", "2026-11-23-two-intel-cores.md"
LARGER = "2026-11-23-hex-sizes.md"
SIZES, ONE_SIDE = "hex-sizes/README.md", "one-side/scores.csv"
SEARCHES = RESULTS / "benchmark-two-intel-cores/search.json"
OURS_TO_MCTX = ("own search", "mctx")


class Row(NamedTuple):
    """One trained agent, or several seeds of one setting."""

    game: str
    trained: str  # minutes or frames
    machine: str
    seeds: str  # how many
    score: str  # against rollout MCTS with 1,000 simulations
    others: str
    source: str  # a link, as README.md writes it, or the name of an agent that comes with the code


def table(_: str = "") -> str:
    """The rows of all games as Markdown."""
    heads = ("game", "trained for", "cores", "seeds", "against MCTS 1,000", "besides", "record")
    lines = [heads, ("---",) * len(heads), *rows()]
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)


def rows() -> Iterator[Row]:
    """Game by game; the agents that come with the code are those whose record is a card."""
    yield from of_record(AMD, "tic-tac-toe", "Tic-tac-toe")
    yield of_card("tic_tac_toe", "Tic-tac-toe, AlphaZero")
    yield from of_record(AMD, "Hex 4x4")
    yield of_seeds(ONE_SIDE, "Hex 5x5, today's preset")
    yield from of_record(AMD, "Hex 5x5", minutes="15")
    yield of_card("hex_5x5", "Hex 5x5")
    yield of_card("hex_5x5_rules", "Hex 5x5, AlphaZero")
    yield of_size("AdamW", "Hex 6x6, AdamW")
    yield of_card("hex_6x6", "Hex 6x6, today's preset")
    yield of_card("hex_7x7", "Hex 7x7, today's preset")
    yield of_card("hex", "Hex 9x9, after 7x7")
    yield untrained("B", "11x11", "Hex 11x11, the same agent")
    yield of_card("connect_four", "Connect Four")
    yield from of_record(AMD, "Connect Four")
    yield from of_record(INTEL, "Connect Four")
    yield from of_record(AMD, "Othello")


def of_record(name: str, game: str, title: str = "", minutes: str = "") -> Iterator[Row]:
    """The rows of a game in the table *Strength* of a dated record."""
    text = read(RESULTS / name)
    for cells in tables(text):
        found = re.match(rf"(?:\[{game}\]|{game})(?:[(,]|$)", cells.get("game", cells.get("game, command", "")))
        if not found or (minutes and cells["minutes"] != minutes):
            continue
        frames = f", {moves(cells['frames'])}" if "frames" in cells else ""
        score = next(value for key, value in cells.items() if key.endswith("MCTS 1,000"))
        kept = cells.get("solved positions kept", "")
        yield Row(
            game=title or game,
            trained=f"{cells['minutes']} minutes{frames}",
            machine=machine(text),
            seeds=str(len(cells.get("seed", "0").split(", "))),
            score=score,
            others=right(kept.split(" [")[0]),
            source=f"[{'AMD' if name == AMD else 'Intel'}](docs/results/{name})",
        )


def of_card(agent: str, title: str) -> Row:
    """The card of a trained agent: one seed."""
    text = read(AGENTS / f"{agent}.md")
    scores = {cells["opponent"]: cells for cells in tables(text)}
    spent = re.search(r"([\d.]+) minutes of self-play and learning, ([\d.]+) of evaluation", text)
    minutes = f"{float(spent[1]) + float(spent[2]):.0f} minutes, " if spent else ""
    perfect = re.search(r"in all ([\d,]+) positions", text)
    frames = moves(*re.findall(r"([\d,]+) frames", text))
    hardest = "mcts:10000" if "mcts:10000" in scores else "mcts:100"
    budget = f"{int(hardest.removeprefix('mcts:')):,}"
    return Row(
        game=title,
        trained=f"{minutes}{frames}",
        machine=machine(text),
        seeds="1",
        score=interval(scores["mcts:1000"]),
        others=f"all {perfect[1]} right" if perfect else f"{scores[hardest]['score']} against MCTS {budget}",
        source=f"`{agent}`",
    )


def of_seeds(name: str, title: str) -> Row:
    """Several seeds of one setting, from the scores of a result that `scripts/reproduce.py` can train again."""
    with (RESULTS / name).open(encoding="utf-8") as file:
        final = [row for row in csv.DictReader(file) if row["is_final"] == "True"]

    def scores(opponent: str) -> list[float]:
        return [100 * float(row["score"]) for row in final if row["opponent"] == opponent]

    hard = scores("mcts:1000")
    study = (RESULTS / name).parent
    return Row(
        game=title,
        trained=moves(final[0]["frames"]),
        machine=machine(json.loads(read(study / "study.json"))["made"]["hardware"]),
        seeds=str(len(hard)),
        score=f"{mean(hard):.1f}%, from {min(hard):.1f} to {max(hard):.1f}",
        others=f"{mean(scores('mcts:100')):.1f}% against MCTS 100",
        source=f"[{study.name}](docs/results/{study.name}/README.md)",
    )


def of_size(run: str, title: str) -> Row:
    """A run of the dated record of larger boards."""
    text = read(RESULTS / LARGER)
    cells = next(cells for cells in tables(text) if cells.get("run", "").startswith(run))
    return Row(
        game=title,
        trained=f"{cells['minutes']} minutes, {moves(cells['frames'])}",
        machine=machine(text),
        seeds="1",
        score=cells["MCTS 1,000"],
        others=f"{cells['MCTS 10,000'].split(' [')[0]} against MCTS 10,000",
        source=f"[sizes](docs/results/{LARGER})",
    )


def untrained(agent: str, board: str, title: str) -> Row:
    """An agent of the record of larger boards, on a board that it never saw."""
    text = read(RESULTS / SIZES)
    asked = {"agent": agent, "board": board, "opponent": "MCTS 1,000"}
    cells = next(cells for cells in tables(text) if asked.items() <= cells.items())
    source = f"[hex-sizes](docs/results/{SIZES})"
    return Row(title, "none there", machine(text), "1", cells["score"], f"{cells['games']} games", source)


def search_speeds() -> dict[str, tuple[float, float]]:
    """For each policy the lowest and the highest speed of our tree search, in that of mctx."""
    speeds: dict[str, list[float]] = {}
    for result in json.loads(read(SEARCHES))["results"]:
        ratio = next(part for part in result["ratios"] if (part["numerator"], part["denominator"]) == OURS_TO_MCTX)
        speeds.setdefault(result["case"].split(",")[0], []).append(ratio["median"])
    return {policy: (round(min(found), 1), round(max(found), 1)) for policy, found in speeds.items()}


def tables(text: str) -> Iterator[dict[str, str]]:
    """The rows of all tables of a page, by their heads, without bold type."""
    for block in re.findall(r"(?:^\|.*\|\n)+", text.replace("**", ""), flags=re.MULTILINE):
        heads, _, *body = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        yield from (dict(zip(heads, cells, strict=True)) for cells in body)


def machine(text: str) -> str:
    """The processor's maker and how many of its cores a run had, from the first sentence that says it."""
    if found := re.search(r"\((Intel|AMD)\(R\).*?(\d+) cores?\)", text):
        return f"{found[2]} {found[1]}"
    if re.search(r"[Oo]ne core (?:of|or less)|Each run had one core", text):
        return "1 Intel"
    found = re.search(r"Two (Intel|AMD)", text)
    assert found, "no processor is named"
    return f"2 {found[1]}"


def moves(*frames: str) -> str:
    """Numbers of frames, those of a million and more in millions."""
    numbers = [int(number.replace(",", "")) for number in frames]
    return f"{' + '.join(f'{n / 1e6:.1f} M' if n >= 1e6 else f'{n:,}' for n in numbers)} frames"


def right(kept: str) -> str:
    """How many solved positions were played rightly: a share of those that can be won and lost, or a count of all."""
    if not kept:
        return ""
    return f"{kept} right" if " of " in kept else f"{kept} of wins kept"


def interval(cells: dict[str, str]) -> str:
    """A card's score and interval, in the brackets of the records."""
    low, high = cells["95% interval"].split(" to ")
    return f"{cells['score']} [{low}, {high}]"


def read(path: Path) -> str:
    """A file's text."""
    return path.read_text(encoding="utf-8")
