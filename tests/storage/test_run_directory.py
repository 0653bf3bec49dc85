"""Where runs lie: folders are checked before anything is made or deleted, and versions go by their paths."""

from pathlib import Path

import jax
import pytest

from muzero_jax.evaluation import players, tournament
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.checkpoint import Checkpointer
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


def test_the_run_to_go_on_with_is_found_by_game_size_and_seed(runs):
    assert run_directory.find_default("go_9x9", None, 7) == runs / "go_9x9-seed7"
    assert run_directory.find_default("hex", 4, 0) == runs / "hex-4-seed0"


def test_of_hex_without_a_size_it_is_the_one_that_there_is(runs):
    with pytest.raises(ValueError, match="no run of hex with seed 0 to resume"):
        run_directory.find_default("hex", None, 0)
    for name in ("hex-9-seed0", "hex-5-seed3", "go_9x9-seed0"):
        make_run(runs / name)
    (runs / "hex-7-seed0").mkdir()
    assert run_directory.find_default("hex", None, 0) == runs / "hex-9-seed0"
    make_run(runs / "hex-11-seed0")
    with pytest.raises(ValueError, match="several runs to resume, .*hex-11-seed0, .*hex-9-seed0; .*--board-size"):
        run_directory.find_default("hex", None, 0)


def test_a_folder_that_holds_a_run_is_refused_without_resume_or_overwrite(tmp_path):
    run_dir = make_run(tmp_path / "run")
    with pytest.raises(ValueError, match="holds a run already: --resume .*--overwrite"):
        run_directory.prepare(run_dir)
    assert run_directory.prepare(run_dir, resume=True) == run_dir
    assert run_directory.prepare(run_dir, resume=True, overwrite=True) == run_dir
    assert (run_dir / "metrics.jsonl").read_text() == "precious"


def test_overwrite_deletes_a_run_and_nothing_else(tmp_path):
    run_dir = make_run(tmp_path / "run")
    (tmp_path / "neighbour").write_text("precious")
    assert run_directory.prepare(run_dir, overwrite=True) == run_dir
    assert (run_dir / "metrics.jsonl").exists()  # until nothing can refuse the new run any more
    run_directory.make_room(run_dir)
    assert list(run_dir.iterdir()) == []
    assert (tmp_path / "neighbour").exists()


@pytest.mark.parametrize("changes", [{}, {"overwrite": True}, {"resume": True}])
def test_a_folder_that_holds_something_else_is_never_touched(tmp_path, changes):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("precious")
    with pytest.raises(ValueError, match="no run"):
        run_directory.prepare(tmp_path / "run", **changes)
    run_directory.make_room(tmp_path / "run")
    assert (tmp_path / "run" / "thesis.tex").read_text() == "precious"


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path):
    (tmp_path / "run").write_text("a file")
    with pytest.raises(ValueError, match="choose another --run-dir"):
        run_directory.prepare(tmp_path / "run")
    with pytest.raises(ValueError, match="cannot make .*; choose another --run-dir"):
        run_directory.prepare(tmp_path / "run" / "inside")


# --- versions ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def versions(saved_run):
    """The folder of a run's versions, from iterations 2 and 10; every weight of the first is 1."""
    params = jax.eval_shape(tiny_run.parts().model.init, jax.random.key(0))
    with Checkpointer(saved_run / "versions", keep=None) as checkpoints:
        for iteration in (2, 10):
            ones = jax.tree.map(lambda x, scale=iteration / 2: jax.numpy.full(x.shape, scale, x.dtype), params)
            checkpoints.save_params(iteration, ones)
    return saved_run / "versions"


def test_a_version_is_loaded_by_its_path(versions):
    agent = players.load_agent(versions / "2")
    assert agent.iteration == 2 and {float(leaf.min()) for leaf in jax.tree.leaves(agent.params)} == {1.0}
    newest = players.load_agent(versions.parent)
    assert newest.iteration == players.load_agent(versions.parent / "checkpoints" / "6").iteration


@pytest.mark.parametrize("name", ["3", "11"])
def test_a_version_that_is_not_there_is_a_sentence_with_those_that_are(versions, name):
    with pytest.raises(ValueError, match=f"no version {name} in .*versions; name one of those in it: 2, 10$"):
        players.load_agent(versions / name)
    with pytest.raises(ValueError, match=f"no version {name} .* 2, 10$"):
        tournament.enter((f"{versions}/{name}@4", "random"))


def test_a_folder_of_versions_is_no_version(versions):
    with pytest.raises(ValueError, match="versions is no version; name one of those in it: 2, 10$"):
        players.load_agent(versions)


def test_a_version_can_be_an_opponent(versions):
    agent = players.load_agent(versions.parent)
    entrant = players.load(players.parse(f"{versions}/10"), agent, 3)
    assert entrant.name == f"{versions}/10@3" and float(jax.tree.leaves(entrant.params)[0].min()) == 5.0
    with pytest.raises(ValueError, match="no version 4 in"):
        players.load(players.parse(f"{versions}/4"), agent, 3)


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
        players.load_agent(run_dir / "versions" / "3")


def test_what_lies_in_no_run_is_no_version(tmp_path):
    (tmp_path / "versions" / "3").mkdir(parents=True)
    assert run_directory.find_saved(tmp_path / "versions" / "3") is None
    assert not players.is_run("random") and not players.is_run("")
