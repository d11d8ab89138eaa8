"""Brute force through the estimators' own release code: every release of a chain, its earlier outputs fixed."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.unit.statistics.moments.fixed_outputs import FixedGate, largest_changes

from counterveil.numerics.columns import arm_totals
from counterveil.privacy import Budget
from counterveil.statistics.moments import trial as contrast

ROWS, BUDGET = 3, Budget(2)
RECORDS = tuple(product((False, True), (0, 1, 2)))
WIDTH = Fraction(2)


def arms_of(data):
    treated, outcome = (np.array(column) for column in zip(*data, strict=True))
    return arm_totals(treated, outcome.astype(np.int64))


# Noise takes released shares out of their range.
SHARES = [Fraction(1, 2), Fraction(1, 3), Fraction(-1), Fraction(2)]


@pytest.mark.parametrize("share", SHARES)
def test_the_contrast_with_both_arms_centres(share):
    plan = contrast.plan_of("arms", ROWS, BUDGET, "staircase")

    def run(data):
        # Both arms' means are released as the middle of the range, so that the centre is one of the outcomes.
        gate = FixedGate(plan, {"share": share})
        contrast.release(gate, plan, arms_of(data), Fraction(1), WIDTH, None, "arms")
        return gate

    found = largest_changes(run, RECORDS, ROWS)
    assert found.keys() == {"share", "centres", "contrast", "moment"}
    assert all(change == sensitivity for change, sensitivity in found.values())


@pytest.mark.parametrize("share", SHARES)
def test_the_contrast_with_one_centre(share):
    plan = contrast.plan_of("pooled", ROWS, BUDGET, "staircase")

    def run(data):
        gate = FixedGate(plan, {"share": share, "centre": 1})
        contrast.release(gate, plan, arms_of(data), Fraction(1), WIDTH, None, "pooled")
        return gate

    found = largest_changes(run, RECORDS, ROWS)
    assert found.keys() == {"share", "centre", "contrast", "moment"}
    assert all(change == sensitivity for change, sensitivity in found.values())


@pytest.mark.parametrize("far", [-100, 100])
def test_released_centres_out_of_their_range_are_brought_back(far):
    plan = contrast.plan_of("arms", ROWS, BUDGET, "staircase")
    gate = FixedGate(plan, {"share": Fraction(1, 2), "centres": [far, far]})
    setting = contrast.release(gate, plan, arms_of(RECORDS[:ROWS]), Fraction(1), WIDTH, None, "arms").setting
    assert 0 <= setting.centre <= WIDTH
    plan = contrast.plan_of("pooled", ROWS, BUDGET, "staircase")
    gate = FixedGate(plan, {"share": Fraction(1, 2), "centre": far})
    setting = contrast.release(
        gate, plan, arms_of(RECORDS[:ROWS]), Fraction(1), WIDTH, None, "pooled"
    ).setting
    assert 0 <= setting.centre <= WIDTH
