"""Joint cost of a fixed plan: every rule valid, the smallest reported, the rule named."""

import importlib.util
import itertools
import math
from fractions import Fraction

import pytest
from scipy.special import ndtr

from counterveil.accounting import compose, gaussian_equivalent
from counterveil.accounting.composition import (
    DELTA_TOO_SMALL,
    LOSS_TOO_LARGE,
    NOT_INSTALLED,
    loss_distribution_epsilon,
)
from counterveil.errors import BudgetError
from counterveil.numerics.arrays import sqrt_up
from counterveil.numerics.gaussian_profile import epsilon_of
from counterveil.privacy import ApproximateEvent, GaussianEvent, LaplaceEvent, PureEvent, ResponseEvent

LN3 = Fraction(math.nextafter(math.log(3), 2))
MILLIONTH = Fraction(1, 10**6)


def gaussian_delta(mu: float, epsilon: float) -> float:
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


def response_delta(epsilon_each: float, count: int, epsilon: float) -> float:
    """Exact delta of `count` binary randomized responses, by the binomial mechanism of their loss."""
    p = math.exp(epsilon_each) / (1 + math.exp(epsilon_each))
    total = 0.0
    for ones in range(count + 1):
        loss = (2 * ones - count) * epsilon_each
        mass = math.comb(count, ones) * p**ones * (1 - p) ** (count - ones)
        total += mass * max(0.0, 1 - math.exp(epsilon - loss))
    return total


def test_tenths_add_up_exactly():
    figure = compose([PureEvent(Fraction(1, 10))] * 3, 0)
    assert (figure.epsilon, figure.delta, figure.method) == (Fraction(3, 10), 0, "plain sum")


def test_ten_responses_cost_ten_times_one():
    plan = [ResponseEvent(LN3, 2)] * 10
    assert compose(plan, 0).epsilon == 10 * LN3
    assert float(compose(plan, 0).epsilon) == pytest.approx(10.986, abs=1e-3)
    # The loss distribution counts all ten: at a delta this small it must be near the sum (on its grid
    # 10.987), never near a single response's 1.0987.
    numerical = loss_distribution_epsilon(plan, MILLIONTH)
    assert float(numerical) == pytest.approx(10.987, abs=1e-3)


def test_loss_distribution_matches_the_binomial_law():
    each, count, delta = Fraction(1, 10), 100, Fraction(1, 10**5)
    found = loss_distribution_epsilon([ResponseEvent(each, 2)] * count, delta)
    at_found = response_delta(float(each), count, float(found))
    assert at_found <= float(delta)
    assert response_delta(float(each), count, float(found) * 0.995) > float(delta)


def test_gaussians_add_up_in_squares():
    figure = compose([GaussianEvent(Fraction(3, 10)), GaussianEvent(Fraction(4, 10))], MILLIONTH)
    assert figure.method == "exact Gaussian"
    assert gaussian_delta(0.5, float(figure.epsilon)) == pytest.approx(1e-6, rel=1e-6)
    single = compose([GaussianEvent(Fraction(1, 2))], MILLIONTH)
    assert single.epsilon == figure.epsilon


def test_many_small_pure_releases_cost_less_with_a_delta():
    plan = [LaplaceEvent(Fraction(1, 10))] * 100
    figure = compose(plan, MILLIONTH)
    assert figure.method == "privacy loss distribution (numerical)"
    assert 4 < figure.epsilon < 5
    assert compose(plan, 0).epsilon == 10


def test_tiny_delta_is_left_to_the_proved_rules():
    figure = compose([LaplaceEvent(Fraction(1, 10))] * 100, 1e-12)
    assert figure.method == "all as Gaussian"
    assert figure.notes == (DELTA_TOO_SMALL,)
    assert figure.epsilon < 10


def test_one_large_pure_release_beside_a_gaussian_is_added_plainly():
    figure = compose([PureEvent(Fraction(1)), GaussianEvent(Fraction(1, 5))], 1e-12)
    alone = compose([GaussianEvent(Fraction(1, 5))], 1e-12)
    assert figure.method == "plain sum + exact Gaussian"
    assert figure.epsilon == 1 + alone.epsilon


