"""The page in a real browser, headless: a game by clicks, a game by keys, mistakes, the overlay, light and dark."""

import contextlib
import functools
import re
import shutil
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("selenium", reason="the dev extra is not installed")

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from muzero_jax.apps.play import web_server
from muzero_jax.apps.play.position import new_game, opening_of
from muzero_jax.apps.play.web_session import WebGame
from muzero_jax.games.catalogue import make_notation
from muzero_jax.games.environment import environment_of
from muzero_jax.games.own_game import load_environment
from muzero_jax.games.view import View
from tests.games.test_game import ROW
from tests.reference.drop import DROP
from tests.reference.play import fake_thinker, notation, opening

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROMEDRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(not (CHROMIUM and CHROMEDRIVER), reason="no chromium with its chromedriver is installed"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # selenium leaves its driver's pipes to the collector
]
NIM = Path(__file__).parents[3] / "examples" / "nim.py"
PATIENCE = 60  # seconds; a busy machine compiles the rules of a game in ten


class Site(NamedTuple):
    """A page's address, and the game that it shows."""

    address: str
    game: WebGame


def served(name):
    """A game against an agent that likes action 4."""
    return serving(WebGame(opening(name), fake_thinker(favourite=4), notation(name)))


@contextlib.contextmanager
def serving(game):
    """The site of a game, for as long as the block lasts."""
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


class Page:
    """What a person does with the page and sees on it.

    The page draws its board anew whenever something happened, so what is read is read in one go, inside the browser.
    """

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

    def hurry(self):
        """Takes the pauses away that let a person follow two agents, until the page is opened again."""
        self.driver.execute_script("const wait = setTimeout; window.setTimeout = (call) => wait(call, 0)")

    def refresh(self):
        self.driver.refresh()
        self.settle()

    def chosen(self):
        names = ("you", "budget", "overlay")
        return [Select(self.at(name)).first_selected_option.text for name in names]

    def has(self, selector):
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def follow(self, scheme):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def luminance(self, selector, style):
        """How bright the first such element is drawn, by WCAG's measure."""
        element = self.driver.find_element(By.CSS_SELECTOR, selector)
        numbers = re.findall(r"[0-9]+", element.value_of_css_property(style))[:3]
        shares = [int(number) / 255 for number in numbers]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def errors(self):
        """What the browser complained of, but for the orders that the server refused."""
        log = self.driver.get_log("browser")
        allowed = "400 (Bad Request)", "favicon.ico"  # a style sheet, opened alone, has no icon
        return [entry["message"] for entry in log if not any(text in entry["message"] for text in allowed)]


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
    assert page.text("goal") == "Three of your marks in a row, column or diagonal win."
    page.click("a1")
    page.settle()
    assert page.moves() == ["a1", "b2"]
    assert page.label("a1") == "a1, X" and page.label("b2") == "b2, O, last move"

    page.click("b2")
    page.settle()
    assert page.text("message") == "The rules do not allow b2 here." and len(page.moves()) == 2

    page.choose("overlay", "search policy")
    assert page.label("c3") == "c3, empty, agent: 40%, the agent's move"  # a board's last legal action, as 4 is taken
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
    assert page.text("status") == "X wins" and page.has(".won") == 3
    assert page.label("b1") == "b1, X, part of the win"
    assert float(page.at("status").value_of_css_property("font-size")[:-2]) >= 24
    page.click("a3")
    page.settle()
    assert page.text("message") == "The game is over: take a move back or start a new game."
    page.at("new").click()
    page.wait(lambda: page.text("status") == "X to move" and not page.moves())
    assert page.errors() == []


def test_a_game_by_keys_alone_with_a_swap(page, hex_site):
    page.open(hex_site)
    page.choose("you", "both sides")
    assert page.text("title") == "Hex 4×4"
    page.driver.execute_script("document.querySelector('#board [tabindex=\"0\"]').focus()")
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ENTER)
    page.settle()
    assert page.label("c1") == "c1, black, last move"
    swap = page.driver.find_element(By.CSS_SELECTOR, '#choices [data-move="swap-pieces"]')
    swap.send_keys(Keys.ENTER)
    page.settle()
    assert page.text("message") == "White swapped: black's stone became white's, mirrored."
    assert page.label("a3") == "a3, white, last move" and not page.driver.find_elements(
        By.CSS_SELECTOR, "#choices button"
    )
    page.cell("c1").send_keys(Keys.ARROW_DOWN)
    page.press(Keys.SPACE)
    page.settle()
    assert (
        page.label("c2") == "c2, black, last move"
        and page.text("status") == "White to move"
        and not page.text("message")
    )
    assert len(page.driver.find_elements(By.CSS_SELECTOR, '#board [tabindex="0"]')) == 1
    assert page.errors() == []


