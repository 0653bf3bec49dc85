"""What mkdocs calls while it builds the site.

Text that the code makes is committed (`fill.py`); only the comments around it are left out here. Each notebook becomes
a page, with the outputs that are committed. Links to files that the site has not lead to the repository, if
pyproject.toml names one; else they are text, because the site is no copy of the code.
"""

import base64
import json
import logging
import os
import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
DOCS, NOTEBOOKS = ROOT / "docs", ROOT / "notebooks"
_MARKS = re.compile(r"<!-- (?:made: .*?|end) -->\n?")
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:)([^)\s#]+)(#[^)\s]*)?\)")
_log = logging.getLogger("mkdocs.hooks.documentation")


def repository() -> str:
    """The project's public address; empty as long as pyproject.toml names none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "").rstrip("/")


def anchor(heading: str, separator: str = "-") -> str:
    """The name that GitHub gives to a heading, so that a link works there and on the site."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


def on_config(config: Any) -> Any:
    """Sets what the configuration file cannot: the repository's address, and how headings are named."""
    if address := repository():
        config.repo_url, config.edit_uri = address, ""
    config.mdx_configs.setdefault("toc", {})["slugify"] = anchor
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for each notebook."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content="\n\n".join(map(as_markdown, cells))))
    return files


def as_markdown(cell: dict[str, Any]) -> str:
    """A notebook's cell: its text, or its code with what was printed and drawn."""
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return source.replace("<details>", '<details markdown="1">')  # else its text is not read as Markdown
    return "\n\n".join([_fenced("python", source), *filter(None, map(_output, cell["outputs"]))])


def _output(output: dict[str, Any]) -> str:
    """An output as Markdown; empty for a widget, which needs a kernel."""
    data = output.get("data", {})
    if "image/svg+xml" in data:
        drawn = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        return f"![output](data:image/svg+xml;base64,{drawn})"
    if "image/png" in data:
        return f"![output](data:image/png;base64,{''.join(data['image/png']).strip()})"
    if output["output_type"] == "display_data":
        return ""
    return _fenced("text", "".join(output.get("text", data.get("text/plain", ""))))


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page without the marks of made text, and with its links out of the site mended."""
    markdown = _MARKS.sub("", markdown)
    uri = page.file.src_uri
    folder = NOTEBOOKS if uri.startswith("notebooks/") else (DOCS / uri).parent
    return _LINK.sub(lambda link: leave(link, folder, repository()), markdown)


def in_site(path: Path) -> Path | None:
    """The page of the site, as a file in docs/, that shows a file or folder of the repository; None if none does."""
    if path.parent == NOTEBOOKS and path.suffix == ".ipynb":
        return DOCS / "notebooks" / f"{path.stem}.md"
    if path.is_relative_to(DOCS):
        return path / "README.md" if (path / "README.md").exists() else path
    return None


def leave(link: re.Match[str], folder: Path, address: str) -> str:
    """A link of a page in `folder`: to a page of the site, or, if there is none, to the repository; else text."""
    text, target, heading = link[1], link[2], link[3] or ""
    path = (folder / target).resolve()
    if (there := in_site(path)) is not None:
        here = DOCS / "notebooks" if folder == NOTEBOOKS else folder
        return f"[{text}]({os.path.relpath(there, here)}{heading})"
    if not path.exists():
        _log.warning("%s links to %s, which does not exist", folder, target)
    name = str(path.relative_to(ROOT))
    if address:
        return f"[{text}]({address}/blob/HEAD/{name}{heading})"
    return f"`{name}`" if text.strip("`/") in (name, path.name) else f"{text} (`{name}`)"
