"""The text that pages take from the code and from result files: python -m scripts.documentation.fill [--check]

A page asks by a comment, `<!-- made: help experiments/play.py --help -->`. The text made for it is written below the
comment, down to `<!-- end -->`, and committed, so that a page is whole on GitHub too. Help, fields and docstrings
come from the code.
"""

import re
import sys
from pathlib import Path

from scripts.documentation import api, reference, tables
from scripts.previewing import page, scaling

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    *(
        f"docs/{name}.md"
        for name in "accelerators results/accelerators api commands config algorithms many-machines tune".split()
    ),
)
MADE = {
    "help": reference.help_text,
    "config": reference.config,
    "session": reference.session,
    "presets": reference.presets,
    "ranges": reference.ranges,
    "api": api.members,
    "games": tables.games,
    "accelerators": page.tables,
    "scaling": scaling.tables,
}
"""What can be asked for, and what makes it from the words that follow."""
BLOCK = re.compile(r"<!-- made: (\w+) ?(.*?) ?-->\n(.*?)<!-- end -->", flags=re.DOTALL)
COMMAND = "python -m scripts.documentation.fill"


def filled(markdown: str) -> str:
    """The page with every made text made anew; what it held between the comments is lost."""

    def block(found: re.Match[str]) -> str:
        opening = found[0].splitlines()[0]
        return f"{opening}\n\n{MADE[found[1]](found[2]).strip()}\n\n<!-- end -->"

    return BLOCK.sub(block, markdown)


def main(arguments: list[str]) -> int:
    """Writes the pages; with --check it writes nothing, names those that are out of date, and returns 1."""
    import jax

    jax.config.update("jax_platforms", "cpu")  # some presets follow the device; the pages show those of a CPU
    stale = []
    for name in PAGES:
        text = (ROOT / name).read_text(encoding="utf-8")
        if (made := filled(text)) != text:
            stale.append(name)
            if "--check" not in arguments:
                (ROOT / name).write_text(made, encoding="utf-8")
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}; {COMMAND} makes them anew", file=sys.stderr)
    return int(bool(stale) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
