"""Joint cost of a fixed plan, what a pure release is worth in Gaussian noise, roots and shares."""

import importlib.util
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

from counterveil.accounting import compose, gaussian_equivalent, split_epsilon, split_mu
from counterveil.accounting.composition import (
    DELTA_TOO_SMALL,
    LOSS_TOO_LARGE,
    NOT_INSTALLED,
    loss_distribution_epsilon,
    pure_equivalent,
    shorten_up,
    square_up,
)
from counterveil.errors import BudgetError
from counterveil.numerics.arrays import sqrt_down, sqrt_up
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


positive = st.fractions(min_value=Fraction(1, 10**9), max_value=10**6)
shares = st.lists(st.fractions(min_value=Fraction(1, 100), max_value=100), min_size=1, max_size=8)
STEP = Fraction(1, 2**64)


@given(positive)
def test_roots_enclose(value):
    assert sqrt_down(value) ** 2 <= value <= sqrt_up(value) ** 2
    assert sqrt_up(value) - sqrt_down(value) <= STEP


def test_rational_roots_are_exact():
    assert sqrt_down(Fraction(9, 4)) == sqrt_up(Fraction(9, 4)) == Fraction(3, 2)


@given(positive)
def test_squares_round_up(value):
    assert 0 <= square_up(value) - value**2 < Fraction(1, 2**128)


@given(st.lists(st.integers(min_value=2, max_value=10**9), min_size=1, max_size=40))
def test_long_sums_stay_short_and_never_fall(denominators):
    total, kept = Fraction(0), Fraction(0)
    for denominator in denominators:
        total += Fraction(1, denominator)
        kept = shorten_up(kept + Fraction(1, denominator))
    assert total <= kept <= total + len(denominators) * Fraction(1, 10**60)
    assert kept.denominator <= 10**60


@settings(max_examples=40)
@given(positive, shares)
def test_epsilon_is_divided_exactly(epsilon, weights):
    parts = split_epsilon(epsilon, weights)
    assert sum(parts) == epsilon
    assert parts[0] * weights[-1] == parts[-1] * weights[0]


@settings(max_examples=40)
@given(positive, shares)
def test_mu_is_divided_in_squares(mu, weights):
    parts = split_mu(mu, weights)
    spent = sum(part**2 for part in parts)
    assert spent <= mu**2
    assert mu**2 - spent <= len(parts) * 2 * (mu + 1) * STEP


@pytest.mark.parametrize(("amount", "weights"), [(1, []), (1, [1, 0]), (1, [2, -1]), (0, [1]), (-1, [1])])
def test_impossible_divisions_are_refused(amount, weights):
    for divide in (split_epsilon, split_mu):
        with pytest.raises(BudgetError, match="CV-B003"):
            divide(amount, weights)
