"""What mkdocs calls while it builds the site: links that leave it are mended, and its address is the project's.

Links to files that the site has not lead to the repository, if pyproject.toml names one; else they are text, because
the site is no copy of the code.
"""

import logging
import os
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS, NOTEBOOKS = ROOT / "docs", ROOT / "notebooks"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:)([^)\s#]+)(#[^)\s]*)?\)")
_log = logging.getLogger("mkdocs.hooks.documentation")


def repository() -> str:
    """The project's public address; empty as long as pyproject.toml names none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "").rstrip("/")


def on_config(config: Any) -> Any:
    """Sets the repository's address, which the configuration file cannot know."""
    if address := repository():
        config.repo_url, config.edit_uri = address, ""
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with its links out of the site mended."""
    uri = page.file.src_uri
    folder = NOTEBOOKS if uri.startswith("notebooks/") else (DOCS / uri).parent
    return _LINK.sub(lambda link: leave(link, folder, repository()), markdown)


def leave(link: re.Match[str], folder: Path, address: str) -> str:
    """A link of a page in `folder`: to a page of the site, or, if there is none, to the repository; else text."""
    text, target, heading = link[1], link[2], link[3] or ""
    path = (folder / target).resolve()
    if not path.exists():
        _log.warning("%s links to %s, which does not exist", folder, target)
    if path.suffix == ".ipynb":
        path = DOCS / "notebooks" / f"{path.stem}.md"  # which `pages` makes
    if path.is_relative_to(DOCS):
        here = DOCS / "notebooks" if folder == NOTEBOOKS else folder
        return f"[{text}]({os.path.relpath(path, here)}{heading})"
    name = str(path.relative_to(ROOT))
    if address:
        return f"[{text}]({address}/blob/HEAD/{name}{heading})"
    return f"`{name}`" if text.strip("`/") in (name, path.name) else f"{text} (`{name}`)"
