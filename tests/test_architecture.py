"""The shape of the project: a star of small modules around `types`. A new edge is an edit to the tables below."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "muzero_jax"

# Which of our modules each module may import, lowest level first.
KNOWS = {
    "types": set(),
    "files": set(),
    "validation": set(),
    "bfloat16_products": {"devices"},
    "precision": {"bfloat16_products", "devices"},
    "config": {"files", "validation"},
    "value_transform": {"types"},
    "winograd": {"types"},
    "row_windows": {"bfloat16_products"},
    "convolution": {"types", "devices", "row_windows", "winograd"},
    "games.hex": {"types"},
    "environment": {"types", "games.hex"},
    "layers": {"bfloat16_products", "convolution"},
    "networks": {"types", "bfloat16_products", "layers", "value_transform"},
    "bits": set(),
    "replay": {"types", "bits"},
    "targets": {"types"},
    "simulator": {"types"},
    "tree_search": {"simulator"},
    "search": {"types", "simulator", "tree_search"},
    "mctx_search": {"types", "simulator"},
    "loop_free_search": {"search", "simulator", "tree_search"},
    "narrow_search": {"types", "search", "simulator", "tree_search"},
    "search_engines": {"loop_free_search", "mctx_search", "search"},
    "losses": {"types"},
    "self_play": {"types", "legal_actions"},
    "micro_batches": {"types", "devices"},
    "learner": {"types", "micro_batches"},
    "reanalyze": {"types"},
    "legal_actions": set(),
    "batches": set(),
    "opponents": {"types", "legal_actions"},
    "evaluation": {"types", "legal_actions"},
    "elo": set(),
    "fidelity": {"types", "legal_actions"},
    "charts": set(),
    "exhaustive": {"types", "batches"},
    "training": {
        "types",
        "config",
        "devices",
        "environment",
        "learner",
        "losses",
        "micro_batches",
        "narrow_search",
        "networks",
        "precision",
        "reanalyze",
        "replay",
        "search_engines",
        "self_play",
        "simulator",
        "targets",
        "value_transform",
    },
    "checkpoint": {"types"},
    "metrics": {"files"},
    "display": {"metrics"},
    "devices": {"types"},
    "memory_parts": {"types", "config", "loop_free_search", "narrow_search", "training"},
    "library_tasks": {"devices"},
    "memory": {"types", "config", "devices", "library_tasks", "memory_parts", "replay", "training"},
    "memory_meter": {"devices"},
    "assembly": {"types", "config", "memory", "training"},
    "profiling": set(),
    "autotune": {"config", "devices", "files", "precision", "assembly"},
    "accounting": {"config", "metrics"},
    "run_directory": {"config", "checkpoint"},
    "arena": {"types", "config", "checkpoint", "devices", "evaluation", "opponents", "run_directory", "training"},
    "oracles.common": set(),
    "oracles.tic_tac_toe": {"oracles.common"},
    "oracles.connect_four": {"oracles.common"},
    "oracles.hex": {"oracles.common"},
    "oracles.catalogue": {"oracles.common", "oracles.tic_tac_toe", "oracles.connect_four", "oracles.hex"},
    "oracles.positions": {"types", "batches", "legal_actions"},
    "oracles.score": {"evaluation", "oracles.common"},
    "oracle_evaluation": {
        "types",
        "config",
        "arena",
        "batches",
        "opponents",
        "oracles.catalogue",
        "oracles.common",
        "oracles.positions",
        "oracles.score",
        "training",
    },
    "tournament": {"types", "config", "arena", "elo", "evaluation", "opponents", "run_directory"},
    "fidelity_evaluation": {
        "types",
        "config",
        "arena",
        "batches",
        "fidelity",
        "opponents",
        "oracles.positions",
        "training",
    },
    "progress": {"types", "config", "files", "arena", "checkpoint", "elo", "run_directory"},
    "runner": {
        "types",
        "config",
        "files",
        "accounting",
        "arena",
        "assembly",
        "checkpoint",
        "devices",
        "display",
        "memory",
        "memory_meter",
        "metrics",
        "precision",
        "profiling",
        "progress",
        "run_directory",
    },
    "play": set(),  # its version
    "play.board": {"types"},
    "play.sides": {"types"},
    "play.chess_moves": {"types"},
    "play.clock": set(),
    "play.protocol": set(),
    "play.fen": {"types", "play.chess_moves"},
    "play.position": {"types", "play.board", "play.sides"},
    "play.notation": {"types", "play.chess_moves"},
    "play.sgf": {"play.notation", "play.position"},
    "play.drawing": {"play.board", "play.notation", "play.position"},
    "play.placement": set(),
    "play.thinking": {"types", "arena", "training", "tree_search", "play.position"},
    "play.tree_view": {"tree_search", "play.notation", "play.position"},
    "play.tree_picture": {"play.notation", "play.position", "play.thinking", "play.tree_view"},
    "play.web_session": {
        "play.notation",
        "play.position",
        "play.thinking",
        "play.tree_picture",
        "play.tree_view",
    },
    "play.web_server": {"play.web_session"},
    "play.gtp": {
        "play",
        "play.board",
        "play.clock",
        "play.drawing",
        "play.notation",
        "play.position",
        "play.protocol",
        "play.sgf",
        "play.thinking",
    },
    "play.uci": {"play", "play.clock", "play.fen", "play.notation", "play.position", "play.protocol", "play.thinking"},
    "play.terminal": {"play.drawing", "play.notation", "play.position", "play.thinking"},
}

# Which modules may know each third-party library, so that its next breaking release touches one file.
EVERYWHERE = {"jax", "jaxtyping", "numpy"}
LIBRARIES = {
    "pgx": {"environment", "games.hex", "play.fen"},
    "flax.linen": {"layers", "networks"},
    "flax.struct": {"games.hex"},
    "flax.training": {"learner"},
    "mctx": {"mctx_search"},
    "optax": {"learner", "losses", "value_transform", "training"},  # optimisers: `learner` alone
    "scipy": {"elo"},
    "orbax": {"checkpoint"},
    "tensorboardX": {"metrics"},
    "matplotlib": {"metrics", "charts"},
    "rich": {"display", "play.terminal"},
    "wandb": {"metrics"},
    "jaxlib": {"devices"},
    "starlette": {"play.web_server"},
    "uvicorn": {"play.web_server"},
}
OPTIMISER_MODULE = "learner"

# The host's side of the program: nobody else sees a config, whose fields reach the algorithm as keyword arguments.
READS_CONFIG = {
    "training",
    "autotune",
    "memory",
    "memory_parts",
    "assembly",
    "accounting",
    "run_directory",
    "arena",
    "oracle_evaluation",
    "tournament",
    "fidelity_evaluation",
    "progress",
    "runner",
}

BANNED = {  # the glossary's "don't write", as far as a name alone tells
    "action_mask": "legal_action_mask",
    "atoms": "num_bins",
    "encoder": "representation",
    "hidden_state": "embedding",
    "k_steps": "unroll_steps",
    "latent": "embedding",
    "latent_state": "embedding",
    "mcts_steps": "num_simulations",
    "num_sims": "num_simulations",
    "phi_transform": "two_hot",
    "root_value": "search_value",
    "selfplay_batch_size": "num_envs",
    "target_pi": "search_policy",
    "to_play": "current_player",
    "world_model": "dynamics",
}

PATHS = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.stem != "__init__"
}
TREES = {name: ast.parse(path.read_text()) for name, path in PATHS.items()}
each_module = pytest.mark.parametrize("module", TREES)


def imports(tree):
    """The dotted name of everything imported, at any depth: `from a.b import c` gives `a.b.c`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def our_module(dotted):
    """The module of the package that `muzero_jax.a.b.c` lies in; the package itself is its `__init__`."""
    parts = dotted.split(".")[1:]
    prefixes = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in PATHS), prefixes[-1])