def test_approximate_releases_add_both_parts():
    loose = ApproximateEvent(Fraction(1, 2), Fraction(1, 10**7))
    figure = compose([loose, loose], Fraction(2, 10**7))
    assert (figure.epsilon, figure.delta) == (1, Fraction(2, 10**7))
    mixed = compose([loose, GaussianEvent(Fraction(1, 5))], MILLIONTH)
    rest = compose([GaussianEvent(Fraction(1, 5))], MILLIONTH - loose.delta)
    assert mixed.epsilon <= Fraction(1, 2) + rest.epsilon


def test_what_approximate_releases_take_is_not_given_to_the_others():
    # A delta so small that only the proved rules are tried.
    delta, own = Fraction(1, 10**9), Fraction(4, 10**10)
    loose, gaussian = ApproximateEvent(Fraction(1), own), GaussianEvent(Fraction(1, 4))
    figure = compose([loose, gaussian], delta)
    assert figure.epsilon == 1 + epsilon_of(gaussian.mu, delta - own)
    assert figure.delta == delta
    pure = [PureEvent(Fraction(1, 100))] * 2000
    together = sqrt_up(2000 * gaussian_equivalent(pure[0]) ** 2)
    figure = compose([loose, *pure], delta)
    assert figure.method == "all as Gaussian"
    assert figure.epsilon == 1 + epsilon_of(together, delta - own)


def test_never_worse_than_any_rule_and_never_below_the_truth():
    """Mixtures of responses and one Gaussian: the exact delta, by summing over the responses' losses."""
    for each, count, mu in itertools.product((0.2, 1.0), (1, 4), (0.3, 1.0)):
        plan = [ResponseEvent(Fraction(str(each)), 2)] * count + [GaussianEvent(Fraction(str(mu)))]
        epsilon = float(compose(plan, 1e-5).epsilon)
        p = math.exp(each) / (1 + math.exp(each))
        truth = 0.0
        for ones in range(count + 1):
            mass = math.comb(count, ones) * p**ones * (1 - p) ** (count - ones)
            truth += mass * gaussian_delta(mu, epsilon - (2 * ones - count) * each)
        assert truth <= 1e-5 * (1 + 1e-9)
        assert truth > 0.9e-5


def test_without_the_extra_the_figure_says_so(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util,
        "find_spec",
        lambda name, *rest: None if name == "dp_accounting" else real(name, *rest),
    )
    figure = compose([LaplaceEvent(Fraction(1, 10))] * 100, MILLIONTH)
    assert figure.method == "all as Gaussian"
    assert figure.notes == (NOT_INSTALLED,)
    assert "[accounting]" in figure.notes[0]


def test_huge_losses_do_not_reach_the_grid():
    assert loss_distribution_epsilon([PureEvent(Fraction(10**6))] * 2, MILLIONTH) == LOSS_TOO_LARGE
    assert compose([PureEvent(Fraction(10**6))] * 2, MILLIONTH).epsilon <= 2 * 10**6


@pytest.mark.parametrize(
    ("events", "delta"),
    [
        ([], 0.1),
        ([GaussianEvent(Fraction(1))], 0),
        ([ApproximateEvent(Fraction(1), Fraction(1, 100))], 0.001),
        ([ApproximateEvent(Fraction(1), Fraction(1, 100)), GaussianEvent(Fraction(1))], 0.01),
        ([PureEvent(Fraction(1))], 1),
        ([PureEvent(Fraction(1))], -0.1),
    ],
)
def test_no_figure_is_said_plainly(events, delta):
    with pytest.raises(BudgetError, match="CV-B002"):
        compose(events, delta)


@pytest.mark.parametrize(
    "event",
    [
        PureEvent(Fraction(-1)),
        PureEvent(Fraction(0)),
        GaussianEvent(Fraction(0)),
        ResponseEvent(Fraction(1), 1),
        ApproximateEvent(Fraction(-1), Fraction(0)),
        ApproximateEvent(Fraction(1), Fraction(1)),
    ],
)
def test_impossible_releases_are_refused(event):
    with pytest.raises(BudgetError, match="CV-B006"):
        compose([event], Fraction(1, 2))
