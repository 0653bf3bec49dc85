"""An exported network says what ours says, and the page that searches with it moves as Python's search does."""

import dataclasses
import shutil
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from muzero_jax import agent as agents
from muzero_jax import building, presets
from muzero_jax.apps.commands.command_line import EXIT_ERROR, report_errors
from muzero_jax.building.searches import unbounded_simulator
from muzero_jax.ops.legal_actions import uniform_legal_action
from muzero_jax.types import SearchRoots
from scripts import export_onnx
from scripts.browser import page as pages
from tests.scripts.conftest import noise_params

pytest.importorskip("onnx", reason="the onnx extra is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="the dev extra is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
AGENTS = ("hex_5x5", "hex_6x6", "connect_four")
PAGES = ("hex_5x5", "connect_four")
CLOSE = 2e-4
SAME_MOVES = 0.95


class Games(NamedTuple):
    """Random games, [plies, games]: what was to be seen before each move, and the move."""

    roots: SearchRoots
    over: np.ndarray
    action: np.ndarray


def random_games(environment, *, num_games, num_plies, seed):
    """Half of them have the last legal action as their second move: in Hex that is the swap."""
    states = jax.vmap(environment.init)(jax.random.split(jax.random.key(seed), num_games))
    is_odd = jnp.arange(num_games) % 2 == 1
    last = environment.num_actions - 1

    def one_move(states, ply):
        roots = environment.roots(states)
        action = uniform_legal_action(jax.random.fold_in(jax.random.key(seed), ply), roots.legal_action_mask)
        action = jnp.where(is_odd & (ply == 1) & roots.legal_action_mask[:, last], last, action)
        return jax.vmap(environment.move)(states, action).state, Games(roots, states.terminated, action)

    return jax.device_get(jax.jit(lambda states: jax.lax.scan(one_move, states, jnp.arange(num_plies))[1])(states))


def one_position_a_game(environment, *, num_games, seed):
    """(positions [N], the moves that led to each): from the start of a game to its last move."""
    games = random_games(environment, num_games=num_games, num_plies=30, seed=seed)
    lengths = (~games.over).sum(axis=0)
    plies = np.random.default_rng(seed).integers(lengths)
    rows = np.arange(num_games)
    positions = jax.tree.map(lambda leaf: leaf[plies, rows], games.roots)
    return positions, [games.action[:ply, game].tolist() for game, ply in enumerate(plies)]


def differences(agent, positions):
    """The greatest difference of every output, over the positions and a move from each."""
    simulator = unbounded_simulator(agent.config, agent.world)
    models = {name: model.SerializeToString() for name, model in export_onnx.export(agent).items()}
    sessions = {name: onnxruntime.InferenceSession(model) for name, model in models.items()}
    root, expand = jax.jit(simulator.root), jax.jit(simulator.expand, static_argnums=1)
    worst = {}

    def compare(network, ours, **inputs):
        names = [output.name for output in sessions[network].get_outputs()]
        for name, array in zip(names, sessions[network].run(names, inputs), strict=True):
            wanted = np.asarray(getattr(ours, name))
            assert array.shape == wanted.shape and array.dtype == wanted.dtype
            worst[name] = max(worst.get(name, 0), np.abs(array - wanted).max())

    for i, observation in enumerate(positions.observation.astype(np.float32)):
        node = root(agent.params, SearchRoots(observation[None], None, None))
        compare("initial", node, observation=observation[None])
        action = np.array([i % agent.environment.num_actions], np.int32)
        child = expand(agent.params, None, action, node.embedding)
        compare("recurrent", child, parent=np.asarray(node.embedding), action=action)
    return worst


@pytest.mark.parametrize("name", [*(pytest.param(name, marks=pytest.mark.slow) for name in AGENTS[:-1]), AGENTS[-1]])
def test_the_networks_of_a_trained_agent_say_what_ours_say(name):
    agent = export_onnx.load(f"agent:{name}")
    positions, _ = one_position_a_game(agent.environment, num_games=20, seed=0)
    worst = differences(agent, positions)
    assert set(worst) == {"prior", "value", "embedding", "reward", "discount"}
    assert max(worst.values()) < CLOSE


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("mlp", "observation", "tower", "attention")]


