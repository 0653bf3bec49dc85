"""The page in a real browser, headless: games by clicks and by keys, mistakes, the agent's thoughts, light and dark."""

import contextlib
import functools
import shutil
import threading
from typing import NamedTuple

import pytest

pytest.importorskip("selenium", reason="the dev extra is not installed")

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from muzero_jax.apps.play import web_server
from muzero_jax.apps.play.web_session import WebGame
from muzero_jax.games.catalogue import make_notation
from tests.reference.play import fake_thinker, of_chance, opening

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="no chromium with its chromedriver is installed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # selenium leaves its driver's pipes to the collector
]
PATIENCE = 60  # seconds; a busy machine compiles the rules of a game in ten


class Site(NamedTuple):
    """A page's address, and the game that it shows."""

    address: str
    game: WebGame


@contextlib.contextmanager
def serving(position, favourite=4, **options):
    """The site of a game against an agent that likes an action, for as long as the block lasts."""
    game = WebGame(position, fake_thinker(favourite=favourite, **options), make_notation(position.environment))
    listener = web_server.listen(0)
    server = web_server.make_server(game)
    thread = threading.Thread(target=functools.partial(server.run, sockets=[listener]))
    thread.start()
    try:
        yield Site(f"http://127.0.0.1:{listener.getsockname()[1]}/", game)
    finally:  # a thread that runs on would keep a failed test's process alive
        server.should_exit = True
        thread.join()
        listener.close()


def served(name):
    return serving(opening(name))


class Page:
    """What a person does with the page and sees on it; the board is drawn anew whenever something happened."""

    def __init__(self, driver):
        self.driver = driver

    def open(self, site):
        self.driver.get(site.address + "style.css")  # the same memory, and no page that plays on
        self.driver.execute_script("localStorage.clear()")
        site.game.new()
        self.driver.get(site.address)
        self.settle()
        return self

    def wait(self, condition):
        WebDriverWait(self.driver, PATIENCE, poll_frequency=0.02).until(lambda _: condition())

    def settle(self):
        self.wait(lambda: self.driver.execute_script("return document.body.dataset.busy") == "false")

    def find(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def count(self, selector):
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def text(self, identity):
        return self.driver.execute_script("return document.getElementById(arguments[0]).innerText.trim()", identity)

    def label(self, name):
        return self.driver.execute_script(f"return document.querySelector('[data-cell=\"{name}\"]').ariaLabel")

    def click(self, *names):
        """Clicks on cells, one after another."""
        for name in names:
            self.find(f'[data-cell="{name}"]').click()
            self.settle()

    def press(self, selector):
        self.find(selector).click()
        self.settle()

    def type(self, *keys):
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)
        self.settle()

    def choose(self, identity, text):
        Select(self.find(f"#{identity}")).select_by_visible_text(text)
        self.settle()

    def moves(self):
        return self.driver.execute_script("return [...document.querySelectorAll('#moves li')].map((i) => i.innerText)")

    def hurry(self):
        """Takes the pauses away that let a person follow two agents, until the page is opened again."""
        self.driver.execute_script("const wait = setTimeout; window.setTimeout = (call) => wait(call, 0)")

    def errors(self):
        """What the browser complained of, but for the orders that the server refused."""
        log = self.driver.get_log("browser")
        allowed = "400 (Bad Request)", "favicon.ico"  # a style sheet, opened alone, has no icon
        return [entry["message"] for entry in log if not any(text in entry["message"] for text in allowed)]


@pytest.fixture(scope="module")
def driven():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-proxy-server"):
        options.add_argument(argument)
    options.add_argument("--window-size=1180,820")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    yield Page(driver)
    driver.quit()


@pytest.fixture
def page(driven):
    yield driven
    assert driven.errors() == []


def test_a_full_game_by_clicks_with_an_illegal_click_the_overlay_and_undo(page):
    with served("tic_tac_toe") as site:
        page.open(site)
        assert page.text("title") == "Tic-tac-toe" and page.text("status") == "X to move"
        page.click("a1")
        assert page.moves() == ["a1", "b2"] and page.label("a1") == "a1, X" and page.label("b2") == "b2, O, last move"
        page.click("b2")
        assert page.text("message") == "The rules do not allow b2 here." and len(page.moves()) == 2
        page.choose("overlay", "search policy")
        assert page.label("c3") == "c3, empty, agent: 40%, the agent's move"
        assert page.count(".note") and page.text("would") == "It would play c3 (ringed)."
        assert "Value for X: +0.04 after 4 simulations, +0.25 at first sight" in page.text("value")
        page.choose("overlay", "nothing")
        assert not page.count(".note")
        page.click("b1")
        page.press("#undo")
        assert len(page.moves()) == 2
        page.click("b1", "c1")
        assert page.text("status") == "X wins" and page.count("path.won") == 3
        page.press("#new")
        assert page.text("status") == "X to move" and not page.moves()


