"""Hooks of mkdocs, which rewrite links that leave the site, insert the project's address, and render math.

Links to files that are not in the site lead to the repository, if pyproject.toml names one; else they become text. With
an address, the page on installing also begins with `git clone`, and pages of notebooks with a link to Colab. Text
between `<!-- only in the repository -->` and `<!-- end -->` is left out. Formulas become MathML, which browsers show
without a script. Pages that are not in the navigation begin with a way back.
"""

import html
import logging
import os
import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MADE = {ROOT / "notebooks": "notebooks", ROOT / "muzero_jax" / "agents": "agents"}
"""Folders whose notebooks and cards become pages of the site, with the folder of these pages."""
_REPOSITORY = re.compile(r"<!-- only in the repository -->.*?<!-- end -->\n*", re.DOTALL)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:)([^)\s#]+)(#[^)\s]*)?\)")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
BACK = {"results": ("Records by date", "records.md"), "agents": ("Leaderboard", "leaderboard.md")}
"""Folders of pages that are not in the navigation, and the page that lists them."""
_log = logging.getLogger("mkdocs.hooks.documentation")


def repository() -> str:
    """The project's public address; empty if pyproject.toml names none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project.get("urls", {}).get("Repository", "").rstrip("/")


def on_config(config: Any) -> Any:
    """Sets the repository's address from pyproject.toml."""
    if address := repository():
        config.repo_url = address
        config.edit_uri = ""
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page with rewritten links, without what is only for the repository, and with what `with_address` adds."""
    uri = page.file.src_uri
    address = repository()
    folder = next((path for path, name in MADE.items() if uri.startswith(f"{name}/")), (DOCS / uri).parent)
    markdown = _REPOSITORY.sub("", markdown)
    rewritten = _LINK.sub(lambda link: leave(link, folder, address), markdown)
    return with_way_back(with_address(rewritten, uri, address), uri)


def on_page_content(content: str, **_: Any) -> str:
    """The page with its formulas, which pymdownx.arithmatex has marked, as MathML."""
    from latex2mathml.converter import convert

    def formula(found: re.Match[str]) -> str:
        return convert(html.unescape(found[3]).strip(), display="inline" if found[2] == "(" else "block")

    return _FORMULA.sub(formula, content)


def with_way_back(markdown: str, uri: str) -> str:
    """The page with a link to the page that lists it, if it is in no navigation."""
    folder, *deeper = uri.split("/")
    if folder not in BACK:
        return markdown
    title, page = BACK[folder]
    return f"[← {title}]({'../' * len(deeper)}{page})\n\n{markdown}"


def with_address(markdown: str, uri: str, address: str) -> str:
    """The page with `git clone` or a link to Colab, if the project has an address and the page needs one."""
    if address and uri == "install.md":
        clone = f"git clone {address} muzero_jax && cd muzero_jax"
        return markdown.replace("```bash\n", f"```bash\n{clone}\n", 1)
    name = address.removeprefix("https://github.com/")
    if name != address and uri.startswith("notebooks/"):
        file = uri.replace(".md", ".ipynb")
        return f"[Open in Colab](https://colab.research.google.com/github/{name}/blob/HEAD/{file})\n\n{markdown}"
    return markdown


def in_site(path: Path) -> Path | None:
    """The page of the site, as a file in docs/, that shows a file or folder of the repository; None if none does."""
    if path.parent in MADE and path.suffix in (".ipynb", ".md"):
        return DOCS / MADE[path.parent] / f"{path.stem}.md"
    if path.is_relative_to(DOCS):
        return path / "README.md" if (path / "README.md").exists() else path
    return None


def leave(link: re.Match[str], folder: Path, address: str) -> str:
    """A link of a page in `folder`, rewritten to lead to a page of the site, else to the repository; else text."""
    text = link[1]
    target = link[2]
    heading = link[3] or ""
    path = (folder / target).resolve()
    if (there := in_site(path)) is not None:
        here = DOCS / MADE[folder] if folder in MADE else folder
        return f"[{text}]({os.path.relpath(there, here)}{heading})"
    if not path.exists():
        _log.warning("%s links to %s, which does not exist", folder, target)
    name = str(path.relative_to(ROOT))
    if address:
        return f"[{text}]({address}/blob/HEAD/{name}{heading})"
    return f"`{name}`" if text.strip("`/") in (name, path.name) else f"{text} (`{name}`)"
