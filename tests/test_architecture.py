"""The shape of the project: a star of small modules around `types`. A new edge is an edit to the tables below."""

import ast
import re
import sys
import tomllib
from collections import Counter
from graphlib import TopologicalSorter

from tests.reference.pages import ROOT

PACKAGE = ROOT / "muzero_jax"

# Exactly the rooms that each room imports; a room is a folder, a module beside the folders, or a folder in `apps`.
KNOWS = {
    room: set(known.split())
    for room, _, known in (
        line.partition(":")
        for line in """
types:
own:
config: own
ops: types
games: types own
storage: types own config
networks: types own ops
search: types ops
learning: types ops
algorithm: types own config ops games networks search learning
presets: types config games networks
agent: types own config games storage search algorithm
run: types own config ops games storage algorithm
apps.check: types own config ops games networks learning algorithm presets run
apps.doctor: types own config ops games storage learning algorithm presets agent run apps.evaluation
apps.engines: types own games agent apps.play
apps.play: types games search agent
apps.evaluation: types own config ops games storage search algorithm agent run apps.engines
apps.sources: types own config games storage learning algorithm agent
apps.start: types own config ops games storage algorithm run apps.check apps.evaluation apps.sources
apps.study: config storage run apps.evaluation apps.start
apps.notebook: ops config run
apps.train: config algorithm run apps.start
apps.commands: types own config ops games storage algorithm presets agent run apps.doctor apps.engines apps.play apps.evaluation apps.sources apps.start apps.study
""".split("\n")[1:-1]  # noqa: E501
    )
}

# In extras, or in a notebook; all else comes with the normal install.
OPTIONAL = {"wandb", "optuna", "ale_py", "gymnax", "jumanji", "octax", "IPython", "ipywidgets"}

# The host's side of the program: the algorithm gets the fields of a config as keyword arguments.
READS_CONFIG = {"agent", "algorithm", "config", "presets", "run", "storage"}

BANNED = {  # other names of concepts in the glossary, and what to write
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
    if not path.stem.startswith("__")
}


TREES = {name: ast.parse(path.read_text()) for name, path in PATHS.items()}


def imports(tree):
    """The dotted name of everything imported, at any depth: `from a.b import c` gives `a.b.c`.

    `import_module` counts too: a name that is only known when the program runs stands for every module that it fits.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            parts = getattr(node.args[0], "values", [node.args[0]])
            pattern = "".join(re.escape(part.value) if isinstance(part, ast.Constant) else ".+" for part in parts)
            yield from (f"muzero_jax.{name}" for name in PATHS if re.fullmatch(pattern, f"muzero_jax.{name}"))
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def our_module(dotted):
    """The module of the package that `muzero_jax.a.b.c` lies in; the package itself is its `__init__`."""
    parts = dotted.split(".")[1:]
    prefixes = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in PATHS), room_of(prefixes[0]))


def room_of(module):
    """The room that a module lies in: a folder of the core, or one of `apps`."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "apps" else parts[0]


def third_party(tree):
    return {name.split(".")[0] for name in imports(tree)} - sys.stdlib_module_names - {"muzero_jax"}


