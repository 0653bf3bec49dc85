"""The page that plays without a server: that of `play.py --web`, the agent, and onnxruntime-web from npm.

A browser lets a page from a disk fetch nothing, not even its neighbours. So what is no script becomes one: the networks
and the WebAssembly program stand in JavaScript as base64. Nor may its scripts import one another, so the modules of the
page become one script, and `answers.js` says what the server would.
"""

import base64
import gzip
import json
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from muzero_jax.apps.play.web_server import PAGE

ASSETS = Path(__file__).resolve().parent
OWN = ("games.js", "search.js", "answers.js")
SCRIPTS = ("ort.js", "runtime.js", "agent.js", *OWN, "page.js")
"""In the order in which they run."""
START, IMPORT = "app.js", re.compile(r'^import .* from "\./(.*)";$', re.MULTILINE)
PACKAGE, VERSION = "onnxruntime-web", "1.30.0"
SCRIPT, MODULE, WASM = "ort.wasm.min.js", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"
PATIENCE = 300  # seconds for a download of 33 MB


def write(out: Path, agent: dict[str, Any], networks: dict[str, bytes], runtime: Path | None = None) -> None:
    """Writes index.html and its scripts; `agent` is what the search must know, `runtime` npm's archive if it is here.

    Raises ValueError where npm is missing or cannot fetch the package.
    """
    with tempfile.TemporaryDirectory() as folder:
        _write_runtime(out, runtime or fetch(Path(folder)))
    for folder, names in ((ASSETS, OWN), (PAGE, ("style.css",))):
        for name in names:
            shutil.copyfile(folder / name, out / name)
    (out / "page.js").write_text(bundle(), encoding="utf-8")
    (out / "index.html").write_text(_index(), encoding="utf-8")
    inlined = {name: base64.b64encode(network).decode() for name, network in networks.items()}
    _write_script(out / "agent.js", "AGENT", agent | inlined)


def bundle() -> str:
    """The modules of the page as one script, each after those that it imports."""
    parts: dict[str, str] = {}

    def add(name: str) -> None:
        text = (PAGE / name).read_text(encoding="utf-8")
        for imported in IMPORT.findall(text):
            if imported not in parts:
                add(imported)
        parts[name] = re.sub("^export ", "", IMPORT.sub("", text), flags=re.MULTILINE)

    add(START)
    return "(() => {\n" + "\n".join(parts.values()) + "})();\n"


def _index() -> str:
    """The page's HTML with scripts in place of its module."""
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    scripts = "\n  ".join(f'<script defer src="{name}"></script>' for name in SCRIPTS)
    return text.replace(f'<script type="module" src="{START}"></script>', scripts)


def fetch(folder: Path) -> Path:
    """The archive of onnxruntime-web, by npm and from the registry that npm is set up for."""
    npm = shutil.which("npm")
    if npm is None:
        raise ValueError("the page needs onnxruntime-web from npm: install Node.js, or leave the page out (--no-page)")
    command = [npm, "pack", f"{PACKAGE}@{VERSION}", "--silent"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=PATIENCE)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        sentence = (
            f"npm cannot fetch {PACKAGE} {VERSION}; try `{' '.join(command[1:])}`, and give its file as --runtime"
        )
        raise ValueError(sentence) from error
    return next(folder.glob("*.tgz"))


def _write_runtime(out: Path, archive: Path) -> None:
    """ort.js as it is, and the rest, which it would fetch, as base64 of gzip: 5 MB in place of 19."""
    try:
        with tarfile.open(archive) as tar:
            parts = {name: _member(tar, f"package/dist/{name}") for name in (SCRIPT, MODULE, WASM)}
    except (tarfile.TarError, KeyError) as error:
        raise ValueError(f"{archive} is no archive of {PACKAGE} {VERSION}; make one with `npm pack`") from error
    (out / "ort.js").write_bytes(parts[SCRIPT])
    zipped = {key: gzip.compress(parts[name], 6) for key, name in (("script", MODULE), ("wasm", WASM))}
    _write_script(out / "runtime.js", "RUNTIME", {key: base64.b64encode(data).decode() for key, data in zipped.items()})


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    if file is None:
        raise KeyError(name)
    return file.read()


def _write_script(path: Path, name: str, value: dict[str, Any]) -> None:
    path.write_text(f"const {name} = {json.dumps(value)};\n", encoding="utf-8")
