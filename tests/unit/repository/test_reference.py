"""The reference pages say what the code says, and a drift between them is noticed."""

import shutil

import pytest
from tools.reference.__main__ import PAGES, ROOT, drift, main
from tools.reference.api_page import undescribed
from tools.reference.cli_page import cli_page
from tools.reference.figures import marked_pages

import counterveil as cv
from counterveil import errors


def test_the_pages_are_what_the_code_says(capsys):
    assert drift() == []
    assert main(["--check"]) == 0
    assert "in order" in capsys.readouterr().out


@pytest.fixture
def copy(tmp_path):
    for name in PAGES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_a_page_that_was_edited_is_named_with_its_line(copy):
    page = copy / "docs/reference/cli.md"
    page.write_text(page.read_text().replace("`--binary/--no-binary`", "`--yes-no`"))
    found = drift(copy)
    assert found[0] == "--- docs/reference/cli.md"
    assert any(line.startswith("-| `--yes-no` ") for line in found)
    assert any(line.startswith("+| `--binary/--no-binary` ") for line in found)


def test_code_that_changed_is_noticed(copy, monkeypatch, capsys):
    monkeypatch.setattr(cv.ate, "__doc__", "Return something else.")
    assert "+Return something else." in drift(copy)
    assert main(["--check"]) == 1
    assert "run: make reference" in capsys.readouterr().out


def test_every_argument_of_every_public_function_is_described(monkeypatch):
    assert undescribed() == []
    monkeypatch.setattr(cv.pool, "__doc__", cv.pool.__doc__.replace("    level:", "    lvl:"))
    assert undescribed() == ["cv.pool: level"]


def test_every_exit_code_is_listed():
    page = cli_page().partition("## Exit codes")[2]
    for kind in errors.CounterveilError.__subclasses__():
        assert f"| {kind.exit_code} | " in page, kind
    assert "`CV-C...`" in page


def test_figures_of_pages_are_those_of_the_tables_they_quote(tmp_path):
    page, table = "docs/how-to/adjust-records.md", "experiments/causal/RESULTS_RECORD.md"
    for name in (page, table):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    assert marked_pages(tmp_path) == {page: (ROOT / page).read_text()}
    # A table that was measured anew, and a figure that was typed by hand.
    text = (tmp_path / table).read_text()
    row = next(line for line in text.splitlines() if line.startswith("| NHEFS, delta 1e-6 |"))
    last = row.split("|")[-2].strip()
    (tmp_path / table).write_text(text.replace(row, row.replace(last, "0.61 / 9 / 9")))
    assert "| 0.61 / 9 / 9 |" in marked_pages(tmp_path)[page]
    assert any(line.startswith("-| NHEFS, delta 1e-6 |") for line in drift(tmp_path))
    (tmp_path / table).write_text(text.replace("NHEFS", "NHANES"))
    with pytest.raises(ValueError, match="no row"):
        marked_pages(tmp_path)
