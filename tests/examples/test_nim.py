"""The worked example of a game in one file: Nim is Nim, it trains by the command line, and it plays everywhere."""

import functools
import io
import itertools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import muzero_jax
from muzero_jax import agent as agents
from muzero_jax import presets
from muzero_jax.apps.commands import evaluate, play, train
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.apps.engines.gtp import GtpSession
from muzero_jax.apps.evaluation import exhaustive, players
from muzero_jax.apps.play import terminal
from muzero_jax.apps.play.position import BLACK
from muzero_jax.apps.play.web_session import WebGame
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.own_game import load_environment
from muzero_jax.run import compilation_cache
from muzero_jax.storage import config as configs
from muzero_jax.storage.validation import validate

NIM = Path(__file__).parent.parent.parent / "examples" / "nim.py"
TINY = (
    "--devices 2 --network.width 16 --search.num-simulations 4 --self-play.num-envs 8 --self-play.rollout-length 4 "
    "--replay.replay-length 32 --replay.min-frames 8 --targets.unroll-steps 2 --targets.td-steps 4 "
    "--optimiser.batch-size 8 --optimiser.updates-per-iteration 2 --max-iterations 6 --iterations-per-chunk 6 "
    "--evaluation.interval-minutes 0 --evaluation.final-games 4 --evaluation.num-simulations 4 "
    "--evaluation.mcts-simulations 2 --no-tensorboard"
).split()


@pytest.fixture(autouse=True)
def no_compilation_cache(monkeypatch):
    """The user's folder stays as it is."""
    monkeypatch.setattr(compilation_cache, "enable", lambda: None)


@functools.cache
def environment():
    return load_environment(str(NIM))


# --- the rules --------------------------------------------------------------------------------------------------------


def state_of(heaps):
    """The position with these heaps, reached from the opening by taking from each in turn, player 0 to move."""
    state = environment().init(jax.random.key(0))
    cells = np.arange(5) < np.array(heaps)[:, None]
    return state._replace(observation=jnp.asarray(cells[:, :, None]), legal_action_mask=jnp.asarray(cells.ravel()))


def test_a_move_takes_an_object_and_all_to_its_right_and_the_last_object_wins():
    step = jax.jit(environment().move)(state_of((3, 4, 5)), jnp.int32(1))
    assert step.state.observation[..., 0].sum(axis=1).tolist() == [1, 4, 5]
    assert (step.reward, step.discount, step.is_last, step.state.current_player) == (0, -1, False, 1)
    step = jax.jit(environment().move)(state_of((0, 0, 2)), jnp.int32(10))
    assert (step.reward, step.discount, step.is_last) == (1, 0, True)
    assert step.state.rewards.tolist() == [1.0, -1.0]


def test_the_winning_moves_are_those_that_leave_a_nim_sum_of_0():
    """Bouton (1901): the mover has lost exactly where the exclusive or of the heaps is 0. All 119 positions."""
    everyone = list(itertools.product(range(4), range(5), range(6)))[1:]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(state_of, everyone))
    move = jax.jit(jax.vmap(jax.vmap(environment().move, (None, 0)), (0, None)))
    steps = jax.device_get(move(states, jnp.arange(15)))
    after = steps.state.observation[..., 0].sum(axis=-1)
    value = {(0, 0, 0): -1}  # for the player to move
    for index, heaps in sorted(enumerate(everyone), key=lambda item: sum(item[1])):
        legal = np.flatnonzero(states.legal_action_mask[index])
        results = {action: -value[tuple(after[index, action].tolist())] for action in legal}
        value[heaps] = max(results.values())
        nim_sums = {action: int(np.bitwise_xor.reduce(after[index, action])) for action in legal}
        assert [action for action in legal if results[action] == 1] == [a for a in legal if nim_sums[a] == 0]
        assert value[heaps] == (1 if np.bitwise_xor.reduce(heaps) else -1)
    opening = dict(zip(everyone, after, strict=True))[(3, 4, 5)]
    assert opening[1].tolist() == [1, 4, 5], "the one winning move of the opening: 1 xor 4 xor 5 is 0"


def test_it_is_checked_without_a_finding_and_its_preset_makes_a_run():
    assert muzero_jax.check(NIM) == []
    config = validate(presets.preset(str(NIM), None))
    assert config.network.kind == "observation" and config.env_name == "nim"
    assert 12 <= config.targets.td_steps <= 19, "about the twelve objects, which are the longest game"


def test_the_example_is_short():
    assert len(NIM.read_text().splitlines()) <= 60


# --- from the command line to play ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of a few iterations, begun by the command line from another folder than the one it is used from."""
    folder = tmp_path_factory.mktemp("nim")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compilation_cache, "enable", lambda: None)
        patch.chdir(folder)
        (folder / "nim.py").write_text(NIM.read_text())
        assert report_errors(train.main, ["--env", "nim.py", *TINY]) == 0
    return folder / "runs" / "nim-seed0"


