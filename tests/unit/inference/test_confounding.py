"""E-values, robustness values and bounds on bias: figures of the papers, invariances, and biases that are known."""

from math import exp, inf, sqrt

import numpy as np
import pytest

from counterveil.inference.confounding import (
    as_strong_as,
    bias_bound,
    e_value,
    outcome_r2_needed,
    ratio_of_difference,
    robustness_value,
)


@pytest.mark.parametrize(
    ("ratio", "expected"),
    # VanderWeele and Ding (2017): formula feeding (3.9, limit 1.8) and a protective ratio (0.80).
    [(3.9, 7.26), (1.8, 3.0), (0.80, 1.81), (1.0, 1.0)],
)
def test_e_values_are_those_of_the_paper(ratio, expected):
    assert e_value(ratio) == pytest.approx(expected, abs=0.005)


def test_an_e_value_is_the_same_for_a_ratio_and_its_inverse_and_grows():
    ratios = np.linspace(1.0, 20.0, 50)
    values = [e_value(ratio) for ratio in ratios]
    assert values == pytest.approx([e_value(1 / ratio) for ratio in ratios])
    assert np.all(np.diff(values) > 0)
    assert e_value(0.0) == inf


def test_differences_become_ratios_by_the_usual_factor():
    assert ratio_of_difference(0.5, 1.0) == pytest.approx(exp(0.455))
    assert ratio_of_difference(5.0, 10.0) == pytest.approx(ratio_of_difference(0.5, 1.0))
    assert ratio_of_difference(1e9, 1.0) < inf


def test_robustness_values_are_those_of_the_paper():
    # Cinelli and Hazlett (2020), violence in Darfur: estimate .097, standard error .023, 783 degrees of freedom.
    scale, t = 0.0232 * sqrt(783), 0.0973 / 0.0232
    assert robustness_value(0.0973, scale) == pytest.approx(0.139, abs=0.001)
    left = (t - 1.963) * 0.0232
    assert robustness_value(left, 0.0232 * sqrt(782)) == pytest.approx(0.076, abs=0.001)
    # One that explains all of the outcome needs R2 = t^2 / (t^2 + df) of the treatment: 2.2 %.
    assert outcome_r2_needed(0.0973, scale, 0.0220) == pytest.approx(1.0, abs=0.02)


def test_bounds_of_the_paper_for_a_confounder_as_strong_as_being_a_woman():
    # The same study: partial R2 of "female" with treatment .9 %, with outcome 10.9 %; the estimate falls to .075.
    scale = 0.0232 * sqrt(783)
    treatment, outcome = as_strong_as(0.00908, 1), 0.1246
    assert 0.0973 - bias_bound(scale, treatment, outcome) == pytest.approx(0.0752, abs=0.001)
    assert as_strong_as(0.00908, 3) == pytest.approx(3 * treatment)
    assert as_strong_as(0.6, 3) == 1.0 == as_strong_as(1.0, 1)


@pytest.mark.parametrize("bias", [1e-6, 0.1, 3.0, 1e4])
def test_a_confounder_at_the_robustness_value_causes_just_that_bias(bias):
    share = robustness_value(bias, 0.7)
    assert 0 < share <= 1
    if share < 1 - 1e-6:
        assert bias_bound(0.7, share, share) == pytest.approx(bias, rel=1e-6)
        assert bias_bound(0.7, share, outcome_r2_needed(bias, 0.7, share)) == pytest.approx(bias, rel=1e-6)


def _short_and_long(rng, n, strength):
    """Return the effects without and with a confounder, S of the short regression and the confounder's two shares."""
    x, z = rng.standard_normal((2, n))
    t = 0.5 * x + strength * z + rng.standard_normal(n)
    y = 0.3 * t + 0.7 * x + 0.8 * z + rng.standard_normal(n)
    one = np.ones(n)

    def left(of, *by):
        design = np.column_stack([one, *by])
        return of - design @ np.linalg.lstsq(design, of, rcond=None)[0]

    t_x, y_tx = left(t, x), left(y, t, x)
    short = t_x @ y / (t_x @ t_x)
    t_xz = left(t, x, z)
    long = t_xz @ y / (t_xz @ t_xz)
    scale = sqrt((y_tx @ y_tx) / (t_x @ t_x))
    z_x, z_tx = left(z, x), left(z, t, x)
    treatment = (t_x @ z_x) ** 2 / (t_x @ t_x) / (z_x @ z_x)
    outcome = (y_tx @ z_tx) ** 2 / (y_tx @ y_tx) / (z_tx @ z_tx)
    return short, long, scale, treatment, outcome


@pytest.mark.parametrize("strength", [0.1, 0.6, 2.0])
def test_the_bias_of_a_regression_is_the_bound_for_its_omitted_variable(strength):
    short, long, *shares = _short_and_long(np.random.default_rng(3), 400, strength)
    assert abs(short - long) == pytest.approx(bias_bound(*shares), rel=1e-8)
