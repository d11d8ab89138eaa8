"""Released moments of outcomes y and baseline measurements x, for adjusting y by a multiple of x.

Released for every outcome that was also measured before treatment are four means over all n rows,

    E x,    E y,    E x y,    E x^2,

with x and y scaled to [-1/2, 1/2] of their common declared range (24-bit whole steps, exact). From them a
slope is chosen later: how much of x is taken off y (`rows/outcome_numbers.py`), which lowers the variance of
y and leaves the effect of a randomised treatment as it is.

In: private rows, as sums of whole numbers. Out: the four means of each outcome, each with noise.

Why it is right: a row enters each mean with weight 1/n, and the intervals of x, y, x y and x^2 have lengths
1, 1, 1/2 and 1/4. So a changed row moves the means by 1/n, 1/n, 1/(2n) and 1/(4n) at most, all of them at
once, and they are released together under these bounds. What is made of them is post-processing.

Proof: `rows/earlier_values.proof.md`.
"""

# Proof: earlier_values.proof.md

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Sums, Table
from counterveil.rows.linear.weighted_sum import exact_dot
from counterveil.rows.outcome_numbers import Outcomes
from counterveil.session import Gate, Released

# What the moments are called in a plan.
NAME = "slopes"
_HALF = OUTCOME_STEPS // 2


def bounds(rows: int) -> list[Fraction]:
    """Return how far one row moves the means of x, y, x y and x^2, for numbers in [-1/2, 1/2]."""
    return [Fraction(1, rows), Fraction(1, rows), Fraction(1, 2 * rows), Fraction(1, 4 * rows)]


def moment_sums(before: NDArray[np.int64], after: NDArray[np.int64]) -> list[int]:
    """Return the sums of x, y, x y and x^2 for steps less half of their range; exact."""
    x = before - _HALF
    y = after - _HALF
    return [int(x.sum()), int(y.sum()), exact_dot(x, y), exact_dot(x, x)]


def exact_moments(sums: Sequence[int], rows: int) -> list[Fraction]:
    """Return the means of x, y, x y and x^2 in [-1/2, 1/2] from those sums."""
    units = (OUTCOME_STEPS, OUTCOME_STEPS, OUTCOME_STEPS**2, OUTCOME_STEPS**2)
    return [Fraction(int(total), rows * unit) for total, unit in zip(sums, units, strict=True)]


def earlier_sums(block: Table, outcomes: Outcomes) -> Sums:
    """Return `moment_sums` of every outcome that was measured before, (outcomes, 4)."""
    plain = outcomes.numbers(block)
    sums = [moment_sums(block.measures[column], plain[index]) for index, column in outcomes.measured_before]
    return (np.array(sums, dtype=object),)


def release_moments(gate: Gate, outcomes: Outcomes) -> list[list[Released]]:
    """Return for every outcome that was measured before the released means of x, y, x y and x^2."""
    source = gate.rows.batches
    (sums,) = source.run(partial(earlier_sums, outcomes=replace(outcomes, slopes=())))
    values = [moment for line in sums for moment in exact_moments(line, source.rows)]
    limits = bounds(source.rows) * len(outcomes.measured_before)
    released = gate.release_several(NAME, values, limits, [Fraction(1)] * len(values))
    return [released[first : first + 4] for first in range(0, len(released), 4)]
