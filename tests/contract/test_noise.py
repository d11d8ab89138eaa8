"""What every release adds, with room for rounding, and the ledger's chain: every hash holds the one before it."""

import hashlib
from fractions import Fraction
from math import exp, isqrt, sqrt

import numpy as np
import pytest
from scipy.stats import kstest, norm
from tests.contract.trials import WIDTH, arms, ask, people, study

import counterveil as cv
from counterveil.accounting import open_ledger
from counterveil.accounting.accounts import GENESIS, seal
from counterveil.privacy import Budget
from counterveil.rows.moments.arm_statistics import arm_statistics
from counterveil.rows.moments.grams import free_gram
from counterveil.rows.moments.residual_products import residual_moments
from counterveil.session import Gate, Plan

TRIAL = people(500, 3, confounded=False)
# Lengths of rows are computed in floating point and may be off by this part (free_gram.proof.md).
SLACK = Fraction(1, 2**30)


def delta_of(mu, epsilon):
    """Return the delta that telling N(0, 1) from N(mu, 1) costs at this epsilon."""
    return norm.cdf(mu / 2 - epsilon / mu) - exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def test_gaussian_noise_of_single_numbers(passed):
    noise = {"epsilon": 1, "delta": 1e-6, "mechanism": "gaussian"}
    result = ask(TRIAL, study(randomised=True), "difference_in_means", "outcome", **noise)
    effect, variance, known = passed["effect"], passed["variance"], result.uncertainty
    assert effect.sensitivity == Fraction(WIDTH, 100)
    assert known.noise.variance == pytest.approx(effect.normal)
    assert known.variance_noise.variance == pytest.approx(variance.normal)
    # Squares of mu add up to that of the budget.
    mu = sqrt(effect.amount**2 + variance.amount**2)
    assert delta_of(mu, 1.0) == pytest.approx(1e-6, rel=1e-6)
    one, other = arms(TRIAL)
    assert abs(effect.value - (one.mean() - other.mean())) < 6 * sqrt(effect.normal)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "staircase"])
def test_draws_at_the_gate_have_the_scale_of_sensitivity_over_price(mechanism):
    budget = Budget(1, Fraction(1, 10**6) if mechanism == "gaussian" else 0)
    plan = Plan.split(budget, {"effect": Fraction(1)}, mechanism)
    amount = float(plan.amount("effect"))
    draws = np.array(
        [
            float(Gate(plan, cv.SeededNoise(k)).release("effect", Fraction(7), Fraction(3))) - 7
            for k in range(400)
        ]
    )
    if mechanism == "gaussian":
        assert kstest(draws, norm(scale=3 / amount).cdf).pvalue > 1e-3
    else:
        # Staircase noise is at most as wide as Laplace noise, and at this price hardly narrower.
        mean_size = {"laplace": 3 / amount, "staircase": 3 * exp(0.5) / (exp(1) - 1)}[mechanism]
        assert np.abs(draws).mean() == pytest.approx(mean_size, rel=0.2)


def root_up(value):
    """Return the root of a rational, rounded up to 64 binary places."""
    scaled = value * 4**64
    whole = -(-scaled.numerator // scaled.denominator)
    root = isqrt(whole)
    return Fraction(root + (root * root < whole), 2**64)


def test_claims_leave_room_for_rounding_of_lengths():
    reach, rows = Fraction(37, 5), 900
    assert free_gram(rows, reach) == root_up(Fraction(2)) * reach * (1 + SLACK) / rows
    assert residual_moments(rows) == 2 * (1 + SLACK) / rows
    assert arm_statistics(rows) == 2 * (1 + SLACK) ** 2 / rows


def hashed(previous, body):
    return hashlib.sha256(f"{previous}\n{body}".encode()).hexdigest()


def test_a_hash_holds_the_entry_and_the_hash_before_it():
    first = seal(1, GENESIS, "register", "trial", "", {"note": "x"})
    second = seal(2, first.hash, "reserve", "trial", "a", {"epsilon": "1"})
    assert first.hash == hashed(GENESIS, first.body)
    assert second.hash == hashed(first.hash, second.body)
    # The same entry after another one has another hash.
    assert seal(2, hashed("other", "chain"), "reserve", "trial", "a", {"epsilon": "1"}).hash != second.hash


def test_a_head_that_is_not_in_the_ledger_is_noticed():
    with open_ledger(":memory:", create=True) as ledger:
        ledger.register("trial", Budget(5))
        data = people(200, 1, confounded=False)
        with cv.Session(data, study(randomised=True), ledger=ledger, noise=cv.SeededNoise(1)) as session:
            session.ate(method="difference_in_means", protects="outcome", epsilon=1)
        noted = ledger.head_hash()
        assert ledger.verify(noted).ok
        assert ledger.verify(hashed("no", "entry")).ok is False
