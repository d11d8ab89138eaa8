"""PP-IPW: a cell of every figure runs, and the bias is the derived one."""

import os

import pandas as pd
import pytest

from counterveil_lab.reproduce.papers.catalogue import load
from counterveil_lab.reproduce.papers.ipw import figures, synthetic
from counterveil_lab.reproduce.papers.ipw.figures import PRINTED_TABLES

FIGURES = {figure.name: figure for figure in load("ipw").figures}
in_folder = pytest.mark.skipif(not os.environ.get("COUNTERVEIL_DATA"), reason="COUNTERVEIL_DATA is not set")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(figures, "BLOCK", 2)
    monkeypatch.setattr(figures, "DRAWS", 2)


@pytest.mark.parametrize("name", ["figure-1", "figure-2ab", "figure-2cd", "appendix-f"])
def test_a_cell_of_every_figure_runs_and_fills_its_table(name):
    figure = FIGURES[name]
    cell = figure.cells(True)[0]
    rows = figure.run(cell)
    assert rows == figure.run(cell)
    assert len(figure.table(pd.DataFrame([{**cell, **row} for row in rows]))) >= 1


@pytest.mark.slow
@in_folder
def test_a_cell_of_each_table_runs():
    for name in ("table-2", "table-3"):
        cell = {**FIGURES[name].cells(True)[0], "runs": 2}
        rows = FIGURES[name].run(cell)
        table = FIGURES[name].table(pd.DataFrame([{**cell, **row} for row in rows]))
        assert set(PRINTED_TABLES["ihdp"]) <= {
            (n.removeprefix("paper: "), m) for n, m in zip(table["estimate"], table["measure"], strict=True)
        }


def test_the_bias_is_the_one_that_the_proof_derives():
    study = synthetic.drawn(1, 500, 2.0)
    printed, derived = synthetic.bias_of(study, 0.4)
    drawn = synthetic.simulated_bias(study, 0.4, 200, 1)
    assert drawn == pytest.approx(derived, rel=0.05)
    assert printed < 0 < derived
