"""The console in a real browser: from rows to a result, by mouse and by keyboard, on a phone and on a wide screen."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system import fifty_columns

pytest.importorskip("playwright", reason="the extra browser is not installed")
pytest.importorskip("axe_playwright_python", reason="the extra browser is not installed")
pytest.importorskip("jinja2", reason="the extra console is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

# Where screenshots are kept to be looked at; else they are thrown away.
KEEP = os.environ.get("COUNTERVEIL_SCREENSHOTS")
GRAVE = ("serious", "critical")
SCREENS = [(theme, width) for theme in ("light", "dark") for width in (390, 1440)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("console")
    fifty_columns.write(place)
    return place


@pytest.fixture(scope="module")
def links(folder):
    """The links of a steward and an analyst to a console that runs as people start it."""
    command = [sys.executable, "-m", "counterveil", "console", str(folder), "--analyst", "bob"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            found = [line for line in (process.stdout.readline() for _ in range(3)) if "http://" in line]
            yield [line.partition(": ")[2].strip() for line in found]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Without its sandbox, which containers do not have; only pages of our own are opened.
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


@pytest.fixture(scope="module")
def watched(browser, links):
    """The steward's page, with what it said and asked for."""
    page = browser.new_context(accept_downloads=True).new_page()
    page.said, page.hosts = [], set()
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.hosts.add(re.match(r"\w+://([^/]+)", request.url).group(1)))
    page.goto(links[0])
    return page


@pytest.fixture(scope="module")
def walked(watched, folder):
    """The pages on the way from rows to a verified ledger, all clicked through."""
    page = watched
    seen = {"data sets": page.url}

    def note(name):
        seen[name] = page.url

    page.click("text=Studies")
    page.click("text=New study")
    note("new study")
    page.fill("#f-name", "primary")
    page.select_option("#f-source", "trial")
    page.select_option("#f-codebook", "dictionary.csv")
    page.fill("#f-treatment", "arm")
    page.fill("#f-outcome", "relapse")
    page.click("text=Draft it")
    assert "was treatment assigned at random?" in page.inner_text("main")
    note("study")
    text = page.input_value("#f-text")
    page.fill("#f-text", re.sub(r'randomised = "\?"', "randomised = true", text))
    page.click("button:has-text('Save')")
    assert "Effect of arm on relapse, 44 covariates. Nothing is open." in page.inner_text("main")
    page.click("text=Data sets")
    page.click("text=Register trial")
    page.select_option("#f-study", "primary")
    page.click("button:has-text('Draft')")
    note("register")
    page.fill("#f-epsilon", "3")
    page.click("text=Register for good")
    page.click("text=Studies")
    note("studies")
    page.click("text=primary")
    page.click("button:has-text('Check')")
    assert "fits the charter and the rows" in page.inner_text("main")
    note("check")
    page.click("text=Back to the text")
    page.click("text=Plan: how long")
    note("plan")
    page.fill("#f-rows", "500")
    page.fill("#f-draws", "1")
    page.fill("#f-epsilons", "0.5 1 2")
    page.select_option("#f-data", label="trial")
    page.click("button:has-text('Plan')")
    page.wait_for_selector(".slider output")
    before = page.inner_text(".slider output")
    page.focus("#slide")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    assert page.inner_text(".slider output") != before
    assert "of what is left" in page.inner_text(".slider output")
    page.go_back()
    page.click("text=Data sets")
    page.click("text=Ask a question")
    note("ask")
    page.fill("#f-epsilon", "1")
    page.click("text=See the price")
    assert "Left afterwards: epsilon 2" in page.inner_text("main")
    page.click("button:has-text('Spend')")
    page.wait_for_selector("text=For a paper")
    note("result")
    with page.expect_download() as download:
        page.click("text=report.html")
    assert "Effect of arm on relapse" in Path(download.value.path()).read_text()
    page.click("text=Back to trial")
    note("data set")
    page.click("text=All entries of the ledger")
    note("ledger")
    page.check("#f-full")
    page.click("button:has-text('Verify')")
    assert "No problem found" in page.inner_text("main")
    page.click("text=Federation")
    note("federation")
    return seen


def test_the_whole_way_says_nothing_wrong_and_asks_nobody_else(walked, watched):
    assert watched.said == []
    assert watched.hosts == {re.match(r"\w+://([^/]+)", walked["result"]).group(1)}


@pytest.mark.parametrize(("theme", "width"), SCREENS)
def test_every_page_fits_its_screen_and_is_usable_without_eyes_or_mouse(
    walked, watched, theme, width, tmp_path
):
    from axe_playwright_python.sync_playwright import Axe

    kept = Path(KEEP) if KEEP else tmp_path
    kept.mkdir(exist_ok=True)
    watched.emulate_media(color_scheme=theme)
    watched.set_viewport_size({"width": width, "height": 900})
    for name, address in walked.items():
        watched.goto(address)
        watched.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        found = Axe().run(watched).response["violations"]
        grave = [
            (each["id"], each["nodes"][0]["html"][:200])
            for each in found
            if each["impact"] in ("serious", "critical")
        ]
        assert grave == [], name
        assert watched.evaluate("document.documentElement.scrollWidth") <= width, name
        watched.screenshot(path=kept / f"{name.replace(' ', '-')}-{theme}-{width}.png", full_page=True)


def test_the_keyboard_reaches_the_content_first_and_shows_where_it_is(walked, watched):
    watched.goto(walked["data sets"])
    watched.keyboard.press("Tab")
    assert watched.evaluate("document.activeElement.textContent") == "Skip to the content"
    watched.keyboard.press("Enter")
    watched.keyboard.press("Tab")
    shown = watched.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert (watched.evaluate("document.activeElement.textContent"), shown) == ("trial", "solid")


def test_the_analyst_asks_without_any_script(walked, browser, links):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(links[1])
    assert "bob, analyst" in page.inner_text("header")
    page.click("text=Ask a question")
    page.fill("#f-epsilon", "1")
    page.click("text=See the price")
    page.click("button:has-text('Spend')")
    assert "For a paper" in page.inner_text("main")
    page.click("text=Sign out")
    page.goto(walked["data sets"])
    assert "You are not signed in" in page.inner_text("main")
