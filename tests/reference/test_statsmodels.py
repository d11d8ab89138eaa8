"""Agreement with statsmodels where there is hardly any noise: regressions, HC1 errors, doses, sites that differ."""

import numpy as np
import pytest

import counterveil as cv
from counterveil.inference.pooling import heterogeneity

DIGITS = 2e-3  # three digits
FREE = {"epsilon": 100_000, "noise": cv.SeededNoise(1)}
linear = pytest.importorskip("statsmodels.regression.linear_model", reason="statsmodels is not installed")


@pytest.mark.parametrize("protects", ["record", "outcome"])
def test_regressions_and_hc1_errors(protects):
    rng, n = np.random.default_rng(2), 20_000
    t, x = rng.integers(0, 2, n), rng.uniform(0, 1, n)
    y = np.clip(0.3 + 0.05 * t + 0.2 * x + 0.1 * x * rng.normal(size=n), -1, 2)
    study = cv.Study("t", "y", (-1, 2), {"x": cv.Range(0, 1)}, control=0, randomised=True)
    asked = {"protects": protects, "delta": "1e-6", "robust": ["y ~ t + x"], **FREE}
    found = cv.moments({"t": t, "x": x, "y": y}, study, **asked).regress("y ~ t + x", cov_type="HC1")
    other = linear.OLS(y, np.column_stack((np.ones(n), t, x))).fit(cov_type="HC1")
    for place, name in enumerate(("Intercept", "t", "x")):
        assert found.params[name] == pytest.approx(other.params[place], rel=DIGITS)
        assert found.bse[name] == pytest.approx(other.bse[place], rel=10 * DIGITS)


def test_slopes_over_doses():
    rng = np.random.default_rng(3)
    dose = np.repeat([0, 5, 10, 20], 500)
    y = np.clip(0.4 + 0.004 * dose + rng.normal(0, 0.1, 2000), 0, 1)
    study = cv.Study("dose", "y", (0, 2), arms=[0, 5, 10, 20], reference=0, randomised=True)
    found = cv.arms({"dose": dose, "y": y}, study, protects="outcome", method="difference_in_means", **FREE)
    other = linear.OLS(y, np.column_stack((np.ones(2000), dose))).fit(cov_type="HC2")
    assert found.slope().estimate == pytest.approx(other.params[1], rel=DIGITS)
    assert float(found.slope().std_error) == pytest.approx(other.bse[1], rel=0.01)


def test_how_far_sites_differ():
    from statsmodels.stats.meta_analysis import combine_effects

    effects, variances = np.array([0.1, 0.5, 0.3, 0.9, -0.1]), np.array([0.02, 0.03, 0.01, 0.04, 0.05])
    other, own = combine_effects(effects, variances, method_re="iterated"), heterogeneity(effects, variances)
    assert own.tau_squared == pytest.approx(other.tau2, rel=DIGITS)
    assert own.q == pytest.approx(other.q, rel=DIGITS)
    assert own.i_squared == pytest.approx(other.i2, rel=DIGITS)
