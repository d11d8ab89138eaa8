import math
from fractions import Fraction

import pytest
from scipy import stats

from counterveil.errors import ParameterError
from counterveil.numerics.gaussian_profile import SMALLEST_DELTA, delta_of, epsilon_of, mu_of

EPSILONS = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(5), Fraction(20)]
DELTAS = [Fraction(1, 10**3), Fraction(1, 10**5), Fraction(1, 10**12)]
TIGHT = Fraction(1, 2**40)  # the inversions stop at a relative step of 2**-47


def float_delta(mu, epsilon):
    return stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)


def test_the_standard_deviation_at_epsilon_one_is_the_published_one():
    assert float(1 / mu_of(Fraction(1), Fraction(1, 10**5))) == pytest.approx(3.7306, abs=1e-4)


@pytest.mark.parametrize("mu", [Fraction(1, 4), Fraction(1), Fraction(3)])
@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(1, 2), Fraction(2)])
def test_delta_agrees_with_floating_point_where_that_is_accurate(mu, epsilon):
    assert float(delta_of(mu, epsilon)) == pytest.approx(float_delta(float(mu), float(epsilon)), rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_mu_is_on_the_safe_side_and_tight(epsilon, delta):
    mu = mu_of(epsilon, delta)
    assert delta_of(mu, epsilon) <= delta
    assert delta_of(mu * (1 + TIGHT), epsilon) > delta


@pytest.mark.parametrize("mu", [Fraction(1, 20), Fraction(1), Fraction(6)])
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_on_the_safe_side_and_tight(mu, delta):
    epsilon = epsilon_of(mu, delta)
    assert delta_of(mu, epsilon) <= delta
    assert delta_of(mu, epsilon * (1 - TIGHT)) > delta


def test_noise_that_hides_enough_at_epsilon_zero_costs_nothing():
    assert epsilon_of(Fraction(1, 10), Fraction(1, 2)) == 0


def test_absurd_arguments_still_give_valid_bounds():
    assert delta_of(Fraction(1, 10**7), Fraction(10)) == SMALLEST_DELTA
    assert delta_of(Fraction(10**6), Fraction(1)) == 1
    assert delta_of(Fraction(10**3), Fraction(10**30)) == SMALLEST_DELTA


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (delta_of, (Fraction(0), Fraction(1))),
        (delta_of, (Fraction(1), Fraction(-1))),
        (epsilon_of, (Fraction(1), Fraction(0))),
        (mu_of, (Fraction(1), Fraction(1))),
    ],
)
def test_arguments_out_of_range_are_refused(call, arguments):
    with pytest.raises(ParameterError, match="CV-P110"):
        call(*arguments)
