"""What a pure release is worth in Gaussian noise: the trade-off curves, compared point by point."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy.special import ndtr, ndtri

from counterveil.accounting import gaussian_equivalent
from counterveil.accounting.composition import pure_equivalent
from counterveil.privacy import GaussianEvent, LaplaceEvent, PureEvent, ResponseEvent

EPSILONS = [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(8)]
# Rounding of float64 in the comparison, far below the thousandth by which tightness is tested.
FLOAT_ERROR = 1e-12


def levels(*corners: float) -> np.ndarray:
    grid = np.concatenate([np.linspace(1e-6, 1 - 1e-6, 1000), np.logspace(-12, -0.01, 1000)])
    return np.concatenate([grid, np.array(corners)])


def gaussian_curve(alpha, mu):
    return ndtr(-ndtri(alpha) - mu)


def pure_curve(alpha, epsilon):
    return np.maximum(0, np.maximum(1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha)))


def laplace_curve(alpha, epsilon):
    low, middle = math.exp(-epsilon) / 2, math.exp(-epsilon) / (4 * alpha)
    outer = np.where(alpha < low, 1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha))
    return np.where((alpha >= low) & (alpha <= 0.5), middle, outer)


def response_curve(alpha, epsilon, k):
    q = 1 / (math.exp(epsilon) + k - 1)
    corners = ([0, q, (k - 1) * q, 1], [1, (k - 1) * q, q, 0])
    return np.interp(alpha, *corners)


def cases():
    for epsilon in EPSILONS:
        e = float(epsilon)
        corner = 1 / (1 + math.exp(e))
        yield PureEvent(epsilon), lambda a, e=e: pure_curve(a, e), (corner,)
        yield LaplaceEvent(epsilon), lambda a, e=e: laplace_curve(a, e), (math.exp(-e / 2) / 2,)
        for k in (2, 3, 10):
            q = 1 / (math.exp(e) + k - 1)
            yield ResponseEvent(epsilon, k), lambda a, e=e, k=k: response_curve(a, e, k), (q,)


@pytest.mark.parametrize(("event", "curve", "corners"), list(cases()))
def test_gaussian_pair_dominates_and_is_tight(event, curve, corners):
    mu = float(gaussian_equivalent(event))
    alpha = levels(*corners)
    assert np.all(gaussian_curve(alpha, mu) <= curve(alpha) + FLOAT_ERROR)
    # A thousandth less would be wrong somewhere, so the claim cannot be improved.
    at_corner = np.array(corners)
    assert np.any(gaussian_curve(at_corner, mu * 0.999) > curve(at_corner) + 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_point_is_the_first_of_its_grid_on_the_safe_side(epsilon):
    half = gaussian_equivalent(PureEvent(epsilon)) / 2

    def ball(value):
        return arb(fmpq(value.numerator, value.denominator))

    with ctx.workprec(400):
        at, before = ((ball(u) / arb(2).sqrt()).erfc() / 2 for u in (half, half - Fraction(1, 2**64)))
        assert at <= 1 / (1 + ball(epsilon).exp()) < before


def test_gaussian_is_itself():
    assert gaussian_equivalent(GaussianEvent(Fraction(1, 3))) == Fraction(1, 3)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**6), Fraction(1000), Fraction(10**9)])
def test_far_out_it_still_rounds_up(epsilon):
    mu = gaussian_equivalent(PureEvent(epsilon))
    # Phi(-mu/2) <= 1/(1 + e^epsilon) < e^-epsilon needs mu^2/8 of the order of epsilon.
    assert mu > 0
    if epsilon > 100:
        assert 1.9 < float(mu) / math.sqrt(2 * float(epsilon)) < 2.01


@pytest.mark.parametrize("mu", [Fraction(1, 1000), Fraction(1, 2), Fraction(3), Fraction(20)])
def test_pure_equivalent_is_the_inverse_rounded_down(mu):
    epsilon = pure_equivalent(mu)
    assert gaussian_equivalent(PureEvent(epsilon)) <= mu
    assert gaussian_equivalent(PureEvent(epsilon + Fraction(1, 2**37))) > mu
