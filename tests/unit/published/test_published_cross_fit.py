"""The published private interval of a doubly robust estimate: its scale, what it says, what it refuses."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.data import Table
from counterveil.datasets import synth
from counterveil.errors import ClaimError, ParameterError
from counterveil.published.doubly_robust import influence
from counterveil.session import SeededNoise

DATA = synth(seed=30_001, n=12_000, covariates=5, outcome_range=(0, 3))


def ask(**extra):
    given = {"epsilon": 2, "delta": "1e-6", "accept": "unproved", "noise": SeededNoise(3)} | extra
    return cv.published.cross_fit(DATA.frame, DATA.study, **given)


def test_refuses_before_it_spends():
    given = {"epsilon": 1, "delta": "1e-6", "accept": "unproved"}
    wrong = {"CV-P432": {"delta": 0}, "CV-P433": {"estimand": "ATT"}}
    with cv.Session(synth(n=2000).frame, synth(n=2000).study, budget=cv.Budget(4, "1e-5")) as session:
        for code, changed in wrong.items():
            with pytest.raises(ParameterError, match=code):
                cv.published.cross_fit(session, **(given | changed))
        with pytest.raises(ClaimError, match="CV-C001"):
            cv.published.cross_fit(session, **(given | {"accept": None}))
        assert session.remaining().epsilon == 4


def test_the_published_scale_is_that_of_the_influence_function():
    table = Table.attach(DATA.frame, DATA.study)
    found = influence(table, 0.1)
    assert abs(found.effect - 0.5) < 0.01
    # Residuals reach about the range, the least propensity is near the clip.
    assert 3 < found.largest <= 3 / 0.1 + 1
    result = ask()
    expected = 5 * np.sqrt(2 * np.log(12_000) * np.log(2 / 0.5e-6)) / (1 * 12_000) * found.largest
    assert result.details["effect_noise_sd"] == pytest.approx(expected)
    assert result.uncertainty.noise.variance == pytest.approx(expected**2, rel=1e-6)
    factor = expected / found.largest
    assert found.largest_of_variance == pytest.approx(found.largest**2 - found.variance)
    noise_of_variance = factor * found.largest_of_variance
    assert result.details["variance_noise_sd"] == pytest.approx(noise_of_variance)
