"""Bought cut points left no budget for the effect: a fault after the charge."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.errors import ParameterError
from counterveil.session import SeededNoise

ROWS = 100


def session(covariates):
    draw = np.random.default_rng(0)
    data = {f"a{k}": draw.random(ROWS) for k in range(covariates)}
    data |= {"t": np.arange(ROWS) % 2, "y": draw.random(ROWS)}
    domains = {f"a{k}": cv.Range(0, 1) for k in range(covariates)}
    study = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), covariates=domains, control=0)
    return cv.Session(data, study, budget=cv.Budget(10), noise=SeededNoise(1))


def ask(held, covariates):
    settings = cv.settings.Stratified(cuts={f"a{k}": 2 for k in range(covariates)})
    return held.ate(protects="record", method="stratified", epsilon=1, settings=settings)


def test_twenty_are_refused_and_nothing_is_spent():
    with session(20) as held:
        with pytest.raises(ParameterError, match="CV-P640"):
            ask(held, 20)
        assert held.account().requests == 0


def test_nineteen_leave_something():
    with session(19) as held:
        assert np.isfinite(ask(held, 19).estimate)
