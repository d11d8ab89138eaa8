"""How much to add to a noisy variance so that the interval built from it keeps its level.

An interval needs the sampling variance V, but only V + xi is known, xi being privacy noise. Adding
a high quantile of xi and paying for it by Bonferroni is valid and wasteful: an interval a little too
narrow for its V still covers almost as often as it should. Here the smallest constant kappa is found
such that, averaged over xi, intervals built from min(V + xi + kappa, HEADROOM * cap) cover at the
wanted level whatever V in [0, cap] is. (With no headroom above the cap, V = cap could never be covered
often enough.) Only public numbers enter: the two laws of noise, the cap and the level.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import ndtr

from counterveil.inference.convolution import NoiseLaw, spread_of

Floats = NDArray[np.float64]

# An inflated variance may exceed the largest possible one by this factor.
HEADROOM = 1.1
# The grids below reproduce exact coverages to about 4e-4; the search aims this much higher.
_MARGIN = 5e-4
_Z, _W = leggauss(64)
_Z, _W = 7.0 * _Z, 7.0 * _W * np.exp(-((7.0 * _Z) ** 2) / 2) / np.sqrt(2 * np.pi)
_LEVELS = (np.arange(128) + 0.5) / 128
# Where the sampling error is this much wider than the noise, it is the smooth part of the convolution.
_WIDE = 4.0


def tails(sd: Floats, h: Floats, law: NoiseLaw) -> Floats:
    """Return P(|N + X| > h[i, j]) for N with standard deviation sd[i]; shape of `h`."""
    width = spread_of(law)
    result = np.empty_like(h)
    wide = sd > _WIDE * width
    narrow = ~wide
    if narrow.any():
        points = -(h[narrow][:, :, None] - sd[narrow][:, None, None] * _Z)
        result[narrow] = law.cdf(points.ravel()).reshape(points.shape) @ _W
    if wide.any():
        noise = law.quantile(_LEVELS)
        result[wide] = ndtr((noise - h[wide][:, :, None]) / sd[wide][:, None, None]).mean(axis=2)
    return 2 * result


def half_widths(sd: Floats, law: NoiseLaw, alpha: float) -> Floats:
    """Return for every sd the h with P(|N + X| > h) = alpha."""
    low = np.zeros_like(sd)
    high = np.full_like(sd, float(-law.quantile(np.array([alpha / 8]))[0])) + 4.0 * sd
    at_low, at_high = np.full_like(sd, -np.log(alpha)), _excess(sd, high, law, alpha)
    while np.any(short := at_high > 0):
        high = np.where(short, 2 * high, high)
        at_high = _excess(sd, high, law, alpha)
    side = np.zeros_like(sd)
    for _ in range(9):  # false position with the Illinois rule, all at once
        middle = low + (high - low) * at_low / (at_low - at_high)
        value = _excess(sd, middle, law, alpha)
        above = value > 0
        at_high = np.where(above, np.where(side == 1, at_high / 2, at_high), value)
        at_low = np.where(above, value, np.where(side == -1, at_low / 2, at_low))
        low, high = np.where(above, middle, low), np.where(above, high, middle)
        side = np.where(above, 1.0, -1.0)
    return middle


def _excess(sd: Floats, h: Floats, law: NoiseLaw, alpha: float) -> Floats:
    """Return log(P(|N + X| > h) / alpha) for every pair of sd and h."""
    return np.asarray(np.log(np.maximum(tails(sd, h[:, None], law)[:, 0], 1e-300) / alpha))


def inflation(law: NoiseLaw, variance_law: NoiseLaw, cap: float, alpha: float) -> float:
    """Return the smallest kappa that keeps the level 1 - alpha for every variance in [0, cap]."""
    return _inflation(cast(Hashable, law), cast(Hashable, variance_law), cap, alpha)


@lru_cache(maxsize=256)
def _inflation(law: NoiseLaw, variance_law: NoiseLaw, cap: float, alpha: float) -> float:
    unit = spread_of(variance_law)
    top = min(cap, 200.0 * unit)
    variances = np.concatenate([[0.0], np.geomspace(min(unit / 50, top / 2), top, 23)])
    xi = variance_law.quantile(_LEVELS)
    known_grid = np.concatenate([[0.0], np.geomspace(min(unit, top) / 100, HEADROOM * top + 12 * unit, 63)])
    h_grid = half_widths(np.sqrt(known_grid), law, alpha)
    # misses[i, j]: how often an interval built for variance known_grid[j] misses when it is variances[i].
    misses = tails(np.sqrt(variances), np.tile(h_grid, (len(variances), 1)), law)
    # Logarithms are nearly straight between the grid's points, so interpolating them loses little.
    logs = np.log(np.maximum(misses, 1e-300))

    sd_grid = np.sqrt(known_grid)
    rows = np.arange(len(variances))[:, None]

    def worst(kappa: float) -> float:
        known = np.sqrt(np.clip(variances[:, None] + xi + kappa, 0.0, HEADROOM * cap))
        # Linear interpolation of every row's logarithms at that row's points, all at once.
        left = np.clip(np.searchsorted(sd_grid, known) - 1, 0, len(sd_grid) - 2)
        part = np.minimum((known - sd_grid[left]) / (sd_grid[left + 1] - sd_grid[left]), 1.0)
        missed = np.exp(logs[rows, left] * (1 - part) + logs[rows, left + 1] * part)
        return float(missed.mean(axis=1).max())

    low, high = 0.0, unit
    if worst(low) <= alpha - _MARGIN:
        return low
    # From here on every variance is taken at its largest: more changes nothing.
    most = HEADROOM * cap - float(xi[0])
    while high < most and worst(high) > alpha - _MARGIN:
        low, high = high, 2 * high
    for _ in range(12):
        middle = (low + high) / 2
        if worst(middle) > alpha - _MARGIN:
            low = middle
        else:
            high = middle
    return high
