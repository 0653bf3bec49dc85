"""Where runs lie: folders are checked before anything is made or deleted, and versions go by their paths."""

import errno
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import filelock
import jax
import pytest

from muzero_jax import agent as agents
from muzero_jax.apps.evaluation import players, tournament
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import save_params
from tests.reference import tiny_run
from tests.reference.tiny_run import CONFIG

# --- the folder of a run ----------------------------------------------------------------------------------------------


def make_run(run_dir):
    """A folder that holds a run, with something in it that nobody wants to lose."""
    run_dir.mkdir(parents=True)
    (run_dir / "config.json").write_text(configs.to_json(CONFIG))
    (run_dir / "metrics.jsonl").write_text("precious")
    return run_dir


def test_a_folder_is_checked_without_being_made_or_deleted(tmp_path):
    run_directory.check(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    run_dir = make_run(tmp_path / "run")
    run_directory.check(run_dir, overwrite=True)
    assert (run_dir / "metrics.jsonl").read_text() == "precious"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Path("runs")


def make_run_of(run_dir, written_at, **changes):
    """A run of another game, size or seed, last written to at a given time."""
    make_run(run_dir)
    configs.save(replace(CONFIG, **changes), run_dir)
    (run_dir / "checkpoints").mkdir()
    os.utime(run_dir / "checkpoints", (written_at, written_at))


def test_the_run_to_go_on_with_is_the_newest_of_its_game_size_and_seed(runs):
    with pytest.raises(ValueError, match="no run to resume in runs; leave out --resume"):
        run_directory.newest(None, None, None)
    make_run_of(runs / "old", 100, env="hex", board_size=5)
    make_run_of(runs / "another name", 300, env="hex", board_size=9, seed=3)
    make_run_of(runs / "go", 200, env="go_9x9")
    (runs / "notes").mkdir()
    (runs / "damaged").mkdir()
    (runs / "damaged" / "config.json").write_text("{")
    assert run_directory.newest(None, None, None) == run_directory.newest("hex", None, None) == runs / "another name"
    assert run_directory.newest("hex", 5, None) == runs / "old"
    assert run_directory.newest("go_9x9", None, 0) == runs / "go"
    with pytest.raises(ValueError, match="no run with env hex and seed 7 to resume"):
        run_directory.newest("hex", None, 7)


def test_a_game_of_ones_own_is_kept_by_its_whole_path_and_its_run_is_named_after_the_file(tmp_path, monkeypatch):
    (tmp_path / "games").mkdir()
    monkeypatch.chdir(tmp_path / "games")
    assert configs.absolute_env("../games/nim.py") == str(tmp_path / "games" / "nim.py")
    assert configs.absolute_env("hex") == "hex"
    config = replace(CONFIG, env=str(tmp_path / "nim.py"), seed=3)
    assert config.env_name == "nim" and run_directory.default(config) == Path("runs/nim-seed3")
    assert run_directory.default(replace(config, env="hex", board_size=5)) == Path("runs/hex-5-seed3")


def test_a_folder_in_which_nothing_was_saved_goes_and_any_other_stays(tmp_path):
    for saved, stays in ([], False), (["config.json"], True):
        run_dir = tmp_path / "run"
        run_dir.mkdir()
        with run_directory.locked(run_dir):
            for name in saved:
                (run_dir / name).touch()
        assert run_dir.exists() == stays


def test_two_cannot_train_in_one_folder_at_a_time(tmp_path):
    refused = pytest.raises(ValueError, match="another process is training in .*; wait until it has ended, or choose")
    with run_directory.locked(tmp_path), refused, run_directory.locked(tmp_path):
        pytest.fail("both hold the folder")
    with run_directory.locked(tmp_path):  # a lock ends with its block
        run_directory.check(tmp_path)  # and its file does not make a folder a stranger's


def test_a_lock_of_another_process_keeps_every_run_and_ends_with_that_process(tmp_path):
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
        with pytest.raises(ValueError, match="another process is training in .*later; wait until it has ended"):
            run_directory.make_room_for_all(runs)
        assert [(run / "metrics.jsonl").read_text() for run in runs] == ["precious", "precious"]
        process.kill()
    run_directory.make_room_for_all([*runs, tmp_path / "none"])
    assert not any(map(run_directory.holds_run, runs))


def refusing(monkeypatch, number):
    def refuse(self):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(filelock.FileLock, "acquire", refuse)


def test_where_there_are_no_locks_training_goes_on_without(tmp_path, monkeypatch):
    refusing(monkeypatch, errno.ENOLCK)
    with run_directory.locked(tmp_path):
        pass


def test_a_read_only_folder_is_a_sentence_before_anything_is_compiled(tmp_path, monkeypatch):
    """Root may write anywhere, so the refusal is a fake."""
    refusing(monkeypatch, errno.EROFS)
    sentence = "^cannot write to .*/run: Read-only file system; choose another --run-dir$"
    with pytest.raises(ValueError, match=sentence), run_directory.opened(tmp_path / "run"):
        pytest.fail("it was opened")


@pytest.mark.parametrize(
    "summary, is_finished",
    [('{"finished": true, "iteration": 8}', True), ('{"finished": true, "iteration": 6}', False)]
    + [(text, False) for text in ('{"finished": false, "iteration": 8}', "", "{", "[]", "null", "[" * 100_000)],
)
def test_a_run_is_finished_if_its_summary_says_so_of_its_last_iteration(tmp_path, summary, is_finished):
    (tmp_path / "summary.json").write_text(summary)
    assert run_directory.has_ended(tmp_path, 8) == is_finished


def test_a_folder_that_holds_a_run_is_refused_without_resume_or_overwrite(tmp_path):
    run_dir = make_run(tmp_path / "run")
    with pytest.raises(ValueError, match="holds a run already: --resume .*--overwrite"), run_directory.opened(run_dir):
        pytest.fail("it was opened")
    for wanted in ({"resume": True}, {"resume": True, "overwrite": True}):
        with run_directory.opened(run_dir, **wanted):
            assert (run_dir / "metrics.jsonl").read_text() == "precious"


def test_overwrite_deletes_a_run_and_nothing_else(tmp_path):
    run_dir = make_run(tmp_path / "run")
    (tmp_path / "neighbour").write_text("precious")
    with run_directory.opened(run_dir, overwrite=True):
        assert (run_dir / "metrics.jsonl").exists()  # until nothing can refuse the new run any more
        run_directory.make_room(run_dir)
        assert [path.name for path in run_dir.iterdir()] == [run_directory.LOCK]
        (run_dir / "config.json").touch()
    assert run_dir.exists() and (tmp_path / "neighbour").exists()


def test_overwrite_spares_what_the_new_run_reads(tmp_path):
    run_dir = make_run(tmp_path / "run")
    for source in (run_dir, run_dir / "versions" / "6", f"agent:{run_dir}/mine.safetensors"):
        with pytest.raises(ValueError, match=f"--overwrite would delete {source}, which the new run reads; choose"):
            run_directory.check(run_dir, overwrite=True, sources=[str(source)])
    run_directory.check(run_dir, overwrite=True, sources=["agent:hex_5x5", str(tmp_path / "run2")])
    run_directory.check(run_dir, resume=True, overwrite=True, sources=[str(run_dir)])


@pytest.mark.parametrize("changes", [{}, {"overwrite": True}, {"resume": True}])
def test_a_folder_that_holds_something_else_is_never_touched(tmp_path, changes):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match="no run"), run_directory.opened(tmp_path / "run", **changes):
        pytest.fail("it was opened")
    run_directory.make_room(tmp_path / "run")
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name, words", [("run", "holds no run"), ("run/inside", "cannot make .*/inside")])
def test_a_folder_that_cannot_be_made_is_a_sentence(name, words, tmp_path):
    (tmp_path / "run").write_text("a file")
    with (
        pytest.raises(ValueError, match=f"{words}.*; choose another --run-dir"),
        run_directory.opened(tmp_path / name),
    ):
        pytest.fail("it was opened")


