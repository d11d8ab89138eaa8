"""The console in a real browser: from rows to a result, by mouse and by keyboard, on a phone and on a wide screen."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system import ward

pytest.importorskip("playwright", reason="the extra browser is not installed")
pytest.importorskip("axe_playwright_python", reason="the extra browser is not installed")
pytest.importorskip("jinja2", reason="the extra console is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")

# Where screenshots are kept to be looked at; else they are thrown away.
KEEP = os.environ.get("COUNTERVEIL_SCREENSHOTS")
# Milliseconds: so long that only a page that hangs reaches it.
HANGS = 300_000
MOST_QUESTIONS = 12
GRAVE = ("serious", "critical")
SCREENS = [(theme, width) for theme in ("light", "dark") for width in (390, 1440)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("console")
    ward.write(place)
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
    page.set_default_timeout(HANGS)
    page.said, page.hosts = [], set()
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.hosts.add(re.match(r"\w+://([^/]+)", request.url).group(1)))
    page.goto(links[0])
    return page


class Looked:
    """What was seen of every page on the way, in both themes and widths."""

    def __init__(self, page, kept):
        from axe_playwright_python.sync_playwright import Axe

        self.page, self.kept, self.axe = page, kept, Axe()
        self.addresses, self.grave, self.wide = {}, [], []

    def at(self, name):
        """Look at the page that is open, also where a form led to it."""
        page, self.addresses[name] = self.page, self.page.url
        folded = page.evaluate("[...document.querySelectorAll('details')].map(each => each.open)")
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        for theme, width in SCREENS:
            page.emulate_media(color_scheme=theme)
            page.set_viewport_size({"width": width, "height": 900})
            found = self.axe.run(page).response["violations"]
            self.grave += [
                (name, theme, width, one["id"], one["nodes"][0]["html"][:200])
                for one in found
                if one["impact"] in GRAVE
            ]
            if page.evaluate("document.documentElement.scrollWidth") > width:
                self.wide.append((name, width))
            page.screenshot(path=self.kept / f"{name.replace(' ', '-')}-{theme}-{width}.png", full_page=True)
        page.evaluate(
            "open => document.querySelectorAll('details').forEach((each, k) => { each.open = open[k]; })",
            folded,
        )


@pytest.fixture(scope="module")
def walked(watched, tmp_path_factory):
    """The way from a file of 83 columns to a verified ledger, all clicked through, and every page looked at."""
    page = watched
    kept = Path(KEEP) if KEEP else tmp_path_factory.mktemp("screens")
    kept.mkdir(exist_ok=True)
    seen = Looked(page, kept)
    seen.at("data sets")
    page.click("text=Describe the columns >> nth=-1")
    seen.at("new study")
    page.click("text=List the columns")
    assert "3 open questions" in page.inner_text("main")
    seen.at("study open")
    # By the keyboard: find the column, go to its row, choose by typing.
    for name, cells in ward.FILLED.items():
        row = page.locator(f"tbody tr:has(input[value='{name}'])")
        for field, value in cells.items():
            place = row.locator(f"[name^={field}-]")
            if field in ("role", "kind"):
                place.select_option(value)
            else:
                place.focus()
                page.keyboard.type(value)
    page.select_option("#f-assignment", "observational")
    page.click("button:text-is('Save')")
    assert "Effect of catheter on died_30d, 3 covariates. Nothing is open." in page.inner_text("main")
    assert ward.QUESTIONS <= MOST_QUESTIONS
    seen.at("study")
    page.click("text=Plan: how wide")
    page.fill("#f-rows", "1200")
    page.fill("#f-epsilons", "0.5 1 2")
    page.click("button:has-text('Plan')")
    page.wait_for_selector(".slider output")
    # Not every method has another half-width at the next epsilon, in the digits that are shown.
    before = page.locator(".compared .at").all_inner_texts()
    page.focus("#slide")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    assert page.locator(".compared .at").all_inner_texts() != before
    seen.at("plan")
    page.click("text=Register ward")
    seen.at("register")
    # Nothing is ticked beforehand; a wrong number is told beside its field, and what was typed stays.
    assert page.locator("input:checked").count() == 0
    page.fill("#f-epsilon", "-3")
    page.check("#f-protects-outcome")
    page.click("text=See what would be registered")
    seen.at("register wrong")
    assert "CV-P004" in page.inner_text(".field:has(#f-epsilon)")
    assert page.is_checked("#f-protects-outcome")
    page.fill("#f-epsilon", "3")
    page.click("text=See what would be registered")
    assert "This cannot be undone" in page.inner_text("main")
    seen.at("register confirm")
    page.click("button:has-text('cannot be undone')")
    seen.at("data sets registered")
    page.click("text=Studies")
    seen.at("studies")
    page.click("main >> text=ward")
    page.click("button:has-text('Check')")
    assert "fits the access policy and the rows" in page.inner_text("main")
    seen.at("check")
    page.click("text=Data sets")
    page.click("text=Ask a question")
    seen.at("ask")
    page.select_option("#f-question", "groups")
    page.click("text=Choose")
    seen.at("ask groups")
    page.go_back()
    page.fill("#f-epsilon", "1")
    page.click("text=See the price")
    assert "Left afterwards: epsilon 2" in page.inner_text("main")
    seen.at("ask confirm")
    page.click("button:has-text('Spend')")
    page.wait_for_selector("text=For a paper")
    seen.at("result")
    with page.expect_download() as download:
        page.click("text=report.html")
    assert "Effect of catheter on died_30d" in Path(download.value.path()).read_text()
    page.click("text=Back to ward")
    seen.at("data set")
    page.click("text=All entries of the ledger")
    page.check("#f-full")
    page.click("button:has-text('Verify')")
    assert "No problem found" in page.inner_text("main")
    seen.at("ledger")
    page.click("text=Federation")
    seen.at("federation")
    page.click("text=People")
    page.fill("#f-name", "eve")
    page.click("text=Make a link")
    seen.at("people")
    return seen


def test_the_whole_way_says_nothing_wrong_and_asks_nobody_else(walked, watched):
    # The browser itself says that the form with the wrong number was answered with 400.
    assert [text for text in watched.said if "status of 400" not in text] == []
    assert len(watched.said) == 1
    assert watched.hosts == {re.match(r"\w+://([^/]+)", walked.addresses["result"]).group(1)}


def test_every_page_fits_its_screen_and_is_usable_without_eyes_or_mouse(walked):
    assert walked.grave == []
    assert walked.wide == []


def test_the_keyboard_reaches_the_content_first_and_shows_where_it_is(walked, watched):
    watched.goto(walked.addresses["data sets"])
    watched.keyboard.press("Tab")
    assert watched.evaluate("document.activeElement.textContent") == "Skip to the content"
    watched.keyboard.press("Enter")
    watched.keyboard.press("Tab")
    shown = watched.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert (watched.evaluate("document.activeElement.textContent"), shown) == ("ward", "solid")


def test_the_analyst_asks_without_any_script(walked, browser, links):
    page = browser.new_context(java_script_enabled=False).new_page()
    page.set_default_timeout(HANGS)
    page.goto(links[1])
    assert "bob, analyst" in page.inner_text("header")
    page.click("text=Ask a question")
    page.fill("#f-epsilon", "1")
    page.click("text=See the price")
    page.click("button:has-text('Spend')")
    assert "For a paper" in page.inner_text("main")
    page.click("text=Sign out")
    page.goto(walked.addresses["data sets"])
    assert "You are not signed in" in page.inner_text("main")
