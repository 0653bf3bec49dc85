"""The table that docs/algorithms.md takes from the code: what is accepted for each game."""

from collections.abc import Iterable, Sequence

from muzero_jax import presets
from muzero_jax.apps.evaluation.exact_play.solved import SOLVED
from muzero_jax.building import build_environment
from muzero_jax.games.catalogue import GAMES
from muzero_jax.games.game import Game
from muzero_jax.networks.canonical import colour_swap_of
from muzero_jax.networks.model import shows_planes_of_bits
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment

SHOWN_SIZE = 5
"""The board of a game that has several sizes, where a table shows one."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown."""
    return "\n".join(
        f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in (heads, ["---"] * len(heads), *rows)
    )


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
    size, exact = f" {SHOWN_SIZE}x{SHOWN_SIZE}" if game.sizes else "", SOLVED.get(game.name)
    largest = exact and exact.largest_size
    return (
        f"{game.title}{size} (`{game.name}`)",
        f"{environment.num_actions:,}",
        f"`{config.network.kind}`",
        imagined if shows_planes_of_bits(environment) else "refused",
        "accepted" if has_canonical(environment) else "refused",
        f"up to {largest}x{largest}" if largest else "known" if exact else "not known",
    )


def preset(game: Game) -> Config:
    """The preset of a game, on a small board where there is a choice."""
    return presets.preset(game.name, SHOWN_SIZE if game.sizes else None)


def has_canonical(environment: Environment) -> bool:
    """Whether a symmetry exchanges the colours, so that there are canonical observations."""
    try:
        colour_swap_of(environment)
    except ValueError:
        return False
    return True
