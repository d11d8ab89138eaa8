"""The means behind an effect: one outcome moves one arm, within its bound; both parts make the whole."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from counterveil.data import Study, Table
from counterveil.numerics.products import paired_variance
from counterveil.statistics.linear.arm_means import split_by_arm
from counterveil.statistics.linear.effect import LinearEffect
from counterveil.statistics.linear.kernels.residual_variance import Spectrum, residual_variance

STUDY = Study("t", "y", (0, 2))
ARM = np.array([1, 1, 1, 0, 0, 0, 0])
COEFFICIENTS = np.array([0.75, 0.5, -0.25, -0.375, -0.25, -0.5, 0.125])
PAIRS = (np.array([0, 1, 3, 4, 5]), np.array([1, 2, 4, 5, 6]))


def table(outcomes):
    return Table.attach({"t": ARM, "y": np.array(outcomes, dtype=float)}, STUDY)


def effect(form):
    if form == "pairs":
        return LinearEffect("", COEFFICIENTS, PAIRS, (), bias=0.5)
    features = np.array([[-0.5], [0.25], [0.5], [-0.75], [0.0], [0.5], [0.25]])
    shape = np.ones(1)
    spectra = tuple(Spectrum.of(features, COEFFICIENTS, inside, shape) for inside in (ARM == 1, ARM == 0))
    strength = 3.0 if form == "lines" else 0.0
    variance = residual_variance(features, spectra, strength)
    return LinearEffect("", COEFFICIENTS, None, (), variance=variance)


@pytest.mark.parametrize("form", ["pairs", "means", "lines"])
def test_one_outcome_moves_one_arm_within_its_bound(form):
    made = effect(form)
    found = {y: split_by_arm(table(y), made).values() for y in product((0, 2), repeat=7)}
    bounds = split_by_arm(table((0,) * 7), made).bounds
    largest = [[Fraction(0)] * 2, [Fraction(0)] * 2]
    for y, before in found.items():
        for row in range(7):
            after = found[(*y[:row], 2 - y[row], *y[row + 1 :])]
            own = 0 if ARM[row] else 1
            assert after[1 - own] == before[1 - own]
            for what in range(2):
                largest[own][what] = max(largest[own][what], abs(after[own][what] - before[own][what]))
    for arm in range(2):
        assert largest[arm][0] == bounds[arm].estimate
        assert largest[arm][1] <= bounds[arm].variance
        assert largest[arm][1] > bounds[arm].variance / 5


@pytest.mark.parametrize("form", ["pairs", "means", "lines"])
def test_both_parts_add_up_to_the_effect_and_its_variance(form):
    made, rows = effect(form), table([0.5, 2, 0, 1, 1.5, 0, 2])
    (one, first), (other, second) = split_by_arm(rows, made).values()
    whole = COEFFICIENTS @ np.array([0.5, 2, 0, 1, 1.5, 0, 2])
    assert float(one - other) == pytest.approx(whole, abs=1e-6)
    variance = made.variance_form().value(rows.outcome, 24) * 4
    assert float(first + second) == pytest.approx(float(variance), rel=1e-5)
    if form == "pairs":
        plain = paired_variance(COEFFICIENTS, *PAIRS).value(rows.outcome, 24) * 4
        assert float(first + second) == pytest.approx(1.25 * float(plain), rel=1e-6)
