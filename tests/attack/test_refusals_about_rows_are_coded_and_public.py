"""What is refused because of private rows is refused by a code while data are attached, and every guarantee says so."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import counterveil as cv
from counterveil.data import Layout, Table, engines, strata, strata_of_source
from counterveil.privacy import Unit

ROWS = {"t": [1, 0, 1, 0], "y": [0.5, 0.5, 0.5, 0.5], "x": [0.1, 0.2, 0.3, 0.4]}
STUDY = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1)}, control=0)


def code(call):
    with pytest.raises(cv.CounterveilError) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize("column", ["t", "y", "x"])
@pytest.mark.parametrize(
    "cell", [Decimal("sNaN"), Decimal("-sNaN123"), Decimal("NaN"), pd.NA, pd.NaT], ids=repr
)
def test_cells_that_hold_nothing_are_missing_and_no_traceback(cell, column):
    cells = [Decimal(str(value)) for value in ROWS[column][:3]] + [cell]
    for held in (cells, np.array(cells, dtype=object)):
        assert code(lambda held=held: Table.attach(ROWS | {column: held}, STUDY)) == "CV-D003"
    frame = pd.DataFrame(ROWS).astype({column: object})
    frame[column] = pd.Series(cells, dtype=object)
    assert code(lambda: Table.attach(frame, STUDY)) == "CV-D003"


def test_both_levels_say_that_other_data_are_refused():
    for unit in (Unit.OUTCOME, Unit.RECORD):
        facts = [fact for fact in STUDY.public_facts(unit) if "at least 2" in fact]
        assert len(facts) == 1
        assert "not refused" in facts[0]


@pytest.mark.parametrize(
    ("method", "protects"),
    [
        ("difference_in_means", "outcome"),
        ("trial", "record"),
        ("stratified", "outcome"),
        ("stratified", "record"),
    ],
)
def test_guarantees_of_results_say_it(method, protects):
    study = cv.Study("t", "y", (0, 1), {"x": cv.Range(0, 1).cut("1/4")}, control=0, randomised=True)
    rows = {name: values * 50 for name, values in ROWS.items()}
    result = cv.ate(rows, study, protects=protects, epsilon=1, method=method, noise=cv.SeededNoise(1))
    assert any("at least 2" in fact for fact in result.guarantee.public)


def occupied(count):
    """Return rows in so many strata of a hundred."""
    study = cv.Study("t", "y", (0, 1), {"k": cv.Categories(range(100))}, control=0)
    frame = pd.DataFrame({"t": [1, 0] * 50, "y": [0.5] * 100, "k": [place % count for place in range(100)]})
    duckdb = pytest.importorskip("duckdb")
    return lambda: strata_of_source(duckdb.from_df(frame), study, Layout.of(study)).place.tolist()


def test_whether_strata_are_too_many_depends_on_public_numbers_alone(monkeypatch):
    for module in (engines, strata):
        monkeypatch.setattr(module, "MOST_GROUPS", 20, raising=False)
    # A hundred declared strata and a hundred rows: refused, however few are occupied.
    assert code(occupied(4)) == code(occupied(90)) == "CV-D055"
    for module in (engines, strata):
        monkeypatch.setattr(module, "MOST_GROUPS", 100, raising=False)
    # As many groups as rows at most: never refused.
    assert occupied(4)() == [0, 1, 2, 3]
    assert len(occupied(90)()) == 90