@pytest.mark.parametrize("kind", ["fully_convolutional", *SLOW])
def test_networks_of_every_kind_can_be_exported(kind):
    config = presets.preset("hex", 3)
    network = dataclasses.replace(config.network, kind=kind, width=32, compute_dtype="float32", predict_discount=True)
    config = dataclasses.replace(config, network=network, model="learned_legality")
    world, algorithm = building.build(config)
    params = jax.tree.map(jnp.asarray, noise_params(world.model))
    agent = agents.Agent(config, world, algorithm.make_search, 8, params)
    positions, _ = one_position_a_game(world.environment, num_games=6, seed=1)
    assert max(differences(agent, positions).values()) < CLOSE


def test_the_page_considers_more_actions_with_a_larger_budget():
    """8 of 26 in self-play with 16 simulations; for four times as many twice that, and never more than there are."""
    considered = export_onnx.description(export_onnx.load("agent:hex_5x5"))["considered"]
    assert considered == {16: 8, 32: 11, 64: 16, 128: 23, 256: 26}


def refusal(capsys, *arguments):
    assert report_errors(export_onnx.main, list(arguments)) == EXIT_ERROR
    return capsys.readouterr().err


def test_an_agent_without_dynamics_is_refused(capsys, tmp_path):
    error = refusal(capsys, "agent:hex_5x5_rules", "--out", str(tmp_path / "page"))
    assert "it has no dynamics to export" in error and not (tmp_path / "page").exists()


def test_a_missing_package_is_one_sentence(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(export_onnx, "find_spec", lambda name: None)
    assert "pip install -e '.[onnx]'" in refusal(capsys, "agent:hex_5x5", "--out", str(tmp_path))


def test_without_npm_the_page_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(pages.shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match="install Node.js, or leave the page out"):
        pages.fetch(tmp_path)


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "x.tgz").write_text("no archive")
    with pytest.raises(ValueError, match="no archive of onnxruntime-web"):
        pages.write(tmp_path, {}, {}, tmp_path / "x.tgz")


def test_what_the_page_has_beside_that_of_the_server_is_at_most_345_lines():
    files = sorted(Path(pages.__file__).parent.glob("*.js"))
    assert 0 < sum(len(file.read_text().splitlines()) for file in files) <= 345


