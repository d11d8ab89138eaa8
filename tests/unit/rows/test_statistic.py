"""Statistics that somebody declares: their bounds, what is refused, and what counts as zero."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.errors import ParameterError
from counterveil.privacy import Unit
from counterveil.rows.made_up import made_up_rows
from counterveil.rows.public import PublicData
from counterveil.rows.statistic import Statistic, exact_values, values_or_zero
from counterveil.session import BaseSession

STUDY = cv.Study("t", cv.Outcome("y", (0, 2)), {"x": (0, 1), "g": ["p", "q"]}, assignment=cv.Trial())
DATA = {
    "t": np.array([0, 1, 0, 1, 1, 0]),
    "y": np.array([0.0, 2.0, 1.0, 2.0, 0.0, 1.0]),
    "x": np.linspace(0, 1, 6),
    "g": np.array(["p", "q", "p", "q", "p", "q"]),
}


@dataclass(frozen=True)
class Total(Statistic):
    bound: Any = Fraction(2)
    scale: Any = 1

    def value(self, rows: Table) -> Any:
        return int(rows.outcome.sum()) * rows.outcome_unit * self.scale


def table(data=DATA) -> Table:
    with BaseSession(data, STUDY, budget=cv.Budget(1)) as session:
        return session.table


def public(unit: Unit) -> PublicData:
    return PublicData(BaseSession(DATA, STUDY, budget=cv.Budget(1)), unit)


def test_a_sum_of_steps_is_exact():
    assert exact_values(Total(), table()) == [Fraction(6)]


@pytest.mark.parametrize("bound", [None, 0, -1, 0.1, True, "1"])
def test_a_statistic_without_an_exact_positive_bound_is_refused(bound):
    with pytest.raises(ParameterError, match="CV-P840"):
        Total(bound).declared_bound()


def test_a_statistic_of_an_unknown_norm_is_refused():
    class Sup(Total):
        norm = "sup"  # type: ignore[assignment]

    with pytest.raises(ParameterError, match="CV-P840"):
        Sup().declared_bound()


def test_a_float_is_refused_and_counts_as_zero_on_private_rows():
    total = Total(scale=0.5)
    with pytest.raises(ParameterError, match="CV-P841"):
        exact_values(total, table())
    assert values_or_zero(total, table(), length=1) == [Fraction(0)]


def test_a_failure_on_private_rows_counts_as_zero_and_so_does_another_length():
    class Fails(Total):
        def value(self, rows):
            raise KeyError(rows.outcome[0])

    class Lists(Total):
        norm = "l1"

        def value(self, rows):
            return [1] * int(rows.treated.sum())

    assert values_or_zero(Fails(), table(), length=1) == [Fraction(0)]
    assert values_or_zero(Lists(), table(), length=2) == [Fraction(0)] * 2
    assert values_or_zero(Lists(), table(), length=3) == [Fraction(1)] * 3


@pytest.mark.parametrize("unit", list(Unit))
def test_made_up_rows_keep_what_is_public_and_nothing_else(unit):
    real = table()
    made = made_up_rows(public(unit))
    assert made.rows == real.rows
    assert 0 <= made.outcome.min() <= made.outcome.max() <= OUTCOME_STEPS
    assert not np.array_equal(made.outcome, real.outcome)
    assert np.array_equal(made.arm, real.arm) == unit.treatment_public
    for name in STUDY.covariates:
        assert np.array_equal(made.covariates[name], real.covariates[name]) == unit.covariates_public


def test_made_up_rows_do_not_depend_on_private_rows():
    other = PublicData(
        BaseSession(DATA | {"y": 2 - DATA["y"], "x": 1 - DATA["x"]}, STUDY, budget=cv.Budget(1)), Unit.RECORD
    )
    ours, theirs = made_up_rows(public(Unit.RECORD)), made_up_rows(other)
    assert np.array_equal(ours.outcome, theirs.outcome)
    assert all(np.array_equal(ours.covariates[name], theirs.covariates[name]) for name in ours.covariates)


def test_public_data_refuses_what_is_private():
    record, pair = public(Unit.RECORD), public(Unit.TREATMENT_AND_OUTCOME)
    for private in (
        lambda: record.arm_sizes,
        lambda: pair.arm_sizes,
        lambda: record.columns.covariates,
        lambda: pair.columns.treated,
        lambda: pair.columns.cluster,
    ):
        with pytest.raises(ParameterError, match="CV-P851"):
            private()
    assert pair.columns.covariates["x"].shape == (6,)
    assert public(Unit.OUTCOME).arm_sizes == (3, 3)
    assert not hasattr(public(Unit.OUTCOME).columns, "outcome")


def test_a_bound_of_an_l1_change_holds_over_all_small_data_sets():
    class ByArm(Statistic):
        bound = 2
        norm = "l1"

        def value(self, rows):
            high = rows.outcome > OUTCOME_STEPS // 2
            return [int((high & (rows.arm == arm)).sum()) for arm in (0, 1)]

    outcomes = list(product((0.0, 2.0), repeat=3))
    arms = list(product((0, 1), repeat=3))
    fixed = {"t": [0, 1, 0, 1], "y": [0.0, 0.0, 0.0, 0.0], "x": [0.0] * 7, "g": ["p"] * 7}
    values = {}
    for y in outcomes:
        for t in arms:
            data = fixed | {"t": np.array([*fixed["t"], *t]), "y": np.array([*fixed["y"], *y])}
            values[y, t] = exact_values(ByArm(), table(data | {"x": np.zeros(7), "g": np.array(["p"] * 7)}))
    changes = [
        sum(abs(a - b) for a, b in zip(values[y, t], values[z, u], strict=True))
        for y, t in values
        for z, u in values
        if sum((y[k], t[k]) != (z[k], u[k]) for k in range(3)) == 1
    ]
    assert max(changes) == ByArm().declared_bound()
