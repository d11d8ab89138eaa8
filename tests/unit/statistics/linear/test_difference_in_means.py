"""Brute force over all small trials with public arms."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from tests.thinned import thinned

from counterveil.numerics.columns import arm_totals
from counterveil.statistics.linear.sensitivity import MeanContrast

VALUES = (0, 1, 2)  # 0, 1/2 and 1 of the range


def assignments(n):
    for size in range(2, n - 1):
        for treated in combinations(range(n), size):
            yield np.isin(np.arange(n), treated)


def statistics(treated, outcome):
    arms = arm_totals(treated, np.asarray(outcome, dtype=np.int64))
    variance = arms.treated.variance() / arms.treated.count + arms.control.variance() / arms.control.count
    return arms.treated.mean() - arms.control.mean(), variance


@pytest.mark.parametrize("n", thinned([4, 5, 6], 4, 5))
def test_no_change_exceeds_the_claim_and_each_is_attained(n):
    for treated in assignments(n):
        if n == 6 and not treated[0]:
            continue  # the mirror image of an assignment already seen
        size = int(treated.sum())
        claim = MeanContrast(Fraction(2), size, n - size)
        known = {y: statistics(treated, y) for y in product(VALUES, repeat=n)}
        worst_effect = worst_variance = Fraction(0)
        for y, (effect, variance) in known.items():
            for place, value in product(range(n), VALUES):
                other = known[(*y[:place], value, *y[place + 1 :])]
                worst_effect = max(worst_effect, abs(effect - other[0]))
                worst_variance = max(worst_variance, abs(variance - other[1]))
        assert worst_effect == claim.estimate
        assert worst_variance == claim.variance
        assert max(variance for _, variance in known.values()) == claim.variance_cap
