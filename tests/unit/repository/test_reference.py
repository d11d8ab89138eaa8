"""The reference pages say what the code says, and a drift between them is noticed."""

import shutil

import pytest
from tools.reference.__main__ import ROOT, drift, made, main
from tools.reference.api_page import FOLDER, api_pages, undescribed
from tools.reference.cli_page import cli_page

import counterveil as cv
from counterveil import errors


def test_the_pages_are_what_the_code_says(capsys):
    assert drift() == []
    assert main(["--check"]) == 0
    assert "in order" in capsys.readouterr().out


@pytest.fixture
def copy(tmp_path):
    for name in made():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_code_that_changed_is_noticed(copy, monkeypatch, capsys):
    monkeypatch.setattr(cv.ate, "__doc__", "Return something else.")
    assert "+Return something else." in drift(copy)
    assert main(["--check"]) == 1
    assert "run: make reference" in capsys.readouterr().out


def test_a_name_that_is_gone_is_noticed(copy):
    page = copy / "docs/reference/api.md"
    page.write_text(page.read_text(encoding="utf-8") + "## `cv.forgotten`\n", encoding="utf-8")
    assert "-## `cv.forgotten`" in drift(copy)


def test_every_public_name_has_a_page_of_its_own():
    pages = api_pages()
    assert {f"{FOLDER}/{name}.md" for name in cv.__all__ if callable(getattr(cv, name))} <= set(pages)
    assert len(pages) > 60


def test_every_argument_of_every_public_function_is_described(monkeypatch):
    assert undescribed() == []
    monkeypatch.setattr(cv.pool, "__doc__", cv.pool.__doc__.replace("    level:", "    lvl:"))
    assert undescribed() == ["cv.pool: level"]


def test_every_exit_code_is_listed():
    page = cli_page().partition("## Exit codes")[2]
    for kind in errors.CounterveilError.__subclasses__():
        assert f"| {kind.exit_code} | " in page, kind
    assert "`CV-C...`" in page
