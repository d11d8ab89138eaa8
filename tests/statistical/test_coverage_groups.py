"""Intervals of groups and policies cover the truth about as often as they say."""

from itertools import pairwise

import numpy as np
import pytest
from experiments.groups.__main__ import COST, CUT, CUTS, EDGES, ONE, RULE, Row
from experiments.groups.truths import between

import counterveil as cv


def covered(row: Row, seeds: range) -> tuple[np.ndarray, np.ndarray]:
    """Return for every draw which groups and which gains their intervals cover."""
    parts = [between(row.curve, row.density, a, b) for a, b in pairwise(EDGES)]
    effects = np.array([total / share for share, total in parts])
    (few, low), (many, high) = (between(row.curve, row.density, a, b) for a, b in ((0, CUT), (CUT, 1)))
    gains = np.array([high - COST * many, COST * few - low, high + low - COST])
    found: tuple[list, list] = ([], [])
    for seed in seeds:
        frame, study = row.draw(seed)
        asked = {"epsilon": row.epsilon, "delta": row.delta, "noise": cv.SeededNoise(seed)}
        groups = cv.groups(frame, study, by={"x1": CUTS}, protects="record", **asked)
        value = cv.policy_value(frame, study, policy=RULE, cost=COST, **asked)
        for kept, shown, goal in zip(found, (groups.groups, value.gains), (effects, gains), strict=True):
            ends = np.array([one.interval() for one in shown])
            kept.append((ends[:, 0] <= goal) & (goal <= ends[:, 1]))
    return np.array(found[0]), np.array(found[1])


@pytest.mark.slow
@pytest.mark.parametrize("share", [None, 0.5])
def test_many_draws(share):
    row = Row("Dataset 1", ONE.make, ONE.curve, ONE.density, share=share)
    groups, gains = covered(row, range(150))
    assert 0.93 < groups.mean() < 0.99
    assert 0.92 < gains.mean() < 0.99
