"""`train.py --grow`: one budget for all sizes, each from the weights of the one before, as one run that goes on."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from muzero_jax import presets
from muzero_jax.commands import grow, several, train
from muzero_jax.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.storage import config as configs
from muzero_jax.storage import run_directory
from muzero_jax.storage.config import Config
from tests.reference import told_runs

ROOT = Path(__file__).parents[2]
NETWORK = '''
import jax.numpy as jnp
from functools import partial
from muzero_jax.networks import value_transform
from muzero_jax.types import Model, NetworkOutput

def make_model(environment, support):
    """Two numbers for every board: how much a stone is worth, and how much it is liked."""
    shape, actions = environment.observation_shape, environment.num_actions

    def judge(params, embedding):
        zeros = jnp.zeros((len(embedding), support.num_bins))
        value = zeros + params["worth"] * embedding.mean(1, keepdims=True)
        return NetworkOutput(embedding, zeros, value, jnp.zeros((len(embedding), actions)) + params["liking"])

    def begin(params, observation):
        return judge(params, observation.reshape(len(observation), -1).astype(jnp.float32))

    return Model(
        lambda key: {"worth": jnp.ones(()), "liking": jnp.ones(())},
        begin,
        lambda params, embedding, action: judge(params, embedding * params["worth"] * (1 + 0 * action[:, None])),
        lambda params, embedding: embedding.reshape(-1, *shape),
        to_scalar=partial(value_transform.to_scalar, support=support),
        scalar_loss=partial(value_transform.scalar_loss, support=support),
    )
'''


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """A network of one's own whose weights fit every board."""
    file = tmp_path_factory.mktemp("networks") / "net.py"
    file.write_text(NETWORK)
    return str(file)


@pytest.fixture
def started(monkeypatch):
    """The commands that are started, by size. Each leaves the run that its flags mean; the first `ends` end well."""
    commands = {}

    def wait(arguments):
        run_dir = Path(arguments[arguments.index("--run-dir") + 1])
        commands[run_dir.name] = arguments
        ends_well = len(commands) <= wait.ends
        if not run_dir.exists():
            config = train.parse(arguments)[0]
            told_runs.tell(run_dir, [0.2], seed=config.seed, final=0.5 if ends_well else None, config=config)
        return 0 if ends_well else 130

    wait.ends = 9
    monkeypatch.setattr(several, "wait", wait)
    commands.clear()
    wait.commands = commands
    return wait


def command(run_dir, network, *flags, sizes="3,5,7"):
    return ["--grow", sizes, "--run-dir", str(run_dir), "--network", network, *flags]


def loaded(run_dir):
    """The configs of the runs of a folder, by size."""
    return {path.name: configs.inspect(path) for path in sorted(run_dir.iterdir())}


# --- what is started --------------------------------------------------------------------------------------------------


def test_each_size_begins_with_the_one_before_and_gets_twice_as_long(started, network, tmp_path, capsys):
    assert train.main(command(tmp_path, network, "--minutes", "70", "--seed", "4", "--replay.end-weight", "3")) == 0
    runs = loaded(tmp_path)
    assert [(name, run.board_size, run.minutes) for name, run in runs.items()] == [
        ("3x3", 3, 10.0),
        ("5x5", 5, 20.0),
        ("7x7", 7, 40.0),
    ]
    assert [run.init_from for run in runs.values()] == [None, str(tmp_path / "3x3"), str(tmp_path / "5x5")]
    assert all((run.env, run.seed, run.replay.end_weight) == ("hex", 4, 3) for run in runs.values())
    said = capsys.readouterr().out
    assert "growing     3x3 for 10 minutes, 5x5 for 20 minutes, 7x7 for 40 minutes" in said
    assert "5x5, 2 of 3" in said and f"--run {tmp_path / '7x7'} --web" in said.splitlines()[-1]


def test_every_size_learns_as_the_last_and_has_all_else_of_its_own_preset(started, tmp_path):
    """8x8 takes convolutions and Muon, which 5x5 alone would not."""
    train.main(["--grow", "5,8", "--run-dir", str(tmp_path), "--network.width", "16", "--frames", "300"])
    small, large = loaded(tmp_path).values()
    preset = presets.hex_any(8)
    changed = {"network": replace(preset.network, width=16), "minutes": None}
    assert small == replace(presets.hex_any(5), frames=100, optimiser=preset.optimiser, **changed)
    assert large == replace(preset, frames=200, init_from=str(tmp_path / "5x5"), **changed)


def test_a_network_of_ones_own_grows_over_sizes_whose_presets_take_different_ones(started, network, tmp_path):
    assert train.main(command(tmp_path, network, "--frames", "300", sizes="5,8")) == 0
    networks = [run.network for run in loaded(tmp_path).values()]
    assert [made.file for made in networks] == [str(network)] * 2 and networks[0].kind != networks[1].kind


