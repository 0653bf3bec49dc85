"""Pictures by matplotlib, each a figure of its own, so that nothing global changes; imported late, to start soon."""

import io
from pathlib import Path
from typing import Any

from muzero_jax.own.files import check_writable, write_whole

KINDS = (".png", ".svg", ".pdf")


def check_path(path: Path) -> None:
    """Raises ValueError if no picture can be drawn there; call it before anything that takes long."""
    if path.suffix not in KINDS:
        raise ValueError(f"cannot draw --plot {path}: its name must end in {', '.join(KINDS)}")
    check_writable(path, "--plot")


def save(figure: Any, path: Path, **options: Any) -> None:
    """Writes a figure, with options of matplotlib's `savefig`; what was there before stays until it is drawn."""
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:], dpi=120, **options)
    write_whole(path, picture.getvalue())


def make_figure(size: tuple[float, float]) -> Any:
    """An empty figure of so many inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=size, layout="constrained")
