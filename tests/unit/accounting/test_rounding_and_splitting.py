"""Roots and shares: exact where they can be, rounded against the spender where not."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterveil.accounting import split_epsilon, split_mu
from counterveil.accounting.composition import shorten_up, square_up
from counterveil.errors import BudgetError
from counterveil.numerics.arrays import sqrt_down, sqrt_up

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
