"""Generates pages of the site that are not in docs/: notebooks, agents' cards, and tables of the config and flags.

mkdocs-gen-files runs this file whenever the site is built, and its output is not committed. Tables are appended to
docs/config.md and docs/commands.md, so that links to these pages work in the repository too.
"""

import base64
import contextlib
import dataclasses
import io
import json
import os
import re
import runpy
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import jax

from muzero_jax import presets
from muzero_jax.apps.commands import measures
from muzero_jax.apps.commands.parser import Flag, flags_of
from muzero_jax.apps.study import tuning
from muzero_jax.config.config import Config
from muzero_jax.config.fields import allowed, fields_of, value_at
from muzero_jax.config.session import Session

ROOT = Path(__file__).resolve().parents[2]
FAMILIES: dict[str, Callable[[], Config]] = {
    "Hex 5x5": lambda: presets.hex_any(5),
    "Hex 9x9": lambda: presets.hex_any(9),
    "tic-tac-toe": presets.GAMES["tic_tac_toe"],
    "Connect Four": presets.GAMES["connect_four"],
    "Othello": presets.GAMES["othello"],
    "Go 9x9": presets.GAMES["go_9x9"],
    "2048": presets.GAMES["2048"],
    "backgammon": presets.GAMES["backgammon"],
    "towers": lambda: presets.tower("shogi", num_bins=3),
}
"""One preset of each family. Shogi and Go 19x19 have the towers' preset."""
HELP = (
    *(f"experiments/evaluate.py {name}" for name in measures.COMMANDS),
    "experiments/doctor.py",
    "experiments/tune.py",
    "experiments/play.py",
    *(f"scripts/{name}.py" for name in "reproduce export_agent export_onnx benchmark hardware_report preview".split()),
)
"""The commands whose help the page shows."""


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table as Markdown."""
    cells = (heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows))
    return "\n".join(f"| {' | '.join(row)} |" for row in cells) + "\n"


def config_page() -> Iterator[str]:
    """The fields of the config, in one table per group, and the ranges of `tune.py`."""
    base = Config()
    flags = flags_of(base)
    own = {title: {flag.name: flag.default for flag in flags_of(make())} for title, make in FAMILIES.items()}
    groups = [field.name for field in dataclasses.fields(base) if dataclasses.is_dataclass(getattr(base, field.name))]
    for group in ("", *groups):
        record = getattr(base, group) if group else base
        yield f"## {group.replace('_', ' ').capitalize() or 'The run'}\n"
        yield f"{type(record).__doc__}\n" if group else ""
        rows = ((*cells(f), others(f, own), f.sentence) for f in flags if f.field.name.rpartition(".")[0] == group)
        yield table(("flag", "type", "default", "presets", "meaning"), map(linked, rows))
    yield "## What `tune.py` varies\n"
    for title, config in (("small boards, here Hex 4x4", presets.hex_any(4)), ("towers", FAMILIES["towers"]())):
        yield table((title, "preset", "from", "to", "so far"), ranges(config))


def commands_page() -> Iterator[str]:
    """The flags of one call of `train.py` as a table, and the help of the other commands."""
    yield "## Flags\n\n### experiments/train.py\n"
    rows = ((*cells(flag), flag.sentence) for flag in flags_of(Session()))
    yield table(("flag", "type", "default", "meaning"), map(linked, rows))
    for command in HELP:
        yield f"### {command}\n\n{fenced('text', help_text(command))}\n"


def cells(flag: Flag) -> tuple[str, str, str]:
    """The cells of a flag: its names, type with range, and default."""
    short = f", `{flag.field.fact.short}`" if flag.field.fact.short else ""
    return f"`{flag.name}`{short}", allowed(flag.field.hint) if flag.value else "a switch", shown(flag.default)


def others(flag: Flag, own: dict[str, dict[str, Any]]) -> str:
    """The presets' defaults that differ from the config's, with the families that share each value."""
    by_value: dict[str, list[str]] = {}
    for title, defaults in own.items():
        if defaults[flag.name] != flag.default and flag.name != "--env":
            by_value.setdefault(shown(defaults[flag.name]), []).append(title)
    return "; ".join(f"{value} ({', '.join(titles)})" for value, titles in by_value.items())


def shown(value: Any) -> str:
    """A default as users would type it; a switch is on or off."""
    if isinstance(value, bool):
        return "on" if value else "off"
    text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return f"`{text}`" if text else ""


def linked(row: Sequence[str]) -> list[str]:
    """The row with links to the pages that its last cell names, by their titles; other Markdown there is escaped."""
    meaning = row[-1].replace("<", "&lt;").replace("[", "\\[")
    return [*row[:-1], re.sub(r"docs/([\w-]+\.md)", lambda page: f"[{title_of(page[1])}]({page[1]})", meaning)]


def title_of(page: str) -> str:
    """The title of a page of docs/, by its file's name."""
    return (ROOT / "docs" / page).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def ranges(config: Config) -> Iterator[Sequence[str]]:
    """A row for each field that `tune.py` varies."""
    for name, values in tuning.space(config, {}).items():
        field = next(field for field in fields_of(Config) if field.name == name)
        numbers = (f"{number:.3g}" for number in (value_at(config, name), *values[:2]))
        yield f"`{field.flag}`", *numbers, field.fact.tuned.so_far if field.fact.tuned else ""


def help_text(command: str) -> str:
    """The output of a command for `--help`."""
    script, *words = command.split()
    printed = io.StringIO()
    argv = sys.argv
    sys.argv = [script, *words, "--help"]
    os.environ["COLUMNS"] = "100"
    try:
        with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
            runpy.run_path(str(ROOT / script), run_name="__main__")
    finally:
        sys.argv = argv
    return printed.getvalue()


def notebook(path: Path) -> str:
    """A notebook as a page, with its committed outputs."""
    return "\n\n".join(map(cell_text, json.loads(path.read_text(encoding="utf-8"))["cells"]))


def cell_text(cell: dict[str, Any]) -> str:
    """A cell as Markdown: its text, or its code with its outputs."""
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return source.replace("<details>", '<details markdown="1">')  # so that its text is read as Markdown
    return "\n\n".join([fenced("python", source), *filter(None, map(output_text, cell["outputs"]))])


def output_text(output: dict[str, Any]) -> str:
    """An output as Markdown; empty for a widget, which needs a kernel."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        drawn = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        return f"![output](data:image/svg+xml;base64,{drawn})"
    if "image/png" in data:
        return f"![output](data:image/png;base64,{''.join(data['image/png']).strip()})"
    if output["output_type"] == "display_data":
        return ""
    return fenced("text", "".join(output.get("text", data.get("text/plain", ""))))


def fenced(language: str, text: str) -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def write() -> None:
    """Gives mkdocs the pages."""
    import mkdocs_gen_files

    jax.config.update("jax_platforms", "cpu")  # some presets follow the device; the pages show those of a CPU
    for name, made in (("config.md", config_page()), ("commands.md", commands_page())):
        with mkdocs_gen_files.open(name, "a") as page:
            page.write("\n" + "\n".join(made))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        with mkdocs_gen_files.open(f"notebooks/{path.stem}.md", "w") as page:
            page.write(f"[Download this notebook]({path.name})\n\n{notebook(path)}")
        with mkdocs_gen_files.open(f"notebooks/{path.name}", "w") as file:
            file.write(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "muzero_jax/agents").glob("*.md")):
        with mkdocs_gen_files.open(f"agents/{path.name}", "w") as page:
            page.write(path.read_text(encoding="utf-8"))


if __name__ == "<run_path>":  # the name that mkdocs-gen-files gives it
    write()