def test_the_servers_modules_become_one_script_each_after_those_that_it_imports():
    text = pages.bundle()
    assert "import " not in text and "export " not in text
    ends = ("function element(", "class Tip", "class Board", "board = new (BOARDS")
    places = [text.index(part) for part in ends]
    assert places == sorted(places) and all(text.count(part) == 1 for part in ends)


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    if shutil.which("npm") is None:
        pytest.skip("no npm is installed, which brings onnxruntime-web")
    try:
        return pages.fetch(tmp_path_factory.mktemp("npm"))
    except ValueError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def driver():
    pytest.importorskip("selenium", reason="the dev extra is not installed")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    if not (CHROMIUM and CHROMEDRIVER):
        pytest.skip("no chromium with its chromedriver is installed")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.add_argument("--window-size=1180,820")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    driver.set_script_timeout(300)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def opened(driver, runtime, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    def open_page(name):
        out = folder / name
        if not out.exists():
            assert export_onnx.main([f"agent:{name}", "--out", str(out), "--runtime", str(runtime)]) == 0
        driver.get((out / "index.html").as_uri())
        return driver

    return open_page


SEARCHES = """
const [games, budget, done] = arguments;
(async () => {
  const found = [];
  for (const moves of games) {
    const at = moves.reduce(game.play, game.start());
    const { action, value } = await think(at, budget);
    found.push({ action, value, legal: game.legal(at), seen: [...game.observe(at)], over: at.winner !== undefined });
  }
  return found;
})().then(done, (error) => done(error.stack));
"""


def agreement(driver, name, *, num_positions, num_simulations):
    """The share of positions in which the page moves as Python does; it must see the same in all of them."""
    agent = export_onnx.load(f"agent:{name}")
    positions, moves = one_position_a_game(agent.environment, num_games=num_positions, seed=2)
    found = driver.execute_async_script(SEARCHES, moves, num_simulations)
    assert isinstance(found, list), found
    assert not any(one["over"] for one in found)
    assert [one["legal"] for one in found] == positions.legal_action_mask.tolist()
    assert np.array_equal([one["seen"] for one in found], positions.observation.reshape(num_positions, -1))
    ours = jax.jit(agent.search(num_simulations))(agent.params, jax.random.key(0), positions)
    is_same = np.asarray(ours.action) == [one["action"] for one in found]
    gap = np.abs(np.asarray(ours.value) - [one["value"] for one in found])
    assert np.median(gap) < CLOSE
    return is_same.mean()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # selenium leaves its driver's pipes to the collector
def test_the_page_moves_as_python_does(opened):
    assert agreement(opened("hex_5x5"), "hex_5x5", num_positions=20, num_simulations=16) >= SAME_MOVES


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("name", PAGES)
def test_the_page_moves_as_python_does_in_200_positions(opened, name):
    share = agreement(opened(name), name, num_positions=200, num_simulations=64)
    print(f"{name}: {share:.1%} of 200 moves")
    assert share >= SAME_MOVES


FIRST = "textOf(actionsOf(played.at(-1))[0])"


def seen(driver, script):
    return driver.execute_script(f"return {script}")


def settle(driver):
    """Waits until the agent has answered; then the page says what it has to say."""
    from selenium.webdriver.support.ui import WebDriverWait

    is_still = "document.body.dataset.busy === 'false'"
    WebDriverWait(driver, 120, poll_frequency=0.05).until(lambda driver: seen(driver, is_still))
    return seen(driver, "document.getElementById('status').innerText")


def click(driver, place):
    driver.find_element("css selector", place).click()
    return settle(driver)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_game_on_the_page_goes_on_to_its_end(opened):
    """Four stones in the first column, where the agent lets them stand, win; otherwise the agent has won."""
    driver = opened("connect_four")
    settle(driver)
    driver.execute_script("document.getElementById('budget').value = '16'")
    while (status := click(driver, f"[data-cell='{seen(driver, FIRST)}']")) == "Red to move":
        assert seen(driver, "document.querySelectorAll('.last').length") == 1
    assert status in ("Red wins", "Yellow wins") and seen(driver, "played.at(-1).moves[0]") == 0
    assert len(seen(driver, "[...document.querySelectorAll('.won')]")) >= 4


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_the_page_says_when_the_agent_swaps_shows_what_it_thinks_and_takes_moves_back(opened):
    driver = opened("hex_5x5")
    assert settle(driver) == "Black to move"
    labels = seen(driver, "[...document.querySelectorAll('#board .label')].map((label) => label.textContent).join('')")
    assert labels == "abcde12345"
    click(driver, "[data-cell='c3']")
    message = seen(driver, "document.getElementById('message').innerText")
    assert message == "White swapped: black's stone became white's, mirrored."
    assert seen(driver, "document.querySelector('[data-cell=c3]').ariaLabel") == "c3, white, last move"
    driver.execute_script("const show = document.getElementById('overlay'); show.value = 'values'")
    driver.execute_script("document.getElementById('overlay').dispatchEvent(new Event('change'))")
    settle(driver)
    lines = seen(driver, "[...document.querySelectorAll('#lines td:first-child')].map((line) => line.innerText)")
    assert 1 <= len(lines) <= 4 and all(len(line.split()) <= 6 for line in lines)
    assert seen(driver, "document.querySelector('.choice').parentElement.dataset.cell") == lines[0].split()[0]
    click(driver, "#undo")
    assert seen(driver, "[played.length, document.querySelectorAll('.stone').length]") == [1, 0]
    assert [entry["message"] for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
