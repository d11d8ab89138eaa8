"""Intervals for the effect of one endogenous column that hold however weak the instruments are [1]_.

    F(e) = b(e)' C(e)^-1 b(e) / k,    b(e) the coefficients of the k instruments in y - e d,

with y the response, d the endogenous column and C(e) the covariance of b(e), sampling and noise included. A
value e is kept where F(e) is no larger than its quantile: where the instruments do not explain what e leaves
of the response.

Why: if e is the effect and instruments are valid, b(e) is zero but for its error, whether or not instruments
move d; no division by a weak first stage takes place. Kept values may be an interval, all but an interval,
everything, or nothing; they are in units of the response over those of the column. In: released moments
(`moments.py`); it is post-processing.

References
----------
.. [1] Anderson, T. W. and Rubin, H. (1949). Estimation of the parameters of a single equation in a complete system
   of stochastic equations. Annals of Mathematical Statistics 20, 46-63.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from math import inf, pi, sqrt, tan

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, fdtri

from counterveil.inference.linear_fit import LinearFit, least_squares
from counterveil.inference.moments import SINGULAR, NoisyMoments
from counterveil.numerics.arrays import Ends, Floats

# Values that are tried first, denser around the estimate.
_TRIED = 161
# Ends are found to this angle, the arctangent of a value.
_ANGLE = 1e-12


def joint_statistic(fit: LinearFit, count: int) -> float:
    """Return the F statistic of the first `count` coefficients, noise included; 0 where they are not identified."""
    if not fit.identified:
        return 0.0
    coefficients = fit.coefficients[:count]
    covariance = fit.covariance[:count, :count]
    statistic = 0.0
    with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError):
        statistic = float(coefficients @ np.linalg.pinv(covariance, rcond=SINGULAR) @ coefficients) / count
    return statistic if 0 < statistic < inf else 0.0


def joint_p_value(moments: NoisyMoments, instruments: Floats, exogenous: Floats, column: Floats) -> float:
    """Return the p-value of instruments that explain nothing of a column: Anderson and Rubin's, of no effect."""
    fit = least_squares(moments, np.vstack((instruments, exogenous)), column)
    return float(fdtrc(len(instruments), fit.freedom, joint_statistic(fit, len(instruments))))


def anderson_rubin(
    moments: NoisyMoments,
    endogenous: Floats,
    instruments: Floats,
    exogenous: Floats,
    response: Floats,
    level: float,
    estimate: Ends,
) -> tuple[Ends, ...]:
    """Return the intervals of values that are kept; `estimate` is an estimate and its standard error.

    Where there is no standard error, values are tried on the scale of the response over the endogenous column.
    Columns are combinations of working columns: (m,), instruments (k, m), exogenous ones (p, m) with the
    constant.
    """
    count = len(instruments)
    both = np.vstack((instruments, exogenous))

    def excess(column: Floats) -> float:
        fit = least_squares(moments, both, column)
        return joint_statistic(fit, count) - float(fdtri(count, fit.freedom, level))

    def at(angle: float) -> float:
        return excess(response - (middle + width * tan(angle)) * endogenous)

    middle = estimate[0]
    width = estimate[1] if 0 < estimate[1] < inf else _typical_ratio(moments, response, endogenous)
    angles = np.linspace(-pi / 2, pi / 2, _TRIED + 2)[1:-1]
    signs = np.array([at(angle) for angle in angles]) <= 0
    turns = _turns(at, angles, signs)
    ends = [-inf, *(middle + width * tan(angle) for angle in turns), inf]
    # Beyond the values that were tried, what counts is whether the instruments explain the endogenous column.
    far = excess(endogenous) <= 0
    keeps = [bool(signs[0])]
    for _ in turns:
        keeps.append(not keeps[-1])
    intervals = [(low, high) for low, high, keep in zip(ends[:-1], ends[1:], keeps, strict=True) if keep]
    return (
        tuple(intervals)
        if far or not intervals
        else tuple(_within_tried(intervals, middle, width, float(angles[-1])))
    )


def _typical_ratio(moments: NoisyMoments, first: Floats, second: Floats) -> float:
    """Return about how many units of one column a unit of the other is, by their released mean squares."""
    with np.errstate(all="ignore"):
        first_square, second_square = (float(column @ moments.matrix @ column) for column in (first, second))
    return (
        sqrt(first_square / second_square)
        if first_square > 0 and second_square > 0 and 0 < first_square / second_square < inf
        else 1.0
    )


def _turns(at: Callable[[float], float], angles: Floats, signs: NDArray[np.bool_]) -> list[float]:
    """Return where values begin or cease to be kept."""
    from scipy.optimize import brentq  # loaded by those who need it: it takes a fifth of a second

    return [
        float(brentq(at, angles[index], angles[index + 1], xtol=_ANGLE, disp=False))
        for index in np.flatnonzero(signs[1:] != signs[:-1])
    ]


def _within_tried(intervals: list[Ends], middle: float, width: float, last: float) -> list[Ends]:
    """Return intervals that end at the last values tried: the instruments rule out values far enough away."""
    edge = width * tan(last)
    return [(max(low, middle - edge), min(high, middle + edge)) for low, high in intervals]
