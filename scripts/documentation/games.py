"""The table of games in docs/algorithms.md: what the code says of each, with its networks tried and not assumed."""

from muzero_jax import presets
from muzero_jax.building import build_environment
from muzero_jax.games.catalogue import GAMES
from muzero_jax.games.game import Game
from muzero_jax.networks.canonical import colour_swap_of
from muzero_jax.networks.model import shows_planes_of_bits
from muzero_jax.storage.config import Config
from muzero_jax.types import Environment

SHOWN_SIZE = 5
"""The board of a game that has several sizes, where a table shows one."""


def table(_: str = "") -> str:
    """One row a game."""
    heads = ("game", "actions", "preset's network", "imagined boards", "canonical", "exact play")
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ("---",) * len(heads), *map(row, GAMES.values())))


def row(game: Game) -> tuple[str, ...]:
    """What is accepted for a game: networks that imagine boards, canonical observations, exact play."""
    config = preset(game)
    environment = build_environment(config)
    size = f" {SHOWN_SIZE}x{SHOWN_SIZE}" if game.sizes else ""
    return (
        f"{game.title}{size} (`{game.name}`)",
        f"{environment.num_actions:,}",
        f"`{config.network.kind}`",
        "accepted" if shows_planes_of_bits(environment) else "refused",
        "accepted" if has_canonical(environment) else "refused",
        exact(game),
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


def exact(game: Game) -> str:
    """The boards of which exact play is known."""
    if not game.exact:
        return "not known"
    size = game.exact.largest_size
    return f"up to {size}x{size}" if size else "known"
