"""Brute force: one outcome moves the mean and the variance of its own arm only, and not beyond the claim."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.thinned import examples, thinned

from counterveil.data import OUTCOME_STEPS, Study, Table
from counterveil.statistics.linear.arm_means import ArmsDesign, WeightedArm, exact_values, plain_arms

LEVELS = (0, OUTCOME_STEPS // 2, OUTCOME_STEPS)
WIDTH = 4
STUDY = Study("t", "y", (1, 1 + WIDTH), arms=("a", "b", "c"), reference="a")
ASSIGNMENTS = [arm for arm in product(range(3), repeat=6) if all(arm.count(k) == 2 for k in range(3))]


def table(arm, steps):
    values = 1 + WIDTH * np.asarray(steps) / OUTCOME_STEPS
    return Table.attach({"t": [STUDY.arms[k] for k in arm], "y": values}, STUDY)


def plain(arm):
    return plain_arms(table(arm, [0] * len(arm)))


def weighted(arm, rng):
    first = table(arm, [0] * len(arm))
    made = []
    for code in range(3):
        rows = np.flatnonzero(first.arm == code)
        coefficients = rng.dirichlet(np.ones(len(rows)))
        order = rng.permutation(len(rows))
        made.append(WeightedArm.of(first, rows, coefficients, (order[:-1], order[1:])))
    return made


def values_of(arm, statistics, steps):
    return exact_values(table(arm, steps), ArmsDesign("", tuple(statistics), ()))


def check(arm, statistics, levels=LEVELS):
    """Return the largest observed over claimed change of each arm's mean and variance."""
    values = {steps: values_of(arm, statistics, steps) for steps in product(levels, repeat=len(arm))}
    worst = np.zeros((len(statistics), 2))
    for steps, before in values.items():
        for row, level in product(range(len(arm)), levels):
            if level <= steps[row]:
                continue  # seen from the other side
            after = values[(*steps[:row], level, *steps[row + 1 :])]
            for code, one in enumerate(statistics):
                moved = [abs(x - y) for x, y in zip(before[code], after[code], strict=True)]
                if code != arm[row]:
                    assert moved == [0, 0]
                    continue
                bounds = (one.sensitivity.estimate, one.sensitivity.variance)
                assert all(change <= bound for change, bound in zip(moved, bounds, strict=True))
                for place, (change, bound) in enumerate(zip(moved, bounds, strict=True)):
                    worst[code, place] = max(worst[code, place], float(change / bound))
        for code, one in enumerate(statistics):
            assert before[code][1] <= one.sensitivity.variance_cap or isinstance(one, WeightedArm)
    return worst


@pytest.mark.parametrize("arm", thinned([ASSIGNMENTS[0], ASSIGNMENTS[37], ASSIGNMENTS[-1]], ASSIGNMENTS[37]))
def test_plain_means(arm):
    assert np.allclose(check(arm, plain(arm)), 1.0)


def test_plain_means_of_unequal_arms():
    arm = (0, 1, 1, 2, 0, 2, 2)
    assert np.allclose(check(arm, plain(arm), LEVELS[::2]), 1.0)


def test_every_assignment_of_six_rows_moves_one_arm_only():
    extremes = [0, OUTCOME_STEPS]
    for arm in ASSIGNMENTS[:: examples(4, 1)]:
        statistics = plain(arm)
        for row in range(6):
            low, high = ([level if i == row else 0 for i in range(6)] for level in extremes)
            before, after = (values_of(arm, statistics, steps) for steps in (low, high))
            moved = [code for code in range(3) if before[code] != after[code]]
            assert moved == [arm[row]]


@pytest.mark.parametrize("seed", range(2))
def test_weighted_means(seed):
    rng = np.random.default_rng(seed)
    arm = (0, 1, 1, 2, 0, 2, 2)
    assert np.allclose(check(arm, weighted(arm, rng), LEVELS[::2]), 1.0)


def test_the_cap_is_attained():
    arm = (0, 0, 0, 1, 1, 2, 2)
    statistics = plain(arm)
    at_ends = values_of(arm, statistics, [0, OUTCOME_STEPS, 0, 0, 0, 0, 0])
    assert at_ends[0][1] == statistics[0].sensitivity.variance_cap == Fraction(16, 9)
