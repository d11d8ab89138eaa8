"""Brute force over all small trials with public arms."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from tests.thinned import thinned

from counterveil.numerics.columns import arm_totals
from counterveil.statistics.linear.sensitivity import MeanContrast, SitesContrast

VALUES = (0, 1, 2)  # 0, 1/2 and 1 of the range


def assignments(n):
    for size in range(2, n - 1):
        for treated in combinations(range(n), size):
            yield np.isin(np.arange(n), treated)


def statistics(treated, outcome):
    arms = arm_totals(treated, np.asarray(outcome, dtype=np.int64))
    variance = arms.treated.variance() / arms.treated.count + arms.control.variance() / arms.control.count
    return arms.treated.mean() - arms.control.mean(), variance


def worst(treated):
    """Return the largest changes of the effect and of its variance, and the largest variance."""
    n = len(treated)
    known = {y: statistics(treated, y) for y in product(VALUES, repeat=n)}
    effects = variances = Fraction(0)
    for y, (effect, variance) in known.items():
        for place, value in product(range(n), VALUES):
            other = known[(*y[:place], value, *y[place + 1 :])]
            effects, variances = (
                max(effects, abs(effect - other[0])),
                max(variances, abs(variance - other[1])),
            )
    return effects, variances, max(variance for _, variance in known.values())


@pytest.mark.parametrize("n", thinned([4, 5, 6], 4, 5))
def test_no_change_exceeds_the_claim_and_each_is_attained(n):
    for treated in assignments(n):
        if n == 6 and not treated[0]:
            continue  # the mirror image of an assignment already seen
        size = int(treated.sum())
        claim = MeanContrast(Fraction(2), size, n - size)
        assert worst(treated) == (claim.estimate, claim.variance, claim.variance_cap)


def test_of_sites_that_weigh_as_much_as_they_have_rows_the_largest_change_is_claimed():
    sites = ((2, 2), (2, 3))
    claim = SitesContrast(Fraction(2), sites)
    effects, variances, caps = zip(*(worst(np.arange(sum(one)) < one[0]) for one in sites), strict=True)
    first, second = Fraction(4, 9), Fraction(5, 9)
    assert claim.estimate == max(first * effects[0], second * effects[1])
    assert claim.variance == max(first**2 * variances[0], second**2 * variances[1])
    assert claim.variance_cap == first**2 * caps[0] + second**2 * caps[1]
    assert claim.squares == first**2 * Fraction(2, 2) + second**2 * Fraction(5, 6)
    assert claim.sizes == (min(2 / first, 2 / second), min(2 / first, 3 / second))
