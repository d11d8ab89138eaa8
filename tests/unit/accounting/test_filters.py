"""Filters under full adaptivity: what the ledger accepts, and why it accepts no loss distribution."""

import math
from fractions import Fraction

import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import norm

from counterveil.accounting import split_mu
from counterveil.accounting.composition import GaussianRule, SumRule, check_charge, limit_holds, rule_for
from counterveil.errors import BudgetError, LedgerError
from counterveil.numerics.gaussian_profile import mu_of
from counterveil.privacy import (
    ApproximateEvent,
    Budget,
    Charge,
    GaussianEvent,
    LaplaceEvent,
    PureEvent,
    ResponseEvent,
)

ONE, MILLIONTH = Fraction(1), Fraction(1, 10**6)


def pure(epsilon) -> Charge:
    budget = Budget(epsilon)
    return Charge(budget, (PureEvent(budget.epsilon),))


def gaussian(epsilon, delta) -> Charge:
    budget = Budget(epsilon, delta)
    return Charge(budget, (GaussianEvent(mu_of(budget.epsilon, budget.delta)),))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Hockey-stick divergence of N(0, 1) against N(mu, 1) at any real epsilon."""
    if mu == 0:
        return max(0.0, 1 - math.exp(epsilon))
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-5), (3, 1e-6)])
def test_adaptive_gaussian_analysts_stay_within_delta(epsilon, delta):
    """After the first draw the analyst spends the rest only where that hurts most; integrated exactly."""
    limit = float(rule_for(Budget(epsilon, delta), "gaussian").limit)
    for share in (0.3, 0.6):
        first, second = limit * math.sqrt(share), limit * math.sqrt(1 - share)
        for threshold in (-1.0, 0.0, 2.0, math.inf):

            def loss_delta(z, first=first, second=second, threshold=threshold):
                loss = first * first / 2 + first * z
                # Above the threshold the analyst stops, below she spends everything that is left.
                return norm.pdf(z) * gaussian_delta(0 if z > threshold else second, epsilon - loss)

            points = [threshold] if math.isfinite(threshold) else None
            total = quad(loss_delta, -12, 12, limit=400, points=points, epsabs=1e-14)[0]
            assert total <= delta * (1 + 1e-6)
            if threshold == math.inf:
                assert total > 0.95 * delta


@pytest.mark.parametrize("first", [0.05, 0.2, 0.6])
def test_union_of_pure_and_gaussian_pays_delta_once(first):
    """First a response; after one answer go on purely beyond the squares, else with Gaussian noise."""
    budget = Budget(2, 1e-4)
    rule = rule_for(budget, "gaussian")
    start = rule.cost(Charge(Budget(str(first)), (ResponseEvent(Fraction(str(first)), 2),)))
    beyond = pure(budget.epsilon - Fraction(str(first)))
    after_pure = start.plus(rule.cost(beyond))
    assert rule.fits(after_pure)
    assert after_pure.mu2 > rule.limit**2  # only the pure sum lets it through
    left = rule.limit**2 - start.mu2
    if left <= 0:
        assert not rule.fits(start.plus(rule.cost(gaussian(0.001, 1e-9))))
        return
    mu = math.sqrt(left)
    p = math.exp(first) / (1 + math.exp(first))
    for pure_after_high in (True, False):
        total = 0.0
        for high, mass, loss in ((True, p, first), (False, 1 - p, -first)):
            rest = 2.0 - loss
            if high == pure_after_high:
                epsilon2 = 2.0 - first
                q = math.exp(epsilon2) / (1 + math.exp(epsilon2))
                total += mass * q * max(0.0, 1 - math.exp(rest - epsilon2))
            else:
                total += mass * gaussian_delta(mu, rest)
        assert total <= 1e-4


def test_sums_are_exact():
    rule = SumRule(Budget("0.3"))
    total = rule.nothing()
    for _ in range(3):
        total = total.plus(rule.cost(pure("0.1")))
        assert rule.fits(total)
    assert rule.remaining(total).epsilon == 0
    assert not rule.fits(total.plus(rule.cost(pure("1e-30"))))


def test_sums_count_delta():
    rule = SumRule(Budget(10, 1e-6))
    total = rule.nothing()
    for _ in range(2):
        total = total.plus(rule.cost(gaussian(1, 5e-7)))
    assert rule.fits(total)
    assert rule.remaining(total).delta == 0
    assert not rule.fits(total.plus(rule.cost(gaussian(1, 1e-12))))
    assert rule.fits(total.plus(rule.cost(pure(8))))


def test_gaussian_rule_gives_more_answers_than_sums():
    budget = Budget(3, 1e-6)
    charge = gaussian(0.3, 1e-7)
    answers = {}
    for name in ("sum", "gaussian"):
        rule = rule_for(budget, name)
        total, count = rule.nothing(), 0
        while rule.fits(total.plus(rule.cost(charge))):
            total, count = total.plus(rule.cost(charge)), count + 1
        answers[name] = count
    assert answers["sum"] == 10
    assert answers["gaussian"] > 40


def test_gaussian_rule_spends_exactly_the_split():
    rule = rule_for(Budget(1, 1e-6), "gaussian")
    total = rule.nothing()
    for mu in split_mu(rule.limit, [1, 2, 3]):
        total = total.plus(rule.cost(Charge(Budget(1, 1e-6), (GaussianEvent(mu),))))
        assert rule.fits(total)
    assert rule.spent(total).epsilon <= 1
    assert rule.remaining(total).mu < Fraction(1, 10**8)


def test_gaussian_rule_keeps_plain_sums_while_all_is_pure():
    rule = rule_for(Budget(3, 1e-6), "gaussian")
    total = rule.nothing().plus(rule.cost(pure(3)))
    assert rule.fits(total)
    assert rule.spent(total).epsilon == 3
    assert rule.spent(total).delta == 0
    assert not rule.fits(total.plus(rule.cost(gaussian(0.01, 1e-9))))
    assert rule.remaining(total).epsilon == 0


def test_gaussian_rule_counts_a_face_value_that_is_above_its_draws():
    rule = rule_for(Budget(1, 1e-6), "gaussian")
    promised = Charge(Budget("0.6"), (PureEvent(Fraction(1, 100)),))
    assert rule.cost(promised).epsilon == Fraction(3, 5)
    mixed = Charge(Budget("0.6", 1e-7), (PureEvent(Fraction(1, 100)), GaussianEvent(Fraction(1, 100))))
    assert not rule.cost(mixed).pure


def test_what_remains_is_accepted_and_a_little_more_is_not():
    rule = rule_for(Budget(1, 1e-6), "gaussian")
    total = rule.nothing().plus(rule.cost(gaussian(0.2, 1e-7)))
    left = rule.remaining(total)
    assert rule.fits(total.plus(rule.cost(pure(left.epsilon))))
    assert not rule.fits(total.plus(rule.cost(pure(left.epsilon + Fraction(1, 2**30)))))
    face = Budget(1, 1e-6)
    assert not rule.fits(total.plus(rule.cost(Charge(face, (GaussianEvent(left.mu + Fraction(1, 2**30)),)))))


def test_gaussian_rule_refuses_what_it_cannot_count():
    rule = rule_for(Budget(1, 1e-6), "gaussian")
    with pytest.raises(BudgetError, match="CV-B005"):
        rule.cost(Charge(Budget(1, 1e-7), (ApproximateEvent(Fraction(1), Fraction(1, 10**7)),)))


@pytest.mark.parametrize(("budget", "name"), [(Budget(1), "gaussian"), (Budget(1, 1e-6), "pld")])
def test_unfit_rules_are_refused(budget, name):
    with pytest.raises(LedgerError, match="CV-L012"):
        rule_for(budget, name)


def test_a_limit_that_is_too_large_is_noticed():
    budget = Budget(1, 1e-6)
    right = rule_for(budget, "gaussian").limit
    assert limit_holds(GaussianRule(budget, right))
    assert limit_holds(GaussianRule(budget, right * Fraction(99, 100)))
    assert not limit_holds(GaussianRule(budget, right * Fraction(101, 100)))
    # The limit is the calibration of the budget, to the last digits.
    float_limit = brentq(lambda mu: gaussian_delta(mu, 1.0) - 1e-6, 0.01, 1)
    assert float(right) == pytest.approx(float_limit, rel=1e-9)


@pytest.mark.parametrize(
    "charge",
    [
        pure(1),
        gaussian(1, 1e-6),
        Charge(Budget(1), (LaplaceEvent(Fraction(1, 2)), PureEvent(Fraction(1, 2)))),
        Charge(Budget(1, 1e-6), tuple(GaussianEvent(mu) for mu in split_mu(mu_of(ONE, MILLIONTH), [1, 1]))),
        Charge(Budget(1, 1e-6), (PureEvent(Fraction(1, 2)), GaussianEvent(mu_of(ONE / 2, MILLIONTH)))),
        Charge(Budget(1, 1e-6), (ApproximateEvent(Fraction(1), Fraction(1, 10**6)),)),
        # Together these cost 4.7 at this delta, although their plain sum is 10.
        Charge(Budget(5, 1e-6), tuple([LaplaceEvent(Fraction(1, 10))] * 100)),
    ],
)
def test_charges_that_are_covered(charge):
    check_charge(charge)
    assert SumRule(Budget(5, 1e-6)).cost(charge).epsilon == charge.face.epsilon


@pytest.mark.parametrize(
    "charge",
    [
        Charge(Budget(1), ()),
        Charge(Budget(1), (PureEvent(Fraction(11, 10)),)),
        Charge(Budget(1), (GaussianEvent(Fraction(1, 10)),)),
        Charge(Budget(1, 1e-6), (GaussianEvent(Fraction(1, 4)),)),
        Charge(Budget(1), (PureEvent(Fraction(2, 3)), PureEvent(Fraction(2, 3)))),
        # Gaussian noise that is worth the whole face value, beside a pure draw.
        Charge(Budget(1, 1e-6), (PureEvent(Fraction(1, 2)), GaussianEvent(mu_of(ONE, MILLIONTH)))),
        Charge(Budget(1, 1e-9), (ApproximateEvent(Fraction(1), Fraction(1, 10**6)),)),
    ],
)
def test_draws_above_the_face_value_are_refused(charge):
    with pytest.raises(BudgetError, match="CV-B004"):
        check_charge(charge)


def test_draws_that_would_give_budget_back_are_refused():
    with pytest.raises(BudgetError, match="CV-B006"):
        check_charge(Charge(Budget(1), (PureEvent(Fraction(-1)),)))
