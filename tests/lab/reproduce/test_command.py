"""The runner and the command `reproduce` on a paper that costs nothing."""

import csv
from dataclasses import replace

import pytest
from tests.command_line import asked
from tests.lab.reproduce.tiny_paper import PAPER

from counterveil.errors import CounterveilError
from counterveil_lab.reproduce.command import Run, chosen, run_cells, write_results
from counterveil_lab.reproduce.page import Verdict
from counterveil_lab.reproduce.papers import catalogue


@pytest.fixture(autouse=True)
def in_the_catalogue(monkeypatch):
    monkeypatch.setitem(catalogue.MODULES, "tiny", "tests.lab.reproduce.tiny_paper")


def run(*words):
    return asked("reproduce", *words)


def counting(paper, stop_after):
    """Return the paper with a first figure that is interrupted after so many cells, and the cells it ran."""
    ran = []

    def slowly(cell):
        if len(ran) == stop_after:
            raise KeyboardInterrupt
        ran.append(cell)
        return paper.figures[0].run(cell)

    return replace(paper, figures=(replace(paper.figures[0], run=slowly), *paper.figures[1:])), ran


def test_a_run_that_was_interrupted_goes_on_where_it_stopped(tmp_path):
    paper, ran = counting(PAPER, 4)
    with pytest.raises(KeyboardInterrupt):
        run_cells(Run(paper, tmp_path), paper.figures)
    assert len(ran) == 4
    again, rest = counting(PAPER, 100)
    run_cells(Run(again, tmp_path), again.figures)
    assert [*ran, *rest] == PAPER.figures[0].cells(False)


def test_claims_of_unfinished_figures_cannot_be_checked(tmp_path):
    paper, _ = counting(PAPER, 4)
    with pytest.raises(KeyboardInterrupt):
        run_cells(Run(paper, tmp_path), paper.figures[:1])
    judged = [one for _, one in write_results(Run(PAPER, tmp_path))]
    assert {one.verdict for one in judged} == {Verdict.CANNOT_BE_CHECKED}
    assert {one.why for one in judged} == {"not finished: first"}
    assert "Not finished: 2 cells are missing." in (tmp_path / "page.md").read_text(encoding="utf-8")


def test_the_command_writes_tables_pictures_and_the_page(tmp_path):
    shown = run("tiny", "--out", tmp_path)
    assert shown.exit_code == 0, shown.output
    assert "2 claims: 1 reproduced, 1 not reproduced, 0 cannot be checked." in shown.stdout
    folder = tmp_path / "tiny"
    assert {each.name for each in folder.iterdir() if each.is_file()} == {
        "page.md", "claims.csv", "first.csv", "first.svg", "first.png", "second.csv", "second.svg", "second.png",
    }  # fmt: skip
    with (folder / "first.csv").open(encoding="utf-8", newline="") as file:
        kept = list(csv.DictReader(file))
    assert len(kept) == 12
    assert kept[3] == {"data": "A", "epsilon": "2", "method": "AIM", "value": "0.5"}
    page = (folder / "page.md").read_text(encoding="utf-8")
    assert "| AIM is above zero. | Figure 1 | not reproduced | 0.58 | the other way round |" in page
    assert "![First figure](first.png)" in page


def test_interrupting_the_command_says_that_nothing_is_lost(tmp_path, monkeypatch):
    paper, _ = counting(PAPER, 1)
    monkeypatch.setattr("tests.lab.reproduce.tiny_paper.PAPER", paper)
    shown = run("tiny", "--out", tmp_path)
    assert shown.exit_code == 130
    assert "the same command goes on" in shown.output


def refused(error, code):
    assert isinstance(error.value, CounterveilError)
    assert error.value.code == code


def test_unknown_names_are_refused():
    with pytest.raises(CounterveilError) as error:
        catalogue.load("none")
    refused(error, "CV-P810")
    with pytest.raises(CounterveilError) as error:
        chosen(PAPER, ["third"])
    refused(error, "CV-P811")


def test_files_are_looked_for_before_anything_is_computed(tmp_path, monkeypatch):
    (tmp_path / "a.csv").touch()
    paper, ran = counting(replace(PAPER, files={"A": ("a.csv",), "B": ("b.csv", "c.csv")}), 100)
    monkeypatch.setenv("COUNTERVEIL_DATA", str(tmp_path))
    with pytest.raises(CounterveilError, match="CV-D313") as refused:
        run_cells(Run(paper, tmp_path), paper.figures)
    assert ran == []
    assert "b.csv, c.csv" in refused.value.got
    assert "a.csv" not in refused.value.got
    monkeypatch.delenv("COUNTERVEIL_DATA")
    refused = asked("reproduce", "ipw", "--quick", "--out", tmp_path).exception
    assert refused.code == "CV-D313"
    assert "ihdp/ihdp_npci_1.csv.gz" in refused.got


@pytest.mark.parametrize("name", ["ipw", "multi-site", "private-matching"])
def test_files_are_those_of_data_sets_that_cells_name(name):
    paper = catalogue.load(name)
    named = {
        str(cell.get("data", cell.get("study"))) for figure in paper.figures for cell in figure.cells(True)
    }
    assert paper.files
    assert set(paper.files) <= named
