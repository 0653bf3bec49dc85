"""Where runs lie: folders are checked before anything is made or deleted, and versions go by their paths."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import pytest

from muzero_jax.agent import load_agent
from muzero_jax.apps.evaluation import tournament
from muzero_jax.apps.evaluation.progress import Ladder
from muzero_jax.config import config_file
from muzero_jax.config.paths import absolute_env
from muzero_jax.own.files import write_whole
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import save_params
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG

# --- the folder of a run ----------------------------------------------------------------------------------------------


def make_run(run_dir, **changes):
    """A folder that holds a run, with something in it that must not be lost."""
    run_dir.mkdir(parents=True)
    config_file.save(replace(CONFIG, **changes), run_dir)
    (run_dir / "metrics.jsonl").write_text("precious")
    return run_dir


def is_whole(run_dir):
    return (run_dir / "metrics.jsonl").read_text() == "precious"


def test_the_run_to_continue_is_the_newest_of_its_game_size_and_seed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs = Path("runs")
    with pytest.raises(ValueError, match="--resume"):
        run_directory.newest(None, None, None)
    made = {
        "old": {"env": "hex", "board_size": 5},
        "go": {"env": "go_9x9"},
        "another name": {"env": "hex", "board_size": 9, "seed": 3},
    }
    for written_at, (name, changes) in enumerate(made.items()):
        checkpoints = make_run(runs / name, **changes) / "checkpoints"
        checkpoints.mkdir()
        os.utime(checkpoints, (written_at, written_at))
    (runs / "notes").mkdir()
    assert run_directory.newest(None, None, None) == run_directory.newest("hex", None, None) == runs / "another name"
    assert run_directory.newest("hex", 5, None) == runs / "old"
    assert run_directory.newest("go_9x9", None, 0) == runs / "go"
    with pytest.raises(ValueError, match="env hex and seed 7"):
        run_directory.newest("hex", None, 7)


def test_a_users_game_is_kept_by_its_absolute_path_and_its_run_is_named_after_the_file(tmp_path, monkeypatch):
    (tmp_path / "games").mkdir()
    monkeypatch.chdir(tmp_path / "games")
    assert absolute_env("../games/nim.py") == str(tmp_path / "games" / "nim.py")
    assert absolute_env("hex") == "hex"
    config = replace(CONFIG, env=str(tmp_path / "nim.py"), seed=3)
    assert config.env_name == "nim" and run_directory.default(config) == Path("runs/nim-seed3")
    assert run_directory.default(replace(config, env="hex", board_size=5)) == Path("runs/hex-5-seed3")


def test_two_processes_cannot_train_in_one_folder_at_a_time(tmp_path):
    """While another process trains in one of several runs to be overwritten, none of them is deleted."""
    code = f"""
import sys
from pathlib import Path
from muzero_jax.storage.run_directory import locked
with locked(Path({str(tmp_path / "later")!r})):
    print("held", flush=True)
    sys.stdin.read()
