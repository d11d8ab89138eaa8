"""Ratios and odds ratios of noisy means: Fieller's interval, its ends, its test."""

from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pytest
from scipy.special import ndtri

from counterveil.inference.measures import ODDS, RATIO, ApartMeans, JointMeans, Quotient, Scaled, combined
from counterveil.inference.uncertainty import Uncertainty
from counterveil.mechanisms import Gaussian, Laplace, Staircase

# People in the arms, for the difference alone: ratios do not depend on them.
SIZES = (100.0, 400.0)


def normal(sd):
    return Gaussian(Fraction(sd), Fraction(1))


def means(one, other, variances, noise=1e-9):
    known = tuple(Uncertainty(normal(noise), v, v) for v in variances)
    return ApartMeans((one, other), known, (0.0, 1.0), SIZES)


def fieller(one, other, variances):
    z = float(ndtri(0.975))
    lead = other**2 - z**2 * variances[1]
    middle = one * other / lead
    half = sqrt(middle**2 - (one**2 - z**2 * variances[0]) / lead)
    return middle - half, middle + half


def test_without_noise_the_interval_is_that_of_fieller():
    # In the middle of the range variances do not change with the means.
    variances = (2e-6, 3e-6)
    low, high = Quotient(means(0.5, 0.5, variances), RATIO).interval(0.95)
    assert (low, high) == pytest.approx(fieller(0.5, 0.5, variances), rel=1e-6)


def test_variances_of_rare_outcomes_follow_the_ratio_that_is_tested():
    variances = (1e-6, 1e-6)
    found = Quotient(means(0.001, 0.01, variances), RATIO)
    low, high = found.interval(0.95)
    plain = fieller(0.001, 0.01, variances)
    # At larger ratios than the one seen, more of the treated would be expected to have the outcome.
    assert high > 1.1 * plain[1]
    assert low <= max(plain[0], 0.0) + 1e-9


@pytest.mark.parametrize("kind", [RATIO, ODDS])
@pytest.mark.parametrize("mechanism", [Laplace, Staircase])
def test_ends_are_where_the_test_just_rejects(kind, mechanism):
    noise = mechanism(Fraction(1, 200), Fraction(1))
    known = Uncertainty(noise, 4e-4, 1e-3)
    found = Quotient(ApartMeans((0.3, 0.2), (known, known), (0.0, 1.0), SIZES), kind)
    for end in found.interval(0.95):
        assert found.p_value(0.95, end) == pytest.approx(0.05, rel=1e-4)
    assert found.p_value(0.95, found.estimate) == pytest.approx(1.0)


def test_a_control_mean_that_is_lost_in_its_noise_leaves_no_upper_end():
    known = Uncertainty(Laplace(Fraction(1, 10), Fraction(1)), 1e-4, 1e-3)
    low, high = Quotient(ApartMeans((0.9, 0.02), (known, known), (0.0, 1.0), SIZES), RATIO).interval(0.95)
    assert high == inf
    assert 1 < low < 10
    assert Quotient(ApartMeans((0.1, 0.02), (known, known), (0.0, 1.0), SIZES), RATIO).interval(0.95) == (
        0.0,
        inf,
    )


def test_means_below_zero_are_taken_at_zero():
    known = Uncertainty(Laplace(Fraction(1, 50), Fraction(1)), 1e-4, 1e-3)
    found = Quotient(ApartMeans((-0.05, -0.1), (known, known), (0.0, 1.0), SIZES), RATIO)
    assert found.interval(0.95) == (0.0, inf)
    assert found.estimate == 0.0
    assert np.isfinite(found.parts).all()


def test_joint_means_follow_from_the_mean_of_everyone_and_the_difference():
    known = Uncertainty(None, 4e-4, 1e-3)
    joint = JointMeans(0.3, None, 0.1, known, 0.25, 0.0, 1000, (0.0, 1.0))
    assert joint.values == pytest.approx((0.375, 0.275))
    # Of a variance of 4e-4 the larger weight falls on what the range allows of it.
    sd, noise, _ = joint.errors(0.05)(1.0, 2.0, (1.0, 1.0))
    cap = joint._caps(0.05)[1]
    assert noise is None
    assert cap == pytest.approx(min(0.25, cap * 750) / 750)
    assert sd**2 == pytest.approx(4 * min(cap, 4e-4) + max(4e-4 - cap, 0.0))
    assert joint.errors(0.05)(1.0, 1.0, (1.0, 1.0))[0] ** 2 == pytest.approx(4e-4)


def test_scaled_noise_is_the_mechanism_of_that_sensitivity():
    base, twice = Laplace(Fraction(1), Fraction(2)), Laplace(Fraction(2), Fraction(2))
    x, p = np.linspace(-3, 3, 7), np.array([0.01, 0.4, 0.9])
    scaled = Scaled(base, 2.0)
    assert scaled.variance == twice.variance
    assert np.allclose(scaled.cdf(x), twice.cdf(x))
    assert np.allclose(scaled.quantile(p), twice.quantile(p))
    assert np.allclose(scaled.kinks(-9, 9, 100), twice.kinks(-9, 9, 100))
    assert combined([(1.0, base), (0.0, twice)]) is base
    assert combined([(1.0, None), (0.0, twice)]) is None


def test_errors_below_rounding_leave_the_estimate_alone():
    found = Quotient(means(0.04097352393619469, 0.016527635528529094, (0.0, 0.0), 1e-30), RATIO)
    assert found.interval(0.95) == pytest.approx((2.4790916925454, 2.4790916925454), rel=1e-12)
