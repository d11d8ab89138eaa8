"""How much of what was measured before is taken off an outcome, chosen from released moments.

The outcome y becomes y - s x, with x the same quantity measured before treatment. The slope s, between 0 and
1 in sixteenths, minimises what the squared length of the interval is expected to be,

    squares (s^2 v - 2 s c) + noise (1 + s)^2,

with v the released variance of the earlier number, c its covariance with the outcome less one standard
deviation of that covariance's noise, `squares` the sum of squared coefficients of the comparison, and `noise`
the variance of the outcome's noise: taking s x off makes its range 1 + s times as wide. Numbers are in units
of the outcome's range, variances in its squares.

In: private outcomes and earlier numbers, whose means and mean products are released here. Out: outcomes with
their slopes. The effect that is
estimated is the same whatever s is, as treatment does not change x. Proof of the
bounds: `rows/earlier_values.proof.md`; the choice of s is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import sqrt

from counterveil.rows.earlier_values import release_moments
from counterveil.rows.outcome_numbers import SLOPE_PARTS, Outcomes
from counterveil.session import Gate

PAGE = "rows/earlier_values.proof.md"
# The part of the budget for the moments that slopes are chosen from; `python -m experiments.measures --only earlier`.
PART = Fraction(1, 10)
# The least variance of earlier numbers, in units of their squared range: it keeps a slope defined where noise hides it.
_LEAST_VARIANCE = 1e-12


def with_slopes(gate: Gate, outcomes: Outcomes, squares: float, noise: Sequence[float]) -> Outcomes:
    """Return the outcomes with their slopes, from moments that are released here.

    `squares` is the sum of squared coefficients of the comparison, `noise` the variance of each outcome's
    noise in units of its squared range.
    """
    slopes = [0] * len(outcomes.names)
    moments = release_moments(gate, outcomes)
    for (index, _), released in zip(outcomes.measured_before, moments, strict=True):
        x, y, product, square = map(float, released)
        # A covariance that is lost in its noise is none.
        covariance = product - x * y - sqrt(released[2].noise.variance)
        variance = max(square - x * x + sqrt(released[3].noise.variance), covariance, _LEAST_VARIANCE)
        slopes[index] = _best_slope(squares, noise[index], covariance, variance)
    return replace(outcomes, slopes=tuple(slopes))


def _best_slope(squares: float, noise: float, covariance: float, variance: float) -> int:
    """Return the slope of least expected squared length, in sixteenths."""

    def expected(slope: int) -> float:
        fraction = slope / SLOPE_PARTS
        return (
            squares * (fraction * fraction * variance - 2 * fraction * covariance)
            + noise * (1 + fraction) ** 2
        )

    return min(range(SLOPE_PARTS + 1), key=expected)


def slope_details(outcomes: Outcomes) -> dict[str, float | str]:
    """Return the slopes as a detail of the answer, nothing where nothing was measured before."""
    if not outcomes.slopes:
        return {}
    listed = [
        f"{outcomes.names[index]} {outcomes.slopes[index] / SLOPE_PARTS:g}"
        for index, _ in outcomes.measured_before
    ]
    return {"slopes_on_earlier": ", ".join(listed)}
