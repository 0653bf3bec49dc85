"""An agent's file from anybody: an agent, or one sentence that names the file; nothing that it names is run."""

import json
import math

import jax
import numpy as np
from hypothesis import strategies as st

from muzero_jax import agent as agents
from muzero_jax.storage import agent_file
from muzero_jax.storage import config as configs
from muzero_jax.storage.config import Config
from tests.fuzz import fuzzing
from tests.fuzz.configs_of_strangers import TEXTS, assert_nothing_ran, lay_traps
from tests.fuzz.fuzzing import refusal
from tests.fuzz.samples import EXTREME_INTS, JSON_VALUES, disturbed, edited, json_text, replaced

PARAMS = {"a": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": np.zeros(3, np.float32)}}
ABSTRACT = jax.eval_shape(lambda: jax.tree.map(jax.numpy.asarray, PARAMS))
DATA = b"".join(array.tobytes() for array in PARAMS["a"].values())
HEADER = {
    "__metadata__": {
        **{"format": agent_file.FORMAT, "format_version": str(agent_file.FORMAT_VERSION), "name": "x", "card": "x.md"},
        **{"iteration": "7", "config": configs.to_json(Config(env="tic_tac_toe"))},
    },
    "['a']['kernel']": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "['a']['bias']": {"dtype": "F32", "shape": [3], "data_offsets": [24, 36]},
}
BITS = {
    **{"BOOL": 8, "U8": 8, "I8": 8, "I16": 16, "U32": 32, "I64": 64, "F16": 16, "BF16": 16, "F32": 32, "F64": 64},
    **{"F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "C64": 64},
}
SIZES = st.sampled_from([1, 1, 2, 2, 3, 3, 0, 2**31, 2**63, 2**64 - 1])
DTYPES = "F32 F16 BF16 F64 I8 I64 U8 BOOL F8_E4M3 F8_E5M2 F8_E8M0 F4 F6_E2M3 C64 I4 f32 X".split()
NUMBERS = st.sampled_from([*EXTREME_INTS[:-2], 12, 24, 36, 2**64 - 1])
TEXT = st.sampled_from("-1 007 1.0 ７ 1_0 2 99 two\nlines \x1b[2J ../x.md nan".split(" ")) | st.just("9" * 5000)
ODD = st.one_of(st.sampled_from(DTYPES), st.lists(NUMBERS, max_size=3), NUMBERS, TEXT, JSON_VALUES)


@st.composite
def tensors(draw):
    """(header, data) of arrays of any dtype and shape whose offsets are right."""
    header, end = {"__metadata__": HEADER["__metadata__"]}, 0
    for name in draw(st.lists(st.sampled_from(sorted(HEADER)[:2]) | st.text(max_size=3), max_size=3)):
        dtype, shape = draw(st.sampled_from(sorted(BITS))), draw(st.lists(SIZES, max_size=3))
        size = math.prod(shape) * BITS[dtype] // 8
        if size <= 200 and name not in header:
            header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
            end += size
    return header, bytes(end)


@st.composite
def files(draw):
    """Bytes in the format of safetensors, mostly; odd in the header's length, the header, its tensors or metadata."""
    header, data = draw(st.just((HEADER, DATA)) | tensors())
    header = draw(edited(header, ODD))
    if isinstance(header, dict) and isinstance(header.get("__metadata__"), dict) and draw(st.booleans()):
        text = draw(st.one_of(TEXTS.map(lambda text: text.decode("utf-8", "replace")), TEXT))
        header = replaced(header, ("__metadata__", draw(st.sampled_from(["config", "config", "iteration"]))), text)
    kind = draw(st.sampled_from("plain plain plain plain header length data bytes".split()))
    text = draw(json_text(st.just(header))) if kind == "header" else json.dumps(header).encode()
    length = draw(NUMBERS) % 2**64 if kind == "length" else len(text)
    data = draw(st.binary(max_size=50)) if kind == "data" else data
    content = length.to_bytes(8, "little") + text + data
    return draw(disturbed(st.just(content))) if kind == "bytes" else content


def written(header: dict, data: bytes = DATA) -> bytes:
    """A file of that header and data."""
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


FOUND = [
    written(replaced(HEADER, ("__metadata__", "config"), ...)),
    written(replaced(HEADER, ("__metadata__", "iteration"), ...)),
    written(replaced(HEADER, ("__metadata__", "iteration"), "two\nlines")),
    written(replaced(HEADER, ("__metadata__", "format_version"), "9" * 5000)),
    written(replaced(HEADER, ("__metadata__",), "9" * 5000)),
    written({"x": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, b"0"),
    written({"x": {"dtype": "F32", "shape": [0, 2**63], "data_offsets": [0, 0]}}, b""),
]


@fuzzing.fuzzed(files(), found=FOUND)
def test_agent_files(content, folder):
    if not (folder / "mine.py").exists():
        lay_traps(folder)
    file = folder / "x.safetensors"
    file.write_bytes(content)
    stored, _ = refusal(lambda: agent_file.read(file), file)
    if stored is not None:
        assert isinstance(stored.config, Config) and isinstance(stored.iteration, int)
        refusal(lambda: stored.params(ABSTRACT), file)
        if stored.config.own_files:
            _, refused = refusal(lambda: agents.load_agent(file))
            assert refused
    assert_nothing_ran(folder)