def test_two_agents_play_to_the_end_while_a_person_watches(page, hex_site):
    page.open(hex_site)
    page.hurry()
    page.choose("you", "neither: watch")
    page.wait(lambda: page.text("status").endswith(" wins"))
    assert len(page.moves()) >= 5 and not page.text("message") and page.has(".won") >= 4


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
        assert page.label("a3") == "a3, white pawn, last move" and page.text("status") == "Black to move"
        page.choose("you", "black")
        assert page.cell("a5").rect["y"] > top
        assert page.errors() == []


@pytest.mark.slow
def test_a_game_of_ones_own_is_text_with_a_button_for_each_legal_move(page):
    environment = load_environment(str(NIM))
    with serving(WebGame(new_game(environment), fake_thinker(favourite=4), make_notation(environment))) as site:
        page.open(site)
        assert page.text("title") == "Nim" and page.text("text").splitlines()[1] == "1 1 1 1 . ."
        assert not page.at("board").is_displayed() and page.has("#actions button") == 12
        page.driver.find_element(By.CSS_SELECTOR, '#actions [data-move="b2"]').click()
        page.settle()
        assert page.moves() == ["b2", "e3"] and page.text("text").splitlines()[2:] == ["2 1 . . . .", "3 1 1 1 1 ."]
        page.choose("overlay", "search policy")
        shares = page.driver.find_elements(By.CSS_SELECTOR, "#actions button")
        assert [share.text for share in shares][-1] == "d3 (36%)" and page.has("#actions .choice") == 1
        page.choose("you", "neither: watch")
        page.wait(lambda: page.text("status").endswith(" wins"))
        assert page.has("#actions button") == 0 and page.errors() == []


@pytest.mark.parametrize("scheme, is_dark", [("light", False), ("dark", True)])
def test_the_page_follows_the_systems_light_or_dark_scheme(page, hex_site, scheme, is_dark):
    page.open(hex_site)
    page.follow(scheme)
    assert (page.luminance("body", "background-color") < 0.2) == is_dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hexs_edges_are_seen_against_their_rim_and_say_whose_they_are(page, hex_site, scheme):
    page.open(hex_site)
    page.follow(scheme)
    names = page.driver.execute_script("return [...document.querySelectorAll('.edge-name')].map((n) => n.textContent)")
    assert names == ["black", "black", "white", "white"] and "Black joins top and bottom" in page.text("goal")
    rim = page.luminance(".goal.rim", "stroke")
    for edge in (".goal.first", ".goal.second"):
        brighter, darker = sorted((page.luminance(edge, "stroke"), rim), reverse=True)
        assert (brighter + 0.05) / (darker + 0.05) > 2.4, edge


def test_a_refresh_keeps_side_budget_and_overlay_and_the_game_goes_on(page, tic_tac_toe_site):
    page.open(tic_tac_toe_site)
    for identity, text in (("budget", "16"), ("overlay", "search values"), ("you", "O")):
        page.choose(identity, text)
    page.refresh()
    assert page.chosen() == ["O", "16", "search values"] and page.moves() == ["b2"]
    assert page.at("thoughts").is_displayed() and "after 16 simulations" in page.text("value")
    page.click("a1")
    page.settle()
    assert len(page.moves()) == 3 and page.text("status") == "O to move"
    tic_tac_toe_site.game.new()
    page.refresh()
    assert page.moves() == ["b2"], "it was the agent's turn"
    page.open(tic_tac_toe_site)
    assert page.chosen() == ["X (first)", "4", "nothing"] and page.errors() == []


def test_what_is_remembered_but_not_offered_any_more_is_left_out(page, tic_tac_toe_site):
    page.open(tic_tac_toe_site)
    page.choose("overlay", "search policy")
    for broken in ('{"you": 7, "budget": "3", "overlay": "tree"}', "null", "no JSON"):
        page.driver.execute_script("localStorage.setItem(Object.keys(localStorage)[0], arguments[0])", broken)
        page.refresh()
        assert page.chosen() == ["X (first)", "4", "nothing"]


def test_watching_goes_on_after_a_refresh_unless_it_was_paused(page, hex_site):
    page.open(hex_site)
    page.choose("you", "both sides")
    page.click("a1")
    page.settle()
    Select(page.at("you")).select_by_visible_text("neither: watch")
    page.at("pause").click()
    page.settle()
    moves = page.moves()
    page.refresh()
    assert page.text("pause") == "Continue" and page.moves() == moves
    page.at("pause").click()
    page.wait(lambda: len(page.moves()) > len(moves))


