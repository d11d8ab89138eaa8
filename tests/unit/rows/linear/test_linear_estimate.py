"""Brute force for weighted sums of outcomes with public weights, and those of matchings."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from tests.property.numerics.definitions import coefficients_by_definition, match_sets_by_definition
from tests.thinned import examples, thinned

from counterveil.numerics.matching import matching_coefficients
from counterveil.rows.linear.paired_variance import paired_variance
from counterveil.rows.linear.sensitivity import LinearEstimate
from counterveil.rows.linear.variance_forms import WithBias
from counterveil.rows.linear.weighted_sum import linear_form

BITS = 24
ONE = 2**BITS
VALUES = (0, ONE // 2, ONE)


def moved(y, place, value):
    other = y.copy()
    other[place] = value
    return other


@pytest.mark.parametrize("seed", thinned(range(6), 0, 1, 2))
def test_no_change_exceeds_the_claim_and_each_is_attained(seed):
    rng = np.random.default_rng(seed)
    n = 5
    c = rng.normal(size=n)
    pairs = [(0, 1), (2, 3), (3, 4), (1, 4)][: 2 + seed % 3]
    first, second = (np.array(part) for part in zip(*pairs, strict=True))
    form, paired = linear_form(c), paired_variance(c, first, second)
    claim = LinearEstimate(Fraction(1), form.largest, form.squares, paired.largest_row(n))
    worst_effect = worst_variance = Fraction(0)
    for values in product(VALUES, repeat=n):
        y = np.array(values, np.int64)
        effect, variance = form.total(y) / ONE, paired.value(y, BITS)
        for place, value in product(range(n), VALUES):
            other = moved(y, place, value)
            worst_effect = max(worst_effect, abs(form.total(other) / ONE - effect))
            worst_variance = max(worst_variance, abs(paired.value(other, BITS) - variance))
    assert worst_effect == claim.estimate
    assert worst_variance == claim.variance


@pytest.mark.parametrize("factor", [Fraction(5, 4), Fraction(2)])
def test_an_allowance_for_bias_raises_variance_claim_and_cap_alike(factor):
    c, pairs = np.array([0.5, -0.25, 1.0, -0.75]), ([0, 1], [2, 3])
    plain = paired_variance(c, *map(np.array, pairs))
    raised, form = WithBias(plain, factor), linear_form(c)
    claim, without = (
        LinearEstimate(Fraction(3), form.largest, form.squares, one.largest_row(4), by)
        for one, by in ((raised, factor), (plain, Fraction(1)))
    )
    assert claim.variance_cap == factor * without.variance_cap
    worst = Fraction(0)
    for values in product(VALUES, repeat=4):
        y = np.array(values, np.int64)
        assert raised.value(y, BITS) == factor * plain.value(y, BITS)
        for place, value in product(range(4), VALUES):
            worst = max(worst, abs(raised.value(moved(y, place, value), BITS) - raised.value(y, BITS)))
    assert 9 * worst == claim.variance == factor * without.variance


def test_the_cap_is_the_variance_of_fair_coins():
    c = np.array([0.5, -0.25, 1.0])
    form = linear_form(c)
    claim = LinearEstimate(Fraction(3), form.largest, form.squares, Fraction(0))
    totals = [float(form.total(np.array(coins)) * 3) for coins in product((0, 1), repeat=3)]
    assert float(claim.variance_cap) == pytest.approx(np.var(totals))


def tau(sets, treated, y):
    """The average of s_j (y_j - mean of y over the match set), as it is defined."""
    kept = {unit: donors for unit, donors in sets.items() if donors}
    if not kept:
        return Fraction(0)
    gaps = [
        (1 if treated[unit] else -1) * (y[unit] - Fraction(sum(y[d] for d in donors), len(donors)))
        for unit, donors in kept.items()
    ]
    return sum(gaps, Fraction(0)) / len(kept)


def check_matching(treated, score, neighbours, capacities, order, estimand="ATE"):
    """Assert that moving one outcome moves tau by at most the sensitivity used, and that it is attained."""
    n = len(score)
    arguments = (np.array(treated), np.array(score, float), neighbours, *capacities)
    form = linear_form(matching_coefficients(*arguments, np.array(order), estimand).coefficients)
    sets = match_sets_by_definition(*arguments, order, estimand)
    # Outcomes in [0, 1]; tau is linear, so outcomes at an end of the range are the worst.
    changes = [abs(tau(sets, treated, [int(i == place) for i in range(n)])) for place in range(n)]
    largest = max(changes)
    # Coefficients are truncated to nine digits; the claim is made of, and for, the truncated ones.
    assert float(largest - form.largest) == pytest.approx(0, abs=2**-27)
    exact = np.array([float(value) for value in coefficients_by_definition(treated, sets)])
    np.testing.assert_allclose(form.units * 2.0**-form.bits, exact, atol=2**-27)
    units = np.abs(form.units)
    worst = max(abs(form.total(np.eye(n, dtype=np.int64)[i] * ONE)) for i in range(n))
    assert worst == form.largest * ONE == Fraction(int(units.max()) * ONE) / Fraction(2) ** form.bits


def data_sets(n):
    for rows in product(product((0, 1, 2), (False, True)), repeat=n):
        score, treated = zip(*rows, strict=True)
        if 0 < sum(treated) < n:
            yield treated, score


LIMITS = ((1, 1), (2, 2), (None, None), (1, 2))


@pytest.mark.parametrize("neighbours", [1, 2])
def test_all_matchings_of_up_to_four_units_in_every_order(neighbours):
    for n in (2, 3, 4):
        for k, (treated, score) in enumerate(data_sets(n)):
            if n == 4 and k % examples(19, 1):
                continue
            # All data sets meet all limits over the run; every order is taken for each pair of them.
            limits = LIMITS[k % len(LIMITS)]
            orders = permutations(range(n)) if n < 4 else [tuple(np.roll(range(n), k)), range(n)[::-1]]
            for order in orders:
                check_matching(treated, score, neighbours, limits, list(order))


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 5, 6])
def test_all_matchings_of_up_to_six_units(n):
    for treated, score in data_sets(n):
        if n == 6 and not treated[0]:
            continue  # mirror images of the others, but for ties and the uneven limit; n = 5 has all
        for limits, neighbours in product(LIMITS, (1, 2)):
            check_matching(treated, score, neighbours, limits, list(range(n)))


@pytest.mark.parametrize("estimand", ["ATT", "ATC"])
def test_other_estimands(estimand):
    for k, (treated, score) in enumerate(data_sets(5)):
        if k % 97 == 0:
            check_matching(treated, score, 2, (2, 1), list(range(5)), estimand)