def functions(tree):
    return [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def body_length(function):
    """Lines of a function's body without its docstring."""
    statements = function.body[1:] if ast.get_docstring(function) else function.body
    return function.end_lineno - statements[0].lineno + 1 if statements else 0


def depth_of_functions(node):
    """How deep functions are nested below a node."""
    inner = [depth_of_functions(child) + isinstance(child, ast.FunctionDef) for child in ast.iter_child_nodes(node)]
    return max(inner, default=0)


def identifiers(tree):
    """Every name that the code makes or reads: variables, arguments, keywords, attributes, functions, classes."""
    for node in ast.walk(tree):
        for field in ("id", "arg", "attr", "name"):
            if isinstance(getattr(node, field, None), str):
                yield getattr(node, field)


def test_every_promise_names_an_existing_test():
    promises = (ROOT / "docs/promises.md").read_text()
    held = re.findall(r"`(tests/\S+\.py)::(\w+)`", promises)
    assert len(held) == len(re.findall(r"^\| [A-Z`]", promises, flags=re.MULTILINE)) > 8
    assert [name for file, name in held if f"def {name}(" not in (ROOT / file).read_text()] == []


def test_the_core_imports_no_apps():
    upwards = {room: {name for name in knows if name.startswith("apps.")} for room, knows in KNOWS.items()}
    assert {room: known for room, known in upwards.items() if known and not room.startswith("apps.")} == {}


def test_the_normal_install_has_every_library_but_the_optional_ones():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = {re.split("[>=<-]", name)[0] for name in project["dependencies"]}  # orbax-checkpoint is orbax
    assert {name for tree in TREES.values() for name in third_party(tree)} - installed == OPTIONAL


def test_the_import_table_has_no_cycle_and_names_only_its_own_modules():
    assert set(TopologicalSorter(KNOWS).static_order()) == set(KNOWS)


def test_outside_apps_only_the_host_packages_import_the_config():
    readers = {module for module, tree in TREES.items() if any(".config" in name for name in imports(tree))}
    assert {room_of(module) for module in readers if not module.startswith("apps.")} == READS_CONFIG


def test_every_caller_that_reads_a_config_without_the_trust_check_is_listed():
    """`config_file.load` and `agent_file.read` check it (`own.trust`); others must not build what a config names."""
    callers = {
        name: {module for module, path in PATHS.items() if f"{name}(" in path.read_text()}
        for name in ("config_file.from_json", "config_file.inspect", "inspect_agent")
    }
    assert callers["config_file.from_json"] == {"storage.agent_file", "apps.study.tuning"}  # a study compares it
    commands = {"apps.commands.variants", "apps.commands.train"}  # they ask `trust.check`, or build nothing of it
    assert callers["config_file.inspect"] == {
        "apps.study.comparison",
        "apps.sources.offline",
        "storage.run_directory",
        *commands,
    }
    only_settings = "apps.sources.warm_start"  # of a built-in network
    assert callers["inspect_agent"] == {"agent.loading", only_settings}


def test_every_class_name_stands_once():
    classes = Counter(node.name for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert [name for name, count in classes.items() if count > 1] == []


def test_own_modules_and_names_keep_their_name_when_imported():
    """A module that must be renamed to be used has the wrong name."""
    code = [*PATHS.values(), *(ROOT / "scripts").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    renamed = {
        f"{path.relative_to(ROOT)}: {alias.name} as {alias.asname}"
        for path in [*code, *(ROOT / "tests").rglob("*.py")]
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("muzero_jax")
        for alias in node.names
        if alias.asname
    }
    assert renamed == set()


def test_every_room_imports_exactly_the_rooms_in_the_table():
    known = {room_of(module): set() for module in TREES}
    for module, tree in TREES.items():
        ours = {our_module(name) for name in imports(tree) if name.split(".")[0] == "muzero_jax"}
        known[room_of(module)] |= {room_of(name) for name in ours} - {room_of(module)}
    assert known == KNOWS


def test_module_imports_have_no_cycle():
    graph = {
        module: {our_module(name) for name in imports(tree) if name.split(".")[0] == "muzero_jax"} - {module}
        for module, tree in TREES.items()
    }
    assert {"apps.commands.train", "apps.commands.play"} <= graph["apps.commands.entry"], "also by `import_module`"
    tuple(TopologicalSorter(graph).static_order())


def test_bodies_have_at_most_50_lines_and_closures_are_at_most_2_deep():
    found = [(module, function) for module, tree in TREES.items() for function in functions(tree)]
    assert [(module, f.name) for module, f in found if body_length(f) > 50 or depth_of_functions(f) > 2] == []


def test_no_identifier_is_a_banned_name():
    paths = [*PATHS.values(), *(ROOT / "experiments").glob("*.py")]
    found = {path: set(identifiers(ast.parse(path.read_text()))) & set(BANNED) for path in paths}
    assert {path: {name: f"write {BANNED[name]}" for name in names} for path, names in found.items() if names} == {}