def test_a_click_wakes_a_page_whose_agent_stands_still(page, tic_tac_toe_site):
    page.open(tic_tac_toe_site)
    page.choose("you", "O")
    tic_tac_toe_site.game.new()  # as another page would
    page.click("a1")
    page.settle()
    assert page.text("message").startswith("The position has changed since") and page.moves() == []
    page.click("a1")
    page.wait(lambda: page.moves() == ["b2"])


def test_the_agents_move_is_ringed_on_every_overlay_and_stands_first(page, hex_site, monkeypatch):
    analyse = hex_site.game.thinker.analyse
    monkeypatch.setattr(hex_site.game.thinker, "analyse", lambda *a, **b: analyse(*a, **b)._replace(action=9))
    page.open(hex_site)
    for overlay in ("search policy", "search values", "network policy"):
        page.choose("overlay", overlay)
        assert page.label("b3").endswith("the agent's move") and page.has(".cell .choice") == 1
        assert page.text("would") == "It would play b3 (ringed)." and page.text("lines").split()[0] == "b3"
        assert "The move is the best of those that search tried most" in page.text("why")
    page.choose("you", "both sides")
    page.click("c1")
    page.settle()
    monkeypatch.setattr(hex_site.game.thinker, "analyse", lambda *a, **b: analyse(*a, **b)._replace(action=16))
    page.choose("budget", "16")
    assert page.has('#choices .choice[data-move="swap-pieces"]') == 1 and not page.has(".cell .choice")


@pytest.mark.parametrize(
    "name, moves", [("hex", ["c1", "swap-pieces"]), ("tic_tac_toe", ["a1"]), ("gardner_chess", [])]
)
@pytest.mark.parametrize("width, height", [(375, 667), (375, 553), (667, 375)])
def test_board_and_controls_fit_on_a_phone_without_scrolling(page, name, moves, width, height):
    with served(name) as site:
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
        page.open(site)
        page.choose("you", "both sides")
        for move in moves:
            site.game.play(move)
        page.refresh()
        for identity in ("status", "goal", "board", "new", "undo", "you", "budget", "overlay"):
            box = page.at(identity).rect
            assert box["x"] >= 0 and box["x"] + box["width"] <= width, identity
            assert box["y"] >= 0 and box["y"] + box["height"] <= height, identity
        assert page.at("board").rect["height"] >= 180
        page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_sides_have_the_games_own_names_and_colours(page, tic_tac_toe_site):
    page.open(tic_tac_toe_site)
    page.click("a1")
    page.settle()
    for mark, most in (("first", 0), ("second", 2)):  # X is red, O is blue
        colour = page.driver.find_element(By.CSS_SELECTOR, f".mark.{mark}").value_of_css_property("stroke")
        numbers = [int(number) for number in re.findall(r"[0-9]+", colour)[:3]]
        assert numbers.index(max(numbers)) == most


def own_site(game):
    environment = environment_of(game)._replace(game=game)
    return serving(WebGame(new_game(environment), fake_thinker(favourite=0), make_notation(environment)))


def visible_frames(page):
    script = (
        "return [...document.querySelectorAll('.focus')].filter((f) => getComputedStyle(f).visibility == 'visible')"
    )
    return len(page.driver.execute_script(script))


def test_a_borrowed_board_of_columns_is_played_by_clicks_and_the_choice_is_ringed(page):
    with own_site(DROP) as site:
        page.open(site)
        page.driver.find_element(By.CSS_SELECTOR, '[data-row="0"][data-column="1"]').click()
        page.settle()
        assert page.moves() == ["b", "a"] and not page.text("message") and page.has("#actions button") == 0
        assert page.label("a").startswith("a1, empty") and page.has(".stone") == 2 and page.has(".last") == 1
        assert visible_frames(page) == 0, "a frame around the clicked cell looks like a move"
        page.press(Keys.ARROW_UP)
        assert visible_frames(page) == 1
        page.choose("overlay", "search policy")
        assert page.text("would") == "It would play a (ringed)." and page.has(".cell .choice") == 1
        for scheme in ("light", "dark"):  # white stones are no holes
            page.follow(scheme)
            assert page.luminance(".stone.second", "fill") > 1.4 * page.luminance(".hole", "fill") + 0.05
        assert page.errors() == []