# --- versions ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def versions(saved_run):
    """The folder of a run's versions, from iterations 2 and 10; every weight of the first is 1."""
    params = jax.eval_shape(tiny_run.algorithm().model.init, jax.random.key(0))
    for iteration in (2, 10):
        ones = jax.tree.map(lambda x, scale=iteration / 2: jax.numpy.full(x.shape, scale, x.dtype), params)
        save_params(saved_run / "versions", iteration, ones)
    return saved_run / "versions"


def test_a_version_is_loaded_by_its_path(versions):
    agent = agents.load_agent(versions / "2")
    assert agent.iteration == 2 and {float(leaf.min()) for leaf in jax.tree.leaves(agent.params)} == {1.0}
    newest = agents.load_agent(versions.parent)
    assert newest.iteration == agents.load_agent(versions.parent / "checkpoints" / "6").iteration


@pytest.mark.parametrize("name", ["3", "11"])
def test_a_version_that_is_not_there_is_a_sentence_with_those_that_are(versions, name):
    with pytest.raises(ValueError, match=f"no version {name} in .*versions; name one of those in it: 2, 10$"):
        agents.load_agent(versions / name)
    with pytest.raises(ValueError, match=f"no version {name} .* 2, 10$"):
        tournament.enter((f"{versions}/{name}@4", "random"))


def test_a_folder_of_versions_is_no_version(versions):
    with pytest.raises(ValueError, match="versions is no version; name one of those in it: 2, 10$"):
        agents.load_agent(versions)


def test_a_version_can_be_an_opponent(versions):
    agent = agents.load_agent(versions.parent)
    load_agent = partial(agents.load_agent, num_simulations=3)
    entrant = players.load(players.parse(f"{versions}/10"), agent, load_agent)
    assert entrant.name == f"{versions}/10@3" and float(jax.tree.leaves(entrant.params)[0].min()) == 5.0
    with pytest.raises(ValueError, match="no version 4 in"):
        players.load(players.parse(f"{versions}/4"), agent, load_agent)


def test_a_tournament_takes_versions_one_by_one_or_all_together(versions):
    run = versions.parent
    specs = (f"{versions}/2:rules@8", f"{versions}@5", f"{versions}/10:greedy", str(run), "random")
    field = tournament.enter(specs)
    assert [entrant.name for entrant in field.entrants] == [
        f"{versions}/2:rules@8", f"{versions}/2@5", f"{versions}/10@5", f"{versions}/10:greedy", f"{run}@2", "random",
    ]  # fmt: skip
    early, late = field.entrants[1:3]
    assert early.program == late.program and field.host.iteration == 2
    with pytest.raises(ValueError, match="two players or more"):
        tournament.enter((f"{versions}/2",))
    assert len(tournament.enter((str(versions),)).entrants) == 2


def test_a_run_without_versions_is_a_sentence(tmp_path):
    run_dir = make_run(tmp_path / "run")
    with pytest.raises(ValueError, match="no versions in .*run/versions"):
        tournament.enter((f"{run_dir}/versions", "random"))
    with pytest.raises(ValueError, match="no version 3 in .*; name one of those in it: there are none"):
        agents.load_agent(run_dir / "versions" / "3")


def test_what_lies_in_no_run_is_no_version(tmp_path):
    (tmp_path / "versions" / "3").mkdir(parents=True)
    assert run_directory.find_saved(tmp_path / "versions" / "3") is None
    assert not players.is_run("random") and not players.is_run("")
