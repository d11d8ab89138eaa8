"""PrivATE: a cell of every figure runs; verdicts on kept pages are those of the kept tables; finished cells on disk."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from counterveil.errors import DataError
from counterveil_lab.reproduce.command import Done, Store, judge, key_of
from counterveil_lab.reproduce.page import CLAIMS, Verdict
from counterveil_lab.reproduce.papers.catalogue import MODULES, load
from counterveil_lab.reproduce.papers.private_matching.studies import (
    COMPARED,
    LABEL,
    SAMPLE,
    benchmark,
    estimates,
)

FOLDER = Path(__file__).parents[3] / "experiments" / "papers"


@pytest.mark.parametrize("name", MODULES)
def test_the_verdicts_of_the_page_are_those_of_its_tables(name):
    paper, kept = load(name), {path.stem: pd.read_csv(path) for path in (FOLDER / name).glob("*.csv")}
    page = (FOLDER / name / "page.md").read_text(encoding="utf-8")
    claims = kept.pop(Path(CLAIMS).stem, pd.DataFrame())
    for claim, row in zip(paper.claims, claims.itertuples(), strict=True):
        found = judge(claim, kept).verdict
        assert (row.Claim, row.Where, row.Verdict) == (claim.says, claim.where, found.value)
        assert (f"\n| {claim.says} | {claim.where} |" in page) is (found is Verdict.NOT_REPRODUCED), claim
        assert judge(claim, {}).verdict is Verdict.CANNOT_BE_CHECKED or not claim.figures


PAPER = load("private-matching")
FIGURES = {figure.name: figure for figure in PAPER.figures}
DRAWN = [name for name in FIGURES if name.startswith("figure")]
in_folder = pytest.mark.skipif(not os.environ.get("COUNTERVEIL_DATA"), reason="COUNTERVEIL_DATA is not set")


def cell_of(name, quick=True, **wanted):
    cells = FIGURES[name].cells(quick)
    return next(cell for cell in cells if all(cell[key] == value for key, value in wanted.items()))


@pytest.mark.parametrize("name", DRAWN)
def test_a_cell_of_every_figure_runs_and_is_a_line_of_its_table(name):
    wanted = {"data": "Synth", "epsilon": 1.0} if name != "figure-12" else {"data": "Synth", "epsilon": 1.5}
    cell = {**cell_of(name, **wanted), "draws": 2}
    (row,) = FIGURES[name].run(cell)
    assert row["error"] > 0
    assert FIGURES[name].run(cell) == [row]
    table = FIGURES[name].table(pd.DataFrame([{**cell, **row}]))
    assert len(table) == 1
    assert "seed" not in table


@pytest.mark.parametrize("method", [name for name in COMPARED if name != "AIM"])
def test_every_method_of_the_comparison_is_drawn(method):
    found = estimates(method, "Synth", 2.0, 5, 2, 1)
    assert found.shape == (2,)
    assert np.isfinite(found).all()


@pytest.mark.slow
@in_folder
@pytest.mark.parametrize("data", ["IHDP", "LaLonde", "ACIC"])
def test_the_other_studies_are_drawn_too(data):
    for method in (LABEL, SAMPLE, "IPW-PP", "PrivSyn", "ours, record"):
        assert np.isfinite(estimates(method, data, 1.0, 5, 1, 1)).all()


@pytest.mark.slow
@in_folder
def test_costs_are_measured_in_a_fresh_process():
    (row,) = FIGURES["table-4"].run(cell_of("table-4", method=LABEL))
    assert row["seconds"] > 0
    assert row["first"] >= row["seconds"]
    assert row["megabytes"] > 20
    assert 0 <= row["added"] < row["megabytes"]


def test_data_that_are_absent_are_refused_by_code(monkeypatch):
    monkeypatch.delenv("COUNTERVEIL_DATA", raising=False)
    with pytest.raises(DataError, match="CV-D040"):
        benchmark("ihdp", 7)


def test_cells_are_read_back_by_their_entries_in_any_order(tmp_path):
    store = Store(tmp_path / "rows" / "figure.jsonl")
    assert store.read() == {}
    store.add({"b": 1, "a": "x"}, Done([{"value": 0.5}], 1.25))
    assert store.read() == {key_of({"a": "x", "b": 1}): Done([{"value": 0.5}], 1.25)}


def test_a_torn_last_line_is_ignored_and_the_next_cell_is_kept(tmp_path):
    store = Store(tmp_path / "figure.jsonl")
    for number in range(3):
        store.add({"n": number}, Done([{"value": number}], 0.0))
    text = store.path.read_bytes()
    store.path.write_bytes(text[:-9])
    assert sorted(store.read()) == [key_of({"n": 0}), key_of({"n": 1})]
    store.add({"n": 2}, Done([{"value": 7}], 0.0))
    assert store.read()[key_of({"n": 2})].rows == [{"value": 7}]
    assert len(store.read()) == 3


def test_a_line_of_another_shape_is_ignored(tmp_path):
    store = Store(tmp_path / "figure.jsonl")
    store.path.write_text('[1]\n{"rows": []}\n\n', encoding="utf-8")
    assert store.read() == {}
