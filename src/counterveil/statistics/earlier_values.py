"""How much of a number before treatment is taken off the same number after it, in a trial.

In a trial what was measured before does not depend on treatment, so that outcomes less any multiple of it have the
same effect and may vary less (Deng, Xu, Kohavi and Walker 2013; the analysis of covariance). The multiple is chosen
from released moments, and so that what it takes off the sampling error is more than what the longer range adds to the
noise. Proof: `earlier_values.proof.md`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Carrier, Sums, Table
from counterveil.numerics.linear_form import exact_dot
from counterveil.session import Gate
from counterveil.statistics.outcome_list import SLOPE_PARTS, Outcomes

PAGE = "statistics/earlier_values.proof.md"
NAME = "slopes"
# The part of the budget for the moments that slopes are chosen from; `python -m experiments.measures --only earlier`.
PART = Fraction(1, 10)
_HALF = OUTCOME_STEPS // 2


# Proof: earlier_values.proof.md
def bounds(rows: int) -> list[Fraction]:
    """Return how far one row moves the means of x, y, x y and x^2, for numbers in [-1/2, 1/2]."""
    return [Fraction(1, rows), Fraction(1, rows), Fraction(1, 2 * rows), Fraction(1, 4 * rows)]


def moment_sums(before: NDArray[np.int64], after: NDArray[np.int64]) -> list[int]:
    """Return the sums of x, y, x y and x^2 for steps less half of their range; exact."""
    x, y = before - _HALF, after - _HALF
    return [int(x.sum()), int(y.sum()), exact_dot(x, y), exact_dot(x, x)]


def exact_moments(sums: Sequence[int], rows: int) -> list[Fraction]:
    """Return the means of x, y, x y and x^2 in [-1/2, 1/2] from those sums."""
    units = (OUTCOME_STEPS, OUTCOME_STEPS, OUTCOME_STEPS**2, OUTCOME_STEPS**2)
    return [Fraction(int(one), rows * unit) for one, unit in zip(sums, units, strict=True)]


def earlier_sums(block: Table, outcomes: Outcomes) -> Sums:
    """Return `moment_sums` of every outcome that was measured before, (outcomes, 4)."""
    plain = outcomes.numbers(block)
    found = [moment_sums(block.measures[column], plain[place]) for place, column in outcomes.measured_before]
    return (np.array(found, dtype=object),)


def with_slopes(
    gate: Gate, source: Carrier, outcomes: Outcomes, squares: float, noise: Sequence[float]
) -> Outcomes:
    """Return the outcomes with their slopes, from moments that are released here.

    `squares` is the sum of squared coefficients of the comparison, `noise` the variance of each outcome's noise in
    units of its squared range.
    """
    pairs = outcomes.measured_before
    (sums,) = source.run(partial(earlier_sums, outcomes=replace(outcomes, slopes=())))
    values = [moment for line in sums for moment in exact_moments(line, source.rows)]
    limits = bounds(source.rows) * len(pairs)
    released = gate.release_several(NAME, values, limits, [Fraction(1)] * len(values))
    slopes = [0] * len(outcomes.names)
    for order, (place, _) in enumerate(pairs):
        own = released[4 * order : 4 * order + 4]
        x, y, product, square = map(float, own)
        # A covariance that is lost in its noise is none.
        together = product - x * y - sqrt(own[2].noise.variance)
        spread = max(square - x * x + sqrt(own[3].noise.variance), together, 1e-12)

        def expected(slope: int, own: float = noise[place], c: float = together, v: float = spread) -> float:
            part = slope / SLOPE_PARTS
            return squares * (part * part * v - 2 * part * c) + own * (1 + part) ** 2

        slopes[place] = min(range(SLOPE_PARTS + 1), key=expected)
    return replace(outcomes, slopes=tuple(slopes))


def slopes_said(outcomes: Outcomes) -> dict[str, float | str]:
    """Return the slopes in words, nothing where nothing was measured before."""
    if not outcomes.slopes:
        return {}
    places = [place for place, _ in outcomes.measured_before]
    said = [f"{outcomes.names[place]} {outcomes.slopes[place] / SLOPE_PARTS:g}" for place in places]
    return {"slopes_on_earlier": ", ".join(said)}