def test_a_game_with_a_swap_by_keys_only(page):
    with served("hex") as site:
        page.open(site)
        page.choose("you", "both sides")
        page.driver.execute_script("document.querySelector('#board [tabindex=\"0\"]').focus()")
        page.type(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ENTER)
        assert page.label("c1") == "c1, black, last move"
        page.find('#choices [data-move="swap-pieces"]').send_keys(Keys.ENTER)
        page.settle()
        assert page.label("a3") == "a3, white, last move" and not page.count("#choices button")
        page.find('[data-cell="c1"]').send_keys(Keys.ARROW_DOWN)
        page.type(Keys.SPACE)
        assert page.label("c2") == "c2, black, last move" and page.text("status") == "White to move"


def test_2048_by_arrow_keys_with_a_hint_and_watched(page):
    with serving(of_chance("2048"), favourite=1, most_value=100_000.0) as site:  # the preset's
        page.open(site)
        assert page.text("status") == "0 points, 0 moves" and page.count(".tile") == 2
        for key in (Keys.ARROW_LEFT, Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_UP) * 3:
            page.find("body").send_keys(key)
            page.settle()
        assert len(page.moves()) >= 6 and set(page.moves()) <= {"left", "up", "right", "down"}
        assert page.text("status").startswith(f"{site.game.position.total:,.0f} points") and not page.text("message")
        page.press("#hint")
        assert "Expected from here: +0.04 after 4 simulations" in page.text("value") and page.count("#pad .choice") == 1
        page.hurry()
        page.choose("you", "no: watch the agent")
        page.wait(lambda: page.text("status").startswith("Game over: "))


def test_backgammon_by_clicks_a_checker_then_a_target_and_the_agent_plays_its_whole_turn(page):
    with serving(of_chance("backgammon"), favourite=4) as site:
        page.open(site)
        page.hurry()
        assert page.count("circle.stone") == 30 and page.count(".die") == 2 and page.text("status") == "X to move"
        for _ in range(2):
            page.click(*site.game.state(0)["legal"][-1].split("/"))
        page.wait(lambda: site.game.position.colour_to_move == 0)
        page.settle()
        movers = [ply.colour for ply in site.game.position.plies]
        assert movers[:2] == [0, 0] and set(movers[2:]) == {1} and len(page.moves()) == 2
        page.press("#hint")
        assert "Value for X: +0.04" in page.text("value")


def test_pong_starts_with_a_key_and_its_agents_thoughts_stay_while_it_plays(page):
    pytest.importorskip("octax", reason="the octax extra is not installed")
    with serving(of_chance("octax:pong"), favourite=1) as site:
        page.open(site)
        assert page.text("pause") == "Start" and page.text("keys").startswith("Keys: arrow up, arrow down.")
        page.find("body").send_keys(Keys.ARROW_UP)
        page.wait(lambda: len(page.moves()) > 3)
        tap = "document.dispatchEvent(new KeyboardEvent(type, {key: 'ArrowDown'}))"
        page.driver.execute_script(f"for (const type of ['keydown', 'keyup']) {tap}")
        page.wait(lambda: "down" in page.moves())  # although the key was up again before the next move
        page.find("#new").click()
        page.wait(lambda: page.text("status") == "0 points, 0 moves" and page.text("pause") == "Start")
        Select(page.find("#overlay")).select_by_visible_text("search policy")
        Select(page.find("#you")).select_by_visible_text("no: watch the agent")
        page.wait(lambda: len(page.moves()) > 3 and not page.find("#thoughts").get_property("hidden"))
        watch = "new MutationObserver(() => (window.flips = 1)).observe(document.getElementById('thoughts'), "
        page.driver.execute_script(watch + "{attributes: true, attributeFilter: ['hidden']})")
        page.wait(lambda: len(page.moves()) > 12)
        assert page.driver.execute_script("return window.flips") is None
        assert page.find("#bar").get_property("hidden") and "%" in page.find("#actions button").text
        page.driver.execute_script("for (const id of ['hint', 'new']) document.getElementById(id).click()")
        page.wait(lambda: len(page.moves()) < 8)  # a new game goes on at once, but begins
        page.find("#pause").click()
        page.settle()
