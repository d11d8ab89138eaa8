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
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import OUTCOME_STEPS, Table
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


def exact_moments(before: NDArray[np.int64], after: NDArray[np.int64]) -> list[Fraction]:
    """Return the means of x, y, x y and x^2 for steps moved to [-1/2, 1/2]; exact."""
    x, y, rows = before - _HALF, after - _HALF, len(before)
    sums = (int(x.sum()), int(y.sum()))
    squares = (exact_dot(x, y), exact_dot(x, x))
    return [Fraction(one, rows * OUTCOME_STEPS) for one in sums] + [
        Fraction(one, rows * OUTCOME_STEPS**2) for one in squares
    ]


def with_slopes(
    gate: Gate, table: Table, outcomes: Outcomes, squares: float, noise: Sequence[float]
) -> Outcomes:
    """Return the outcomes with their slopes, from moments that are released here.

    `squares` is the sum of squared coefficients of the comparison, `noise` the variance of each outcome's noise in
    units of its squared range.
    """
    pairs = outcomes.measured_before
    plain = replace(outcomes, slopes=()).numbers(table)
    values = [
        moment for place, column in pairs for moment in exact_moments(table.measures[column], plain[place])
    ]
    limits = bounds(table.rows) * len(pairs)
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
