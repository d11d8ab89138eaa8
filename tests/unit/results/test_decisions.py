"""Tests against margins agree with intervals, and p-values with a published example."""

from math import inf

import numpy as np
import pytest
from scipy.stats import norm, ttest_ind

import counterveil as cv
from counterveil.errors import CounterveilError
from counterveil.results.decisions import margin_bounds

STUDY = cv.Study("t", "y", (0, 2), control=0, randomised=True)


def trial(n=3000, seed=1, epsilon=1, **more):
    rng = np.random.default_rng(seed)
    t = np.arange(n) % 2
    data = {"t": t, "y": np.clip(rng.normal(0.5 + 0.01 * t, 0.2, n), 0, 1)}
    return data, cv.ate(
        data,
        STUDY,
        protects="outcome",
        epsilon=epsilon,
        noise=cv.SeededNoise(seed),
        method="difference_in_means",
        **more,
    )


@pytest.mark.parametrize("measure", ["difference", "ratio"])
def test_a_test_is_met_where_the_interval_lies_beyond_its_margin(measure):
    _, found = trial(measure=measure)
    low, high = found.interval()
    for step, met in ((1e-4, True), (-1e-4, False)):
        below, above = low - step, high + step
        margin = below if measure == "ratio" else -below
        assert found.test("noninferiority", margin=margin).met is met
        assert found.test("equivalence", margin=(below, above)).met is met
        assert found.test("noninferiority", margin=above, higher_is_better=False).met is met
    test = found.test("superiority")
    assert test.p_value == pytest.approx(found.p_value / 2, rel=1e-6)
    assert ("not shown" in str(test)) is not test.met
    curve = {one["effect"]: one["p_value"] for one in found.confidence_curve()}
    inside = [effect for effect, p in curve.items() if p >= 0.05]
    assert min(inside) >= low - 1e-9
    assert max(inside) <= high + 1e-9
    assert max(curve.values()) == pytest.approx(1.0, abs=1e-6)


def test_with_a_large_budget_it_is_the_test_without_privacy():
    data, found = trial(epsilon=10**5)
    one, other = (data["y"][data["t"] == arm] for arm in (1, 0))
    plain = ttest_ind(one, other - 0.01, equal_var=False, alternative="greater").pvalue
    assert found.test("noninferiority", margin=0.01).p_value == pytest.approx(plain, rel=0.02)
    lower = norm.sf((0.03 - found.estimate) / found.std_error.total)
    assert found.test("equivalence", margin=0.03, level=0.9).p_value == pytest.approx(lower, rel=0.02)


def test_margins():
    assert margin_bounds("superiority", 0.1, True, 0.0) == (0.1, inf)
    assert margin_bounds("superiority", 0, False, 0.0) == (-inf, 0.0)
    assert margin_bounds("noninferiority", 0.8, True, 1.0) == margin_bounds("noninferiority", 1.25, True, 1.0)
    assert margin_bounds("equivalence", 1.25, True, 1.0) == (0.8, 1.25)
    for kind, margin in (("similar", 1), ("equivalence", 0), ("noninferiority", -1), ("equivalence", (1, 2))):
        with pytest.raises(CounterveilError, match="CV-P796"):
            margin_bounds(kind, margin, True, 0.0)
