"""The p-value that belongs to intervals of every level: the least alpha whose interval leaves a value out.

    p = min { alpha : |estimate - value| > h(1 - alpha) },    h(level) the half-width of the interval.

A test that rejects what the interval leaves out has the interval's error rate, so that p is right wherever
intervals cover. Where half-widths depend on the level through tables and inflations, no formula gives p;
`p_value_from` searches the level whose half-width is the distance (units of the estimate), along normal
quantiles z, on which half-widths are nearly straight. `p_value` does the same for intervals that are no
half-widths, by halving the range of exponents. Out: a number between 1e-12 and 1. Only released numbers
enter; constants set precision and privacy does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import log, nextafter

from scipy.special import ndtr, ndtri

# Normal quantile of the least p-value that is told, about 1e-12.
_FARTHEST = 7.13
# Half-widths are matched to this part of the distance, p-values about to ten times it.
_NEAR = 1e-4
_TINY = 1e-300
# Halvings of the range of exponents of a p-value.
_STEPS = 40
# Decimal exponents between which p-values by halving lie: from 1e-12 to as good as 1.
_LEAST_EXPONENT = -12.0
_MOST_EXPONENT = -1e-9


def p_value_from(half_width: Callable[[float], float], distance: float, level: float, bias: float) -> float:
    """Return the least alpha at which `half_width(1 - alpha)` is less than the distance, from 1e-12 to 1.

    It is below 1 - level exactly where the interval of that level leaves out what lies this far off. Half-widths are
    `bias` at level 0.
    """
    distance = abs(distance)
    alpha = 1 - level
    beyond = distance - bias
    if beyond <= 0:
        return 1.0

    def relative(z: float) -> float:
        return half_width(1 - 2 * float(ndtr(-z))) / distance

    # Along normal quantiles half-widths are nearly straight lines, and their logarithms beyond: few are computed.
    here = -float(ndtri(alpha / 2))
    ratio = half_width(level) / distance
    if ratio >= 1:
        start = (0.0, -beyond / distance)
        crossing = _crossing(lambda z: relative(z) - 1, start, (here, ratio - 1))
        return max(2 * float(ndtr(-crossing)), alpha)
    farthest = max(_FARTHEST, here)
    last = (here, ratio)
    z = min(here / max(ratio, _TINY), farthest)
    while (reached := relative(z)) < 1:
        if z >= farthest:
            return 2 * float(ndtr(-farthest))
        last = (z, reached)
        z = min(1.5 * z, farthest)
    low, high = ((z, log(max(value, _TINY))) for z, value in (last, (z, reached)))
    crossing = _crossing(lambda z: log(relative(z)), low, high)
    return min(2 * float(ndtr(-crossing)), nextafter(alpha, 0.0))


def _crossing(excess: Callable[[float], float], low: tuple[float, float], high: tuple[float, float]) -> float:
    """Return where a rising function is 0, by false position with the Illinois rule; ends come with their values.

    The function is below 0 at the lower end, and not at the upper one.
    """
    a, at_a = low
    b, at_b = high
    side = 0
    # What noise adds to a variance is found in steps, so that half-widths may jump over the value looked for.
    while b - a > _NEAR * b:
        middle = b - at_b * (b - a) / (at_b - at_a)
        value = excess(middle)
        if abs(value) <= _NEAR:
            return middle
        if value < 0:
            a = middle
            at_a = value
            at_b = at_b / 2 if side == -1 else at_b
            side = -1
        else:
            b = middle
            at_b = value
            at_a = at_a / 2 if side == 1 else at_a
            side = 1
    return b


# A table shows it for an effect alone and among all, from the same intervals.
@lru_cache(maxsize=1024)
def p_value(interval: Callable[[float], tuple[float, float]], value: float = 0.0) -> float:
    """Return the least alpha at which `interval(1 - alpha)` leaves out `value`, from 1e-12 to 1."""

    def out(exponent: float) -> bool:
        low, high = interval(1 - 10.0**exponent)
        return not low <= value <= high

    least = _LEAST_EXPONENT
    most = _MOST_EXPONENT
    if out(least):
        return float(10.0**least)
    if not out(most):
        return 1.0
    for _ in range(_STEPS):
        middle = (least + most) / 2
        least, most = (least, middle) if out(middle) else (middle, most)
    return float(10.0**most)
