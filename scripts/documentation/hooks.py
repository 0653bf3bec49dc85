"""What mkdocs calls while it builds the site.

Text that the code makes is committed (`fill.py`); only the comments around it are left out here. Links that leave
docs/ lead to the repository, if pyproject.toml names one; else they are text, because the site is no copy of the code.
"""

import logging
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
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


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page without the marks of made text, and with its links out of docs/ mended."""
    markdown = _MARKS.sub("", markdown)
    folder = (ROOT / "docs" / page.file.src_uri).parent
    return _LINK.sub(lambda link: leave(link, folder, repository()), markdown)


def leave(link: re.Match[str], folder: Path, address: str) -> str:
    """A link as it is, to a folder's README.md, or, if it leaves docs/, to the repository; else text and file name."""
    text, target, heading = link[1], link[2], link[3] or ""
    path = (folder / target).resolve()
    if path.is_relative_to(ROOT / "docs"):
        return f"[{text}]({target.rstrip('/')}/README.md{heading})" if (path / "README.md").exists() else link[0]
    if not path.exists():
        _log.warning("%s links to %s, which does not exist", folder, target)
    name = str(path.relative_to(ROOT))
    if address:
        return f"[{text}]({address}/blob/HEAD/{name}{heading})"
    return f"`{name}`" if text.strip("`/") in (name, path.name) else f"{text} (`{name}`)"