def third_party(tree):
    names = {name for name in imports(tree) if name.split(".")[0] not in sys.stdlib_module_names}
    return {name for name in names if name.split(".")[0] not in EVERYWHERE | {"muzero_jax"}}


def public_definitions(tree):
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node for node in tree.body if isinstance(node, kinds) and not node.name.startswith("_")]


def identifiers(tree):
    """Every name that the code makes or reads: variables, arguments, keywords, attributes, functions, classes."""
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name"):
            if isinstance(getattr(node, field, None), str):
                yield getattr(node, field)


def test_every_module_is_in_the_import_table():
    assert set(PATHS) <= set(KNOWS)


def test_the_import_table_has_no_cycle_and_names_only_its_own_modules():
    assert set(TopologicalSorter(KNOWS).static_order()) == set(KNOWS)


def test_only_the_hosts_side_may_read_a_config():
    assert {module for module, known in KNOWS.items() if "config" in known} == READS_CONFIG


@each_module
def test_a_module_imports_only_what_the_table_allows(module):
    ours = {our_module(name) for name in imports(TREES[module]) if name.split(".")[0] == "muzero_jax"}
    assert ours <= KNOWS.get(module, set())


@each_module
def test_a_third_party_library_is_known_only_where_the_table_says(module):
    allowed = tuple(library + "." for library, modules in LIBRARIES.items() if module in modules)
    assert {name for name in third_party(TREES[module]) if not f"{name}.".startswith(allowed)} == set()