def test_the_first_size_may_begin_with_weights_too(started, network, tmp_path):
    train.main(command(tmp_path, network, "--init-from", "agent:mine", "--max-iterations", "3", sizes="2,3"))
    assert [run.init_from for run in loaded(tmp_path).values()] == ["agent:mine", str(tmp_path / "2x2")]


def test_without_a_folder_it_is_named_after_the_sizes(started, network, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train.main(["--grow=2,3", "--network", network, "--model", "rules", "--seed", "1"])
    assert sorted(loaded(tmp_path / "runs" / "hex-2-3-rules-seed1")) == ["2x2", "3x3"]


def test_help_shows_the_last_sizes_defaults_and_starts_nothing(started, capsys):
    assert train.main(["--grow", "3,5", "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--grow STR\n    train Hex at rising sizes" in shown and "twice as long" in " ".join(shown.split())
    assert shown.count("--board-size INT") == 1 and not started.commands


# --- the budget -------------------------------------------------------------------------------------------------------


def test_shares_of_whole_numbers_add_up_to_the_budget():
    """7 shares of 1,000,003: they end at 142,857.6 (1), 428,572.7 (3) and 1,000,003 (7), each cut to a whole number."""
    budgets = grow.split_budget(Config(minutes=None, frames=1_000_003, updates=7), 3)
    assert budgets == [
        {"frames": 142_857, "updates": 1},
        {"frames": 285_715, "updates": 2},
        {"frames": 571_431, "updates": 4},
    ]


def test_shares_of_minutes_add_up_and_can_be_read():
    assert grow.split_budget(Config(minutes=60.0), 2) == [{"minutes": 20.0}, {"minutes": 40.0}]
    minutes = [share["minutes"] for share in grow.split_budget(Config(minutes=60.0), 3)]
    assert minutes == [8.5714, 17.1429, 34.2857] and sum(minutes) == pytest.approx(60.0, abs=1e-9)


# --- going on ---------------------------------------------------------------------------------------------------------


def test_an_interrupted_size_is_gone_on_with_and_the_rest_follow(started, network, tmp_path, capsys):
    words = command(tmp_path, network, "--frames", "7000")
    started.ends = 1
    assert train.main(words) == 130
    assert list(started.commands) == ["3x3", "5x5"] and "stopped at 5x5; go on with" in capsys.readouterr().out
    began = dict(started.commands)
    started.commands.clear()
    started.ends = 9
    assert train.main([*words, "--resume"]) == 0
    assert list(started.commands) == ["5x5", "7x7"] and "has ended" in capsys.readouterr().out
    place = began["5x5"].index("--init-from")  # what began does not read its source again
    assert started.commands["5x5"] == [*began["5x5"][:place], *began["5x5"][place + 2 :], "--resume"]
    assert "--resume" not in started.commands["7x7"]
    assert sum(run.frames for run in loaded(tmp_path).values()) == 7000


def test_a_grown_folder_may_be_moved_before_it_is_gone_on_with(started, network, tmp_path):
    started.ends = 1
    train.main(command(tmp_path / "old", network, "--frames", "7000"))
    (tmp_path / "old").rename(tmp_path / "new")
    started.commands.clear()
    started.ends = 9
    assert train.main([*command(tmp_path / "new", network, "--frames", "7000"), "--resume"]) == 0
    assert list(started.commands) == ["5x5", "7x7"]


def test_overwrite_deletes_nothing_before_the_first_weights_were_looked_at(started, network, tmp_path, capsys):
    train.main(command(tmp_path, network))
    words = command(tmp_path, network, "--overwrite", "--init-from", "agent:none_such")
    assert report_errors(train.main, words) == EXIT_ERROR
    assert "there is no agent 'none_such'" in capsys.readouterr().err and sorted(loaded(tmp_path)) == [
        "3x3",
        "5x5",
        "7x7",
    ]


def test_a_larger_budget_goes_to_the_last_size_alone_once_all_have_ended(started, network, tmp_path):
    train.main(command(tmp_path, network, "--frames", "7000"))
    started.commands.clear()
    train.main(command(tmp_path, network, "--frames", "14000", "--resume"))
    assert list(started.commands) == ["7x7"] and "8000" in started.commands["7x7"]


def test_overwrite_deletes_all_old_sizes_first(started, network, tmp_path):
    train.main(command(tmp_path, network))
    started.ends = 0
    started.commands.clear()
    assert train.main(command(tmp_path, network, "--overwrite")) == 130
    assert list(loaded(tmp_path)) == ["3x3"] and not run_directory.has_ended(tmp_path / "3x3"), "it began anew"


def test_overwrite_spares_the_run_that_the_first_size_begins_with(started, network, tmp_path, capsys):
    train.main(command(tmp_path, network))
    started.commands.clear()
    words = command(tmp_path, network, "--overwrite", "--init-from", str(tmp_path / "7x7"))
    assert report_errors(train.main, words) == 2
    assert "--overwrite would delete" in capsys.readouterr().err and not started.commands


@pytest.mark.parametrize("flags", [["--network.num-bins", "5"], ["--seed", "1"]])
def test_resume_with_other_flags_is_refused(started, network, tmp_path, capsys, flags):
    train.main(command(tmp_path, network))
    started.commands.clear()
    assert report_errors(train.main, command(tmp_path, network, "--resume", *flags)) == 2
    assert "was trained with other flags" in capsys.readouterr().err and not started.commands


# --- what cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["5"], "--grow 5 must be two or more sizes of a board from 2 to 19, each larger than the one before"),
        (["5,5"], "each larger than the one before"),
        (["7,5"], "each larger than the one before"),
        (["1,5"], "from 2 to 19"),
        (["9,20"], "from 2 to 19"),
        (["5,,7"], "two or more sizes"),
        (["small,large"], "two or more sizes"),
        (["3,5", "--seeds", "2"], "--seeds and --grow both start several runs; give one of them"),
        (["3,5", "--board-size", "5"], "--grow names the sizes of the board itself; leave out --board-size"),
        (["3,5", "--env", "connect_four"], "--env connect_four has one size"),
        (["3,5", "--vary", "optimiser.learning-rate", "1e-3"], "--vary and --grow both start several runs"),
        (["3,5", "--offline", "games"], "--offline has games of one size; leave it out with --grow"),
        (["3,5", "--autotune"], "--autotune may find other sizes for each size"),
        (["3,5", "--frames", "2"], "--frames 2 is too little for 2 sizes; give at least 3"),
        (["3,5", "--minutes", "-3"], "--minutes is -3.0"),
        (["3,5", "--search.num-simulations", "0"], "search.num-simulations"),
        (["3,5", "--resume", "--run-dir", "/no/such/runs"], "there is no run to resume"),
    ],
)
def test_what_cannot_grow_is_one_sentence_before_anything_is_trained(started, network, flags, sentence, capsys):
    assert report_errors(train.main, ["--grow", *flags, "--network", network]) == 2
    error = capsys.readouterr().err
    assert sentence in error and error.count("\n") == 1 and not started.commands


def test_a_network_that_depends_on_the_board_is_refused_with_the_kind_to_take(started, tmp_path, capsys):
    assert report_errors(train.main, ["--grow", "2,3", "--run-dir", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert "but on 2x2 its action_encoder.embedding is float32[5,128] (on 3x3 it needs float32[10,128])" in error
    assert "add --network.kind fully_convolutional" in error and error.count("\n") == 1
    assert not started.commands and not (tmp_path / "run").exists()


def test_a_run_takes_no_sizes_into_its_folder(started, network, tmp_path, capsys):
    told_runs.tell(tmp_path / "run", [0.5])
    assert report_errors(train.main, command(tmp_path / "run", network)) == 2
    assert "is a run itself, and takes no others" in capsys.readouterr().err


# --- one run ----------------------------------------------------------------------------------------------------------


def test_one_run_begins_with_what_init_from_names(monkeypatch, tmp_path, capsys):
    from muzero_jax.arithmetic import compilation_cache
    from muzero_jax.run import runner

    seen = []
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)
    monkeypatch.setattr(runner, "train", lambda *all: seen.append(all[0]) or runner.Result({}, interrupted=True))
    monkeypatch.chdir(tmp_path)
    told_runs.tell(tmp_path / "run", [0.5])
    words = ["--env", "hex", "--board-size", "3", "--devices", "1", "--init-from", "run"]
    assert report_errors(train.main, words) == 130
    assert [config.init_from for config in seen] == [str(tmp_path / "run")]
    capsys.readouterr()
    assert report_errors(train.main, [*words, "--run-dir", "run", "--overwrite"]) == 2
    assert "--overwrite would delete" in capsys.readouterr().err and (tmp_path / "run").exists()


@pytest.mark.slow
def test_hex_grows_from_2x2_to_3x3(network, tmp_path):
    """The real command, and what its last size began with."""
    tiny = (
        "--devices 2 --max-iterations 12 --search.num-simulations 2 --self-play.num-envs 8 --optimiser.batch-size 8 "
        "--optimiser.updates-per-iteration 1 --evaluation.interval-minutes 0 --evaluation.final-games 4 "
        "--evaluation.num-simulations 2 --evaluation.mcts-simulations 1 --replay.min-frames 1"
    ).split()
    words = [sys.executable, "experiments/train.py", *command(tmp_path / "grown", network, *tiny, sizes="2,3")]
    result = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    summaries = [json.loads((tmp_path / "grown" / size / "summary.json").read_text()) for size in ("2x2", "3x3")]
    assert [summary["iteration"] for summary in summaries] == [4, 8]
    assert f"beginning with the weights that {tmp_path / 'grown' / '2x2'} had after iteration 4" in result.stdout