"""
    runs = [make_run(tmp_path / name) for name in ("earlier", "later")]
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        refused = pytest.raises(ValueError, match="another process is training in .*later")
        with refused, run_directory.opened(runs[1], resume=True):
            pytest.fail("both hold the folder")
        with pytest.raises(ValueError, match="another process is training in .*later"):
            run_directory.make_room_for_all(runs)
        assert all(map(is_whole, runs))
        process.kill()
    run_directory.make_room_for_all([*runs, tmp_path / "none"])
    assert not any(map(run_directory.holds_run, runs))


def test_a_folder_that_holds_a_run_is_refused_without_resume_or_overwrite(tmp_path):
    run_dir = make_run(tmp_path / "run")
    with pytest.raises(ValueError, match="--resume .*--overwrite"), run_directory.opened(run_dir):
        pytest.fail("it was opened")
    for wanted in ({"resume": True}, {"resume": True, "overwrite": True}, {"overwrite": True}):
        with run_directory.opened(run_dir, **wanted):
            assert is_whole(run_dir)  # until nothing can refuse the new run any more
    with run_directory.opened(run_dir, overwrite=True):
        run_directory.make_room(run_dir)
        assert [path.name for path in run_dir.iterdir()] == [run_directory.LOCK]


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "summary.json",
        "elo.json",
        "metrics.jsonl",
        "curves.png",
        "algorithm.py",
        "profile",
    ]
    + [
        ".config.json",
        "checkpoints",
        "checkpoints/7",
        "versions",
        "versions/7.saving",
        "profile/scopes.md",
    ],
)
def test_a_run_with_a_link_in_it_is_neither_resumed_nor_overwritten(tmp_path, name):
    """The run may be a stranger's, and what it is linked to the user's own."""
    run_dir, own = make_run(tmp_path / "a"), tmp_path / "own"
    own.mkdir()
    (run_dir / name).parent.mkdir(exist_ok=True)
    (run_dir / name).unlink(missing_ok=True)
    if name == "config.json":
        config_file.save(CONFIG, own)
    (run_dir / name).symlink_to(own / "config.json" if name == "config.json" else own)
    with pytest.raises(ValueError, match=re.escape(f"{run_dir / name} is a link")):
        run_directory.check(run_dir, resume=True)
    with pytest.raises(ValueError, match="is a link"):
        run_directory.check(run_dir, overwrite=True)


def test_a_file_is_written_through_no_link(tmp_path):
    own, written = tmp_path / "own", tmp_path / "run" / "config.json"
    own.write_text("precious")
    written.parent.mkdir()
    for name in (written, written.with_name(".config.json")):
        name.symlink_to(own)
    write_whole(written, "new")
    assert written.read_text() == "new" and not written.is_symlink() and own.read_text() == "precious"
    assert sorted(path.name for path in written.parent.iterdir()) == [".config.json", "config.json"]
    mode = own.stat().st_mode
    assert written.stat().st_mode == mode, "as the user's other files, not private"


def test_a_damaged_file_of_a_run_is_named(tmp_path):
    run_dir = make_run(tmp_path / "a")
    for name, text, read in (
        ("summary.json", "", run_directory.read_summary),
        ("summary.json", "[]", run_directory.read_summary),
        ("elo.json", '{"iterations": 3}', lambda run_dir: Ladder(run_dir / "elo.json").load(1)),
    ):
        (run_dir / name).write_text(text)
        with pytest.raises(ValueError, match=re.escape(f"{run_dir / name} is damaged")):
            read(run_dir)


def test_overwrite_is_refused_if_the_new_run_reads_what_it_would_delete(tmp_path):
    run_dir = make_run(tmp_path / "run")
    for source in (run_dir, run_dir / "versions" / "6", f"agent:{run_dir}/mine.safetensors"):
        with pytest.raises(ValueError, match=f"--overwrite would delete {source}"):
            run_directory.check(run_dir, overwrite=True, sources=[str(source)])
    run_directory.check(run_dir, overwrite=True, sources=["agent:hex_5x5", str(tmp_path / "run2")])


@pytest.mark.parametrize("changes", [{}, {"overwrite": True}, {"resume": True}])
def test_a_folder_that_holds_something_else_is_never_touched(tmp_path, changes):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("precious")
    (tmp_path / "file").touch()
    for path in (tmp_path / "run", tmp_path / "file", tmp_path / "file" / "inside"):
        with pytest.raises(ValueError, match="no run|cannot write"), run_directory.opened(path, **changes):
            pytest.fail("it was opened")
    run_directory.make_room(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.tex"]


# --- versions ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def versions(saved_run):
    """The folder of a run's versions, from iterations 2 and 10; every weight of the first is 1."""
    params = jax.eval_shape(tiny_run.algorithm().model.init, jax.random.key(0))
    for iteration in (2, 10):
        ones = jax.tree.map(lambda x, scale=iteration / 2: jax.numpy.full(x.shape, scale, x.dtype), params)
        save_params(saved_run / "versions", iteration, ones)
    return saved_run / "versions"


def test_a_version_is_loaded_by_its_path_and_an_error_names_those_that_exist(versions, tmp_path):
    agent = load_agent(versions / "2")
    assert agent.iteration == 2 and {float(leaf.min()) for leaf in jax.tree.leaves(agent.params)} == {1.0}
    for path in (versions / "3", versions):
        with pytest.raises(ValueError, match="2, 10$"):
            load_agent(path)
    with pytest.raises(ValueError, match="no versions in .*run/versions"):
        tournament.enter((f"{make_run(tmp_path / 'run')}/versions", "random"))


def test_a_tournament_takes_versions_one_by_one_or_all_together(versions):
    run = versions.parent
    specs = (f"{versions}/2:rules@8", f"{versions}@5", f"{versions}/10:greedy", str(run), "random")
    field = tournament.enter(specs)
    assert [entrant.name for entrant in field.entrants] == [
        f"{versions}/2:rules@8", f"{versions}/2@5", f"{versions}/10@5", f"{versions}/10:greedy", f"{run}@2", "random",
    ]  # fmt: skip
    early, late = field.entrants[1:3]
    assert early.program == late.program and field.host.iteration == 2