@each_module
def test_optimisers_are_made_in_the_learner_alone(module):
    names = {"adam", "adamw", "chain", "clip_by_global_norm", "sgd", "warmup_cosine_decay_schedule"}
    attributes = (node for node in ast.walk(TREES[module]) if isinstance(node, ast.Attribute))
    made = {a.attr for a in attributes if isinstance(a.value, ast.Name) and a.value.id == "optax" and a.attr in names}
    assert module == OPTIMISER_MODULE or not made


@each_module
def test_a_module_has_at_most_300_lines_and_a_docstring(module):
    assert len(PATHS[module].read_text().splitlines()) <= 300
    assert ast.get_docstring(TREES[module])


@each_module
def test_every_public_function_and_class_has_a_docstring(module):
    assert [node.name for node in public_definitions(TREES[module]) if not ast.get_docstring(node)] == []


@each_module
def test_a_function_has_at_most_8_parameters(module):
    functions = (node for node in ast.walk(TREES[module]) if isinstance(node, ast.FunctionDef))
    counts = {f.name: len(f.args.posonlyargs + f.args.args + f.args.kwonlyargs) for f in functions}
    assert {name: count for name, count in counts.items() if count > 8} == {}


@pytest.mark.parametrize("path", [*PATHS.values(), *sorted((ROOT / "experiments").glob("*.py"))], ids=lambda p: p.stem)
def test_no_name_is_one_that_the_glossary_bans(path):
    found = set(identifiers(ast.parse(path.read_text()))) & set(BANNED)
    assert {name: f"write {BANNED[name]}" for name in found} == {}


def test_the_modules_that_choose_devices_start_no_backend():
    """The number of CPU devices is fixed when JAX's backend starts, and importing pgx alone starts it."""
    modules = ", ".join(f"muzero_jax.{name}" for name in ("config", "devices", "types") if name in PATHS)
    code = f"import {modules}; from jax._src import xla_bridge; assert not xla_bridge.backends_are_initialized()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_readme_sets_up_a_fresh_machine_with_exactly_two_commands():
    """`.ci/run` runs these very lines, so the README can't drift from what CI tries."""
    set_up = [line for line in (ROOT / "README.md").read_text().splitlines() if line.startswith("python3 -m venv")]
    assert len(set_up) == 2
    train, tests = set_up
    assert re.search(r"&& \.venv/bin/python experiments/train\.py --env hex\b[^&]*$", train)
    assert tests.endswith("&& .venv/bin/pytest")
    assert all("-c constraints.txt" in command for command in set_up)


def test_constraints_are_exact_pins_without_addresses():
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==[A-Za-z0-9.]+( ; .+)?", line), line