def test_moves_that_no_click_names_have_buttons_below_the_board(page):
    game = ROW._replace(view=View(page="tic_tac_toe"))
    with own_site(game) as site:
        page.open(site)
        page.driver.find_element(By.CSS_SELECTOR, '[data-row="0"][data-column="1"]').click()
        assert page.text("message") == "No move belongs to this cell: use the buttons." and page.moves() == []
        page.driver.find_element(By.CSS_SELECTOR, '#actions [data-move="1"]').click()
        page.settle()
        assert page.moves() == ["1", "0"] and page.has("#actions button") == 2
        page.choose("overlay", "search policy")
        assert page.text("would") == "It would play 0 (ringed)." and page.has("#actions .choice") == 1
        assert page.errors() == []


def test_shares_too_small_to_read_are_shown_where_the_focus_is(page, hex_site):
    page.open(hex_site)
    page.choose("overlay", "search policy")
    number = page.driver.find_element(By.CSS_SELECTOR, ".number")
    assert number.is_displayed() and page.text("value")
    page.driver.execute_script("document.getElementById('board').style.width = '150px'")
    page.wait(lambda: not number.is_displayed())
    page.driver.execute_script("document.querySelector('[data-cell=\"b2\"]').focus()")
    height = "return document.querySelector('.tip text').getBoundingClientRect().height"
    assert page.driver.execute_script("return document.querySelector('.tip').textContent") == "b2: 5%"
    assert page.driver.execute_script(height) >= 12
    page.driver.execute_script("document.activeElement.blur()")
    assert page.has(".tip text") == 0


def chance_site(name, **options):
    position = opening_of(load_environment(name), seed=5)
    return serving(WebGame(position, fake_thinker(**options), make_notation(position.environment)))


def test_2048_by_arrow_keys_and_buttons_with_a_hint_and_watched(page):
    with chance_site("2048", favourite=1) as site:
        site.game.thinker.most_value = 100_000.0  # the preset's
        page.open(site)
        assert page.text("status") == "0 points, 0 moves" and page.has(".tile") == 2
        body = page.driver.find_element(By.TAG_NAME, "body")
        for key in (Keys.ARROW_LEFT, Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_UP) * 3:
            body.send_keys(key)
            page.settle()
        assert len(page.moves()) >= 6 and set(page.moves()) <= {"left", "up", "right", "down"}
        points = site.game.position.total
        assert page.text("status").startswith(f"{points:,.0f} points") and not page.text("message")
        page.at("hint").click()
        page.settle()
        assert "Expected from here: +0.04 after 4 simulations" in page.text("value") and page.has("#pad .choice") == 1
        bar = page.driver.execute_script("return document.getElementById('bar-first').style.width")
        assert float(bar[:-1]) == pytest.approx(100 * points / (points + 0.04), abs=0.1)
        before = len(page.moves())
        page.driver.find_element(By.CSS_SELECTOR, "#pad button:enabled").click()
        page.settle()
        assert len(page.moves()) == before + 1 and not page.at("thoughts").is_displayed()
        page.hurry()
        page.choose("you", "not: watch the agent")
        page.wait(lambda: page.text("status").startswith("Game over: "))
        assert page.errors() == []


def test_backgammon_by_clicks_a_checker_then_a_target_and_the_agent_plays_its_whole_turn(page):
    with chance_site("backgammon", favourite=4) as site:
        site.game.thinker.most_value = 3.0
        page.open(site)
        page.hurry()
        assert page.has(".stone") == 30 and page.has(".die") == 2 and page.text("status") == "X to move"
        assert page.label("13") == "point 13, 5 of X" and page.label("1") == "point 1, 2 of O"
        page.click("5")
        page.settle()
        assert page.text("message") == "Nothing can move from here."
        while site.game.position.colour_to_move == 0:
            start, target = page.driver.execute_script(
                "return fetch('api/state').then((a) => a.json()).then((s) => s.legal.at(-1).split('/'))"
            )
            page.click(start)
            assert page.has(".target") >= 1
            page.click(target)
            page.settle()
            if len(site.game.position.plies) > 1:
                break
        page.wait(lambda: site.game.position.colour_to_move == 0)
        page.settle()
        movers = [ply.colour for ply in site.game.position.plies]
        assert movers[:2] == [0, 0] and set(movers[2:]) == {1} and len(page.moves()) == 2
        assert page.has(".last-move.arrow") == len(movers) - 2
        page.at("hint").click()
        page.settle()
        assert "Value for X (−3 to +3): +0.04" in page.text("value") and page.has(".arrow.of-choice") == 1
        assert page.errors() == []
