"""The page in a real browser, headless: a game by clicks, a game by keys, mistakes, the overlay, light and dark."""

import contextlib
import functools
import shutil
import threading
from typing import NamedTuple

import pytest

pytest.importorskip("selenium", reason="the dev extra is not installed")
pytest.importorskip("starlette", reason="the web extra is not installed")
pytest.importorskip("uvicorn", reason="the web extra is not installed")

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import make_environment
from muzero_jax.play import web_server
from muzero_jax.play.position import Position
from muzero_jax.play.web_session import WebGame
from tests.reference.play import fake_thinker

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
def served(name):
    """A game against an agent that likes action 4."""
    environment = make_environment(name, board_size=3 if name == "hex" else None)
    game = WebGame(Position(environment), fake_thinker(favourite=4), make_notation(environment))
    listener = web_server.listen(0)
    server = web_server.make_server(game)
    thread = threading.Thread(target=functools.partial(server.run, sockets=[listener]))
    thread.start()
    yield Site(f"http://127.0.0.1:{listener.getsockname()[1]}/", game)
    server.should_exit = True
    thread.join()
    listener.close()


class Page:
    """What a person does with the page and sees on it.

    The page draws its board anew whenever something happened, so what is read is read in one go, inside the browser.
    """

    def __init__(self, driver):
        self.driver = driver

    def open(self, site):
        site.game.new()
        self.driver.get(site.address)
        self.settle()
        return self

    def wait(self, condition):
        WebDriverWait(self.driver, PATIENCE, poll_frequency=0.05).until(lambda _: condition())

    def at(self, identity):
        return self.driver.find_element(By.ID, identity)

    def text(self, identity):
        return self.driver.execute_script("return document.getElementById(arguments[0]).innerText.trim()", identity)

    def cell(self, name):
        return self.driver.find_element(By.CSS_SELECTOR, f'[data-cell="{name}"]')

    def label(self, name):
        selector = f'[data-cell="{name}"]'
        return self.driver.execute_script("return document.querySelector(arguments[0]).ariaLabel", selector)

    def click(self, name):
        try:
            self.cell(name).click()
        except StaleElementReferenceException:
            self.cell(name).click()

    def settle(self):
        self.wait(lambda: self.driver.execute_script("return document.body.dataset.busy") == "false")

    def press(self, *keys):
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def choose(self, identity, text):
        Select(self.at(identity)).select_by_visible_text(text)
        self.settle()

    def moves(self):
        return self.driver.execute_script(
            "return [...document.querySelectorAll('#moves li')].map((li) => li.innerText)"
        )

    def errors(self):
        """What the browser complained of, but for the orders that the server refused."""
        log = self.driver.get_log("browser")
        return [entry["message"] for entry in log if "400 (Bad Request)" not in entry["message"]]


@pytest.fixture(scope="module")
def page():
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-proxy-server"):
        options.add_argument(argument)
    options.add_argument("--window-size=1180,820")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
    yield Page(driver)
    driver.quit()


@pytest.fixture(scope="module")
def hex_site():
    with served("hex") as site:
        yield site


@pytest.fixture(scope="module")
def tic_tac_toe_site():
    with served("tic_tac_toe") as site:
        yield site


def test_a_full_game_by_clicks_with_an_illegal_click_the_overlay_and_undo(page, tic_tac_toe_site):
    page.open(tic_tac_toe_site)
    assert page.text("title") == "Tic-tac-toe" and page.text("status") == "X to move"
    page.click("a1")
    page.settle()
    assert page.moves() == ["a1", "b2"]
    assert page.label("a1") == "a1, X" and page.label("b2") == "b2, O, last move"

    page.click("b2")
    page.settle()
    assert page.text("message") == "The rules do not allow b2 here." and len(page.moves()) == 2

    page.choose("overlay", "search policy")
    assert page.label("c3") == "c3, empty, agent: 40%"  # a board's last legal action, as 4 is taken
    assert page.driver.find_elements(By.CSS_SELECTOR, ".share") and page.at("thoughts").is_displayed()
    assert "Value for X: +0.04 after 4 simulations, +0.25 at first sight" in page.text("value")
    assert page.text("lines").split() == ["c3"]
    page.choose("overlay", "nothing")
    assert not page.driver.find_elements(By.CSS_SELECTOR, ".share") and not page.at("thoughts").is_displayed()

    page.click("b1")
    page.settle()
    page.at("undo").click()
    page.wait(lambda: len(page.moves()) == 2)
    page.settle()
    for move in ("b1", "c1"):
        page.click(move)
        page.settle()
    assert page.text("status") == "Game over: X wins"
    page.click("a3")
    page.settle()
    assert page.text("message") == "The game is over: take a move back or start a new game."
    page.at("new").click()
    page.wait(lambda: page.text("status") == "X to move" and not page.moves())
    assert page.errors() == []


def test_a_game_by_keys_alone_with_a_swap(page, hex_site):
    page.open(hex_site)
    page.choose("you", "both sides")
    assert page.text("title") == "Hex 3×3"
    page.driver.execute_script("document.querySelector('#board [tabindex=\"0\"]').focus()")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ENTER)
    page.settle()
    assert page.label("c1") == "c1, black, last move"
    swap = page.driver.find_element(By.CSS_SELECTOR, '#choices [data-move="swap-pieces"]')
    swap.send_keys(Keys.ENTER)
    page.settle()
    assert page.label("a3") == "a3, white" and not page.driver.find_elements(By.CSS_SELECTOR, "#choices button")
    page.cell("c1").send_keys(Keys.ARROW_DOWN)
    page.press(Keys.SPACE)
    page.settle()
    assert page.label("c2") == "c2, black, last move" and page.text("status") == "white to move"
    assert len(page.driver.find_elements(By.CSS_SELECTOR, '#board [tabindex="0"]')) == 1
    assert page.errors() == []


def test_two_agents_play_to_the_end_while_a_person_watches(page, hex_site):
    page.open(hex_site)
    page.choose("you", "neither: watch")
    page.wait(lambda: page.text("status").startswith("Game over: "))
    assert len(page.moves()) >= 5 and not page.text("message")


def test_the_other_colour_can_be_chosen_and_the_agent_begins(page, tic_tac_toe_site):
    page.open(tic_tac_toe_site)
    page.choose("you", "O")
    assert page.moves() == ["b2"] and page.text("status") == "O to move"


def test_a_chess_move_is_two_clicks_and_the_board_turns_with_the_player(page):
    with served("gardner_chess") as site:
        page.open(site)
        page.choose("you", "both sides")
        top = page.cell("a5").rect["y"]
        page.click("a2")
        assert len(page.driver.find_elements(By.CSS_SELECTOR, ".target")) == 1
        page.click("a4")
        page.settle()
        assert page.text("message") == "The rules do not allow a2a4 here."
        page.click("a2")
        page.click("a3")
        page.settle()
        assert page.label("a3") == "a3, white pawn, last move" and page.text("status") == "black to move"
        page.choose("you", "black")
        assert page.cell("a5").rect["y"] > top
        assert page.errors() == []


@pytest.mark.parametrize("scheme, is_dark", [("light", False), ("dark", True)])
def test_the_page_follows_the_systems_light_or_dark_scheme(page, hex_site, scheme, is_dark):
    page.open(hex_site)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    colour = page.driver.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
    brightness = sum(int(number) for number in colour.strip("rgba()").split(",")[:3]) / 3
    assert (brightness < 128) == is_dark
