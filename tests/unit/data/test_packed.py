"""Rows as bytes are the same rows again, whatever their number, with covariates or without."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.data.spool import packed, unpacked

LABELS = [f"label {place}" for place in range(300)]
COVARIATES = {"x": cv.Range(-1, 1), "site": cv.Categories(LABELS), "old": cv.Binary(), "z": cv.Range(0, 1)}


@pytest.mark.parametrize("rows", [20, 21, 27])
@pytest.mark.parametrize("measured", [False, True])
def test_rows_as_bytes(rows, measured):
    rng = np.random.default_rng(rows)
    held = {name: rng.normal(size=rows) for name in ("y", "early", "x", "z")}
    held |= {"arm": np.arange(rows) % 2, "old": rng.integers(0, 2, rows), "site": rng.choice(LABELS, rows)}
    words = {"before": "early", "change_range": (-1, 1)} if measured else {}
    table = Table.attach(held, cv.Study("arm", "y", (0, 1), COVARIATES, control=0, **words))
    rest, covariates = packed(table)
    found = unpacked(table.study, rows, rest, covariates)
    assert found.covariates.keys() == table.covariates.keys()
    for name, column in table.covariates.items():
        # Compiled loops expect doubles where processors do.
        assert found.covariates[name].flags.aligned
        assert found.covariates[name].tobytes() == column.tobytes()
    without = unpacked(table.study, rows, rest, None)
    assert without.covariates == {}
    assert len(table.measures) == (2 if measured else 0)
    for one in (found, without):
        for name in ("arm", "treated", "outcome"):
            assert getattr(one, name).dtype == getattr(table, name).dtype
            assert getattr(one, name).tolist() == getattr(table, name).tolist()
        assert [each.tolist() for each in one.measures] == [each.tolist() for each in table.measures]
