"""Rows that are reordered, chosen or moved by a public rule keep each person's private columns together."""

import numpy as np
import pytest
from tests.unit.rows.exact_gate import public_rows

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.errors import ParameterError
from counterveil.privacy import Unit
from counterveil.rows.linear.moved_rows import residuals, treated_first, without_covariates
from counterveil.rows.public import PublicRows, private_table

STUDY = cv.Study(
    cv.Treatment("t", control=0), cv.Outcome("y", (0, 4)), {"x": cv.Range(0, 9), "guess": cv.Range(0, 4)}
)
T = np.array([0, 1, 0, 1, 1, 0])
Y = np.array([0, 1, 2, 3, 4, 2])
DATA = {"t": T, "y": Y, "x": 2 * Y + T, "guess": np.full(6, 1.0)}


def attached():
    return public_rows(Table.attach(DATA, STUDY))


def outcomes(rows):
    table = private_table(rows)
    low, high = map(float, table.study.outcome_range)
    return low + (high - low) * table.outcome / OUTCOME_STEPS


def test_rows_of_an_arm_follow_each_other_with_their_own_columns():
    moved = treated_first(attached())
    order = np.array([1, 3, 4, 0, 2, 5])
    assert moved.treated.tolist() == [True] * 3 + [False] * 3
    assert moved.covariates["x"].tolist() == (2 * Y + T)[order].tolist()
    assert outcomes(moved) == pytest.approx(Y[order])


def test_a_changed_outcome_is_one_changed_residual_in_its_range():
    before = residuals(attached(), "guess", (-1, 2))
    assert outcomes(before) == pytest.approx(np.clip(Y - 1.0, -1, 2), abs=1e-6)
    changed = public_rows(Table.attach(DATA | {"y": np.where(np.arange(6) == 2, 4, Y)}, STUDY))
    after = residuals(changed, "guess", (-1, 2))
    assert np.flatnonzero(outcomes(before) != outcomes(after)).tolist() == [2]
    assert before.study.outcome_range == after.study.outcome_range == (-1, 2)


def test_rows_without_covariates_keep_outcomes_and_arms():
    bare = without_covariates(attached())
    assert not bare.covariates
    assert outcomes(bare) == pytest.approx(Y)
    assert bare.treated.tolist() == (T == 1).tolist()


def test_what_was_private_is_private_of_moved_rows():
    rows = PublicRows(Table.attach(DATA, STUDY), Unit.TREATMENT_AND_OUTCOME)
    with pytest.raises(ParameterError, match="CV-P851"):
        assert without_covariates(rows).treated.any()
    assert not hasattr(treated_first(attached()), "outcome")
