"""The changes that a kind of device makes to a preset."""

from dataclasses import replace

from muzero_jax.storage.config import Config

TIMES = {
    "small GPU": {"observation": 4},
    "large GPU": {"observation": 16, "fully_convolutional": 4, "tower": 8},
    "TPU": {"observation": 4},
}
"""Times as many games and windows as for a CPU, by kind of network, so that computing takes about as long as launching
each kernel alone, or longer. By the preview a T4 is then 100% busy, an H100 85 to 100% (tic-tac-toe 52%). CUDA graphs,
which need fewer launches, are left out there. Never timed on a GPU or a TPU, and nobody trained with so many games."""
OWN = {("small GPU", "fully_convolutional")}
"""Where a GPU also searches with `own`, because it is memory-bound there and `loop_free` moves more bytes. By the
preview larger Hex on a T4 is at best 14,427 frames/s so, moves imagined in turn; 13,661 abreast; 12,723 with
`loop_free` too."""


def suited(config: Config, kind: str, *, has_chance: bool = False) -> tuple[Config, str]:
    """The settings for a kind of device, at the same replay ratio, and in words what was chosen and why.

    With chance the search stays `own`: only it plans with the ground-truth model of such games.
    """
    if kind == "CPU":
        return config, ""
    times = TIMES[kind].get(config.network.kind, 1)
    play = replace(config.self_play, num_envs=times * config.self_play.num_envs)
    optimiser = replace(config.optimiser, batch_size=times * config.optimiser.batch_size)
    has_own = kind == "TPU" or has_chance or (kind, config.network.kind) in OWN  # a TPU never waits for the host
    engine = "own" if has_own else "loop_free"
    search = replace(config.search, engine=engine)
    chosen = f"{play.num_envs:,} games, batches of {optimiser.batch_size:,}, search {engine}"
    why = "by scripts/preview.py, never timed; --autotune goes on from there"
    return replace(config, self_play=play, optimiser=optimiser, search=search), f"for a {kind}: {chosen} ({why})"
