"""The paper on several sites: budgets and cuts as published, comparators as printed, a cell of every figure."""

import os

import numpy as np
import pandas as pd
import pytest

import counterveil as cv
from counterveil_lab.reproduce.papers.multi_site import PAPER
from counterveil_lab.reproduce.papers.multi_site.errors import Matching, Panel, cut, load, repeat


def test_published_matching_is_that_of_the_library():
    """The experiment draws the printed mechanisms itself; statistics and scales are those of `smooth_matching`."""
    source = load("Synth", 3)
    site = cut(Panel(9, "Synth", (1, 19), 1), source, np.random.default_rng(2))[0]
    ours = Matching(site, source.strata)
    given = {"epsilon": 3, "delta": 1e-5, "accept": "unproved"}
    real = [
        cv.published.smooth_matching(site.frame, source.study, **given, noise=cv.SeededNoise(k))
        for k in range(4)
    ]
    rng = np.random.default_rng(4)
    drawn = [ours.smooth(3, rng) for _ in range(1500)]
    scale = np.mean([result.uncertainty.noise.variance for result in real]) ** 0.5
    assert np.std([answer.estimate for answer in drawn]) == pytest.approx(scale, rel=0.15)
    for result in real:
        assert abs(result.estimate - ours.effect) < 12 * scale


def test_a_repetition_depends_on_its_number_alone():
    small = Panel(8, "Synth", (1, 30), 1)
    assert repeat(small, 2) == repeat(small, 2)


FIGURES = {figure.name: figure for figure in PAPER.figures}
# Figures that need no files; the others run where COUNTERVEIL_DATA names the folder of data sets.
in_folder = pytest.mark.skipif(not os.environ.get("COUNTERVEIL_DATA"), reason="COUNTERVEIL_DATA is not set")
CELLS = [
    pytest.param("figure-3", 0, marks=in_folder),
    pytest.param("figure-4", 0, marks=[in_folder, pytest.mark.slow]),
    pytest.param("figure-5", 0, marks=[in_folder, pytest.mark.slow]),
    ("figure-6", 0),
    ("figure-7", 3),
    ("figure-8", 0),
    pytest.param("figure-8", -1, marks=[in_folder, pytest.mark.slow]),
    pytest.param("figure-9", 0, marks=pytest.mark.slow),
    pytest.param("figure-10", 0, marks=[in_folder, pytest.mark.slow]),
    pytest.param("figure-11", 0, marks=[in_folder, pytest.mark.slow]),
    ("auto", 2),
]


@pytest.mark.parametrize(("name", "place"), CELLS)
def test_a_cell_of_every_figure_runs_and_makes_a_table_and_a_picture(name, place):
    figure = FIGURES[name]
    assert {str(cell) for cell in figure.cells(True)} <= {
        str(cell) for cell in figure.cells(False)
    } or name in ("figure-6", "figure-7")
    cell = dict(figure.cells(False)[place])
    if "repetitions" in cell:
        cell["repetitions"] = 1
    rows = pd.DataFrame([{**cell, **row} for row in figure.run(cell)])
    table = figure.table(rows)
    numbers = table.select_dtypes("number").to_numpy()
    assert len(table)
    assert np.isfinite(numbers).all()
    assert (numbers >= 0).all()
    # The other figures are drawn by the same function.
    if name in ("figure-6", "figure-7", "figure-8"):
        assert len(figure.draw(table).axes) >= 2
