"""PrivATE: a cell of every figure runs, and every method is drawn."""

import os

import numpy as np
import pandas as pd
import pytest

from counterveil.errors import DataError
from counterveil_lab.reproduce.papers.catalogue import load
from counterveil_lab.reproduce.papers.private_matching.methods import COMPARED, LABEL, SAMPLE, estimates
from counterveil_lab.reproduce.papers.private_matching.studies import benchmark

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
