from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from tests.thinned import thinned_rows

from counterveil.errors import ParameterError
from counterveil.mechanisms import Grid, SeededNoise, SmoothLaplace, mechanism_from_dict
from counterveil.privacy import ApproximateEvent

SETTINGS = [(1, "1e-5", "0.04"), (1, "1e-5", "0.063"), ("0.5", "1e-6", "0.01"), (4, "1e-5", "0.2")]


def excess(mechanism, shift, change, shrink=1.0):
    """Return the hockey-stick divergence between scale 1 at 0 and scale e^change at `shift`, S = 1."""
    rate = float(mechanism.rate) * shrink
    b, other = 1 / rate, exp(change) / rate
    # Piecewise exponentials: integrate exactly between the kinks on a fine mesh of the log ratio.
    edges = np.unique(np.concatenate([np.linspace(-400 * b, 400 * b, 800_001), [0.0, shift]]))
    middle = (edges[1:] + edges[:-1]) / 2
    ratio = np.log(other / b) + np.abs(middle - shift) / other - np.abs(middle) / b
    here = np.abs(np.diff(_cdf(edges / b)))
    there = np.abs(np.diff(_cdf((edges - shift) / other)))
    over = ratio > float(mechanism.epsilon)
    return float((here[over] - exp(float(mechanism.epsilon)) * there[over]).sum())


def _cdf(x):
    return np.where(x < 0, 0.5 * np.exp(-np.abs(x)), 1 - 0.5 * np.exp(-np.abs(x)))


def worst(mechanism, shrink=1.0):
    g = float(mechanism.smoothness)
    return max(
        excess(mechanism, share * min(1.0, exp(change)), change, shrink)
        for change in (-g, -g / 2, 0.0, g / 2, g)
        for share in (0.0, 0.5, 1.0)
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "smoothness"), thinned_rows(SETTINGS, SETTINGS[0], SETTINGS[-1])
)
def test_the_divergence_is_at_most_delta_and_not_far_below(epsilon, delta, smoothness):
    mechanism = SmoothLaplace(epsilon, delta, smoothness)
    assert 0.3 * float(mechanism.delta) <= worst(mechanism) <= float(mechanism.delta)


@pytest.mark.parametrize(("epsilon", "delta", "smoothness"), thinned_rows(SETTINGS, SETTINGS[0]))
def test_a_third_of_the_noise_breaks_the_claim(epsilon, delta, smoothness):
    mechanism = SmoothLaplace(epsilon, delta, smoothness)
    assert worst(mechanism, shrink=3.0) > 100 * float(mechanism.delta)


@pytest.mark.parametrize(("delta", "g"), [(1e-5, 0.05), (0.1, 0.2), (0.5, 1e-3)])
def test_the_rate_is_the_largest_that_the_inequalities_allow(delta, g):
    mechanism = SmoothLaplace(1, str(delta), str(g))
    rate = float(mechanism.rate)

    def holds(r):
        tail = (1 - exp(-g)) * exp(-(1 - r + g) / (exp(g) - 1))
        return r <= 1 and r * exp(-g) + g <= 1 and tail <= delta

    assert holds(rate - 1e-9)
    assert not holds(rate + 1e-9)


def test_the_classical_rule_needs_more_noise():
    smoothness = Fraction(1 / (2 * log(2 / 1e-5)))
    assert SmoothLaplace(1, "1e-5", smoothness).rate > Fraction(13, 20)  # the classical rate is 1/2


def test_charge_and_facts():
    mechanism = SmoothLaplace(1, "1e-5", "0.05")
    assert mechanism.event == ApproximateEvent(Fraction(1), Fraction(1, 100_000))
    assert mechanism_from_dict(mechanism.to_dict()) == mechanism


def test_draws_follow_the_law(assert_law):
    assert_law(SmoothLaplace(1, "1e-5", "0.05").distribution(Fraction(3, 7)))


def test_a_zero_sensitivity_gives_the_value():
    mechanism = SmoothLaplace(1, "1e-5", "0.05")
    got = mechanism.release(Fraction(1, 2), Fraction(0), Grid(Fraction(1, 4)), SeededNoise(1))
    assert got == Fraction(1, 2)


@pytest.mark.parametrize(
    ("epsilon", "delta", "smoothness"), [(1, 0, "0.05"), (1, "1e-5", "0.3"), (1, "1e-5", 2)]
)
def test_parameters_without_room_are_refused(epsilon, delta, smoothness):
    with pytest.raises(ParameterError, match="CV-P103"):
        SmoothLaplace(epsilon, delta, smoothness)