def seated(run):
    return play.load(play.Arguments(run=run))


@pytest.mark.slow
def test_a_run_lies_in_a_folder_of_the_files_name_and_keeps_the_files_path(run):
    assert configs.load(run).env == str(run.parent.parent / "nim.py")
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert metrics[0]["total/updates"] >= 4 and metrics[0]["train/loss"] > 0, "two iterations that learn"
    assert json.loads((run / "summary.json").read_text())["finished"]


@pytest.mark.slow
def test_it_plays_in_the_terminal(run):
    position, thinker, moves = seated(run)
    out = io.StringIO()
    game = terminal.TerminalGame(position, thinker, moves, Console(file=out, width=100), colour=BLACK)
    game.run(io.StringIO("b1\nhint\nquit\n"))
    text = out.getvalue()
    assert text.startswith("Nim\n") and len(game.position.plies) == 2
    assert "\n  a b c d e\n1 1 1 1 . .\n2 1 1 1 1 .\n3 1 1 1 1 1\nblack to move\n" in text
    assert "I play " in text and "I would play " in text


@pytest.mark.slow
def test_it_speaks_gtp(run):
    position, thinker, moves = seated(run)
    session = GtpSession(position, thinker, moves)
    assert session.answer("play b b1") == "= \n\n"
    assert session.answer("showboard") == "= \n  a b c d e\n1 1 . . . .\n2 1 1 1 1 .\n3 1 1 1 1 1\n\n"
    answer = session.answer("genmove w")
    assert answer is not None and answer.startswith("= ") and len(session.position.plies) == 2
    assert session.answer("final_score") == "? cannot score\n\n"


@pytest.mark.slow
def test_it_has_a_plain_page_in_the_browser(run):
    game = WebGame(*seated(run))
    state = game.play("b1")
    assert state["board"] == "plain" and state["squares"][0] == ["1", ".", ".", ".", "."] and state["clicks"] == 1
    assert state["legal"] == ["a1", "a2", "b2", "c2", "d2", "a3", "b3", "c3", "d3", "e3"]
    assert game.agent_move()["ply"] == 2 and sum(game.analysis()["policy"].values()) == pytest.approx(1)


@pytest.mark.slow
def test_it_is_measured_by_a_match_and_loaded_from_python(run, capsys):
    arguments = f"match --run {run} --opponent mcts:4 --games 4 --devices 1 --num-simulations 2 --json"
    assert report_errors(evaluate.main, arguments.split()) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["games"] == 4 and result["illegal_actions"] == 0
    agent = muzero_jax.load(run)
    state = agent.environment.init(jax.random.key(0))
    action = agent.act(state)
    assert state.legal_action_mask[action] and agent.notation.write(state, 1) == "b1"


@pytest.mark.slow
def test_a_run_whose_file_is_gone_says_which(run, capsys):
    file = run.parent.parent / "nim.py"
    text = file.read_text()
    file.unlink()
    try:
        assert report_errors(play.main, ["--run", str(run)]) == EXIT_ERROR
        assert report_errors(train.main, ["--resume", "--run-dir", str(run), "--max-iterations", "9"]) == EXIT_ERROR
    finally:
        file.write_text(text)
    first, second = capsys.readouterr().err.splitlines()[-2:]
    assert f"cannot read {file} (No such file or directory)" in first
    assert f"cannot read {file} (No such file or directory)" in second


@pytest.mark.slow
def test_a_resumed_run_is_found_by_its_file(run, monkeypatch):
    monkeypatch.chdir(run.parent.parent)
    default, _ = train.choose_default(["--env", "./nim.py", "--resume", "--devices", "2"])
    assert default.session.run_dir == "runs/nim-seed0"


def test_notation_of_cells_falls_back_to_numbers_where_actions_are_no_cells():
    moves = make_notation(environment()._replace(num_actions=16))
    state = environment().init(jax.random.key(0))
    assert [moves.write(state, action) for action in (0, 14, 15)] == ["a1", "e3", "15"]
    assert make_notation(environment()._replace(num_actions=17)).write(state, 0) == "0"
    assert make_notation(environment()._replace(board=None)).write(state, 3) == "3"


@pytest.mark.slow
def test_it_learns_to_play_perfectly_in_the_updates_of_a_minute(tmp_path):
    """Every reply of every opponent is tried: as the first mover, whose win Nim is, it never loses."""
    run = tmp_path / "run"
    budget = "--updates 720 --evaluation.interval-minutes 0 --evaluation.final-games 4 --no-tensorboard".split()
    assert report_errors(train.main, ["--env", str(NIM), *budget, "--run-dir", str(run)]) == 0
    agent = agents.load_agent(run)
    assert exhaustive.walk(environment(), players.searching(agent), agent.params, moves_first=True).losses == 0
    assert muzero_jax.load(run).act(environment().init(jax.random.key(0))) == 1
