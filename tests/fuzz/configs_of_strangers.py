"""Configs as JSON with anything in any field, and files beside them that would leave a mark if one of them ran."""

import json
from pathlib import Path

from hypothesis import strategies as st

from muzero_jax.storage import config as configs
from muzero_jax.storage.config import Config
from tests.fuzz.samples import EXTREME_FLOATS, EXTREME_INTS, JSON_VALUES, edited, json_text, replaced

NAMES = "mine.py mine.md mine .py mine.PY mine.pyc mine.safetensors".split()
"""Files that leave a mark, if they run as Python."""
MARK = "mark"
PATHS = [*NAMES, "../mine.py", "/etc/passwd", "/dev/zero", "..", "~no-such-user/x.py", "~", "/", "\ud800.py", "a\0.py"]
WORDS = ["", "hex", "agent:hex_5x5", "agent:../x", "name=value", "\x1b[2J", "two\nlines", "x" * 5000 + ".py", "auto"]
ODD = st.one_of(
    st.sampled_from(PATHS), st.sampled_from(WORDS), st.sampled_from([*EXTREME_INTS, *EXTREME_FLOATS]), JSON_VALUES
)
DEFAULT = json.loads(configs.to_json(Config(env="tic_tac_toe")))


@st.composite
def trees(draw):
    """A config, mostly with a few odd values, mostly with files where files may stand."""
    tree = draw(edited(DEFAULT, ODD))
    for path in (("env",), ("network", "file"), ("algorithm", "file"), ("offline",), ("init_from",)):
        if isinstance(tree, dict) and draw(st.integers(0, 3)) == 0:
            tree = replaced(tree, path, draw(st.sampled_from(PATHS)))
    return tree


TEXTS = json_text(trees())


def lay_traps(folder: Path) -> None:
    """Writes the files of `NAMES`, each of which leaves a mark if it runs."""
    for name in NAMES:
        mark = f"open({str(folder / MARK)!r}, 'w').close()"
        code = f"{mark}\ndef make(*_, **__): raise SystemExit\nmake_model = change = make\n"
        (folder / name).write_text(code)


def assert_nothing_ran(folder: Path) -> None:
    """Fails if one of the files ran."""
    assert not (folder / MARK).exists(), "a file that a config named was run"
