"""Budgets and ranges beyond double precision, and too few rows: faults, most of them after the charge."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.session import SeededNoise

TRIAL = {"randomised": True, "treated_share": "1/2"}


def session(rows=20, outcome_range=(0, 1)):
    draw = np.random.default_rng(0)
    data = {"a": draw.random(rows), "t": np.arange(rows) % 2, "y": draw.random(rows)}
    study = cv.Study(
        treatment="t",
        outcome="y",
        outcome_range=outcome_range,
        covariates={"a": cv.Range(0, 1)},
        control=0,
        **TRIAL,
    )
    return cv.Session(data, study, budget=cv.Budget("1e9", "1e-2"), noise=SeededNoise(1))


def refused(held, code, **asked):
    with pytest.raises(CounterveilError, match=code):
        held.ate(**({"protects": "record", "epsilon": 1} | asked))
    assert held.account().requests == 0


@pytest.mark.parametrize(
    "budget",
    [{"epsilon": "1e-90"}, {"epsilon": "1e-13", "delta": "1e-6"}, {"epsilon": "1e13"}],
)
@pytest.mark.parametrize("protects", ["outcome", "record"])
def test_budgets_that_are_not_doubles(budget, protects):
    with session() as held:
        refused(held, "CV-P641", protects=protects, **budget)


@pytest.mark.parametrize("bounds", [("-1e300", "1e300"), (0, "1e-190"), (0, "1e120")])
def test_ranges_whose_squares_are_not_doubles(bounds):
    with session(outcome_range=bounds) as held:
        refused(held, "CV-P642", method="trial")


@pytest.mark.parametrize("rows", [4, 5, 6, 7])
def test_fewer_than_eight_rows_with_a_declared_share(rows):
    with session(rows) as held:
        found = held.policy_value(policy=cv.Policy.where(a=(0, 0.5)), epsilon=1)
        assert np.isfinite(found.estimate)
