"""How often intervals built for one standard deviation miss where another is true, tabulated for many noises.

Calibration (`variance_inflation`, `clusters`) needs millions of coverages. `two_sided_tails` and `half_widths` give
P(|N + X| > h) and its inverse for arrays, to about four digits (`convolution` has the eight of an answer), and
`MissRates` interpolates them on a grid of standard deviations.

N is normal sampling error of standard deviation s, X symmetric privacy noise of a known law, and h, s and X are in one
unit, whichever it is. The coverage is an integral over the smoother of the two,

    P(|N + X| > h) = 2 E F(N - h) = 2 E Phi((X - h) / s),    F the distribution function of X,

found by quadrature. Nothing private is read: coverages of public laws set how much intervals are widened, and
privacy does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import pi, sqrt

import numpy as np
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from counterveil.inference.noise_distribution import NoiseBatch
from counterveil.numerics.arrays import Floats

# Standard deviations that intervals are calibrated on, in interquartile ranges of the noise: so many an octave.
_OCTAVE = 16
# From what is as good as none to where the noise is, as binary logarithms.
_LOWEST = -8
HIGHEST_OCTAVE = 30
# Numbers whose binary logarithms agree to this part are one.
_AGREE = 2.0**-26
_GRID = 2.0 ** np.arange(_LOWEST, HIGHEST_OCTAVE, 1 / _OCTAVE)
# Numbers below this are none.
_LEAST = 2.0**-60
# Secant steps for a half-width, at most.
_MOST_STEPS = 60
# They end when its tail is so near to alpha, as a part of alpha.
_NEAR = 1e-4
# The second point of the secant, in parts of the first, which is a little too wide.
_SECOND_POINT = 0.97
# Where the sampling error is this much wider than the noise, it is the smooth part of the convolution.
_WIDE = 1.5
# Numbers at once: memory for more is asked of the system afresh each time, which takes longer than the work.
_AT_ONCE = 24_000

# A constant and the rows whose misses are asked for; the answer is how often each is missed.
Asking = tuple[float, NDArray[np.intp]]


def _normal_rule(nodes: int, end: float) -> tuple[Floats, Floats]:
    """Return nodes and weights that integrate against the standard normal density."""
    z, w = leggauss(nodes)
    return end * z, end * w * np.exp(-((end * z) ** 2) / 2) / sqrt(2 * pi)


def level_rule(low: int, high: int) -> tuple[Floats, Floats]:
    """Return levels and weights that average over a distribution; they crowd towards both ends of it."""
    u, v = leggauss(low)
    u_high, v_high = leggauss(high)
    u = (1 + u) / 2
    v = v / 2
    u_high = (1 + u_high) / 2
    v_high = v_high / 2
    levels = np.concatenate([u**2 / 2, (1 - u_high**2 / 2)[::-1]])
    return levels, np.concatenate([u * v, (u_high * v_high)[::-1]])


_Z, _W = _normal_rule(56, 6.0)
# Of the other noise the upper half matters, beyond the interval's end.
_NOISE_LEVELS, _NOISE_SHARES = level_rule(16, 48)
_NOISE_POINTS = tuple(_NOISE_LEVELS.tolist())


def two_sided_tails(sd: Floats, h: Floats, noises: NoiseBatch) -> Floats:
    """Return P(|N + X_i| > h[i]) for N with standard deviation sd[i]."""
    beyond = np.empty_like(h)
    wide = sd > _WIDE * noises.widths
    together = _AT_ONCE // len(_NOISE_SHARES)
    for chosen, chances in ((~wide, _narrow_tails), (wide, _wide_tails)):
        rows = np.flatnonzero(chosen)
        for start in range(0, len(rows), together):
            batch = rows[start : start + together]
            beyond[batch] = chances(sd[batch, None], h[batch, None], noises.of(batch))
    return 2 * beyond


def _narrow_tails(sd: Floats, h: Floats, noises: NoiseBatch) -> Floats:
    """Return P(N + X > h) as an average over N."""
    return np.asarray(noises.cdf(sd * _Z - h) @ _W)


def _wide_tails(sd: Floats, h: Floats, noises: NoiseBatch) -> Floats:
    """Return P(N + X > h) as an average over X."""
    points = noises.points(_NOISE_POINTS) - h
    points /= sd
    return np.asarray(ndtr(points, out=points) @ _NOISE_SHARES)


def half_widths(sd: Floats, noises: NoiseBatch, alpha: Floats) -> Floats:
    """Return for every sd the h with P(|N + X| > h) = alpha, by secants of the tail's logarithm."""
    noise_quantile = -noises.quantile(alpha / 2)
    normal = -ndtri(alpha / 2) * sd
    # Exact for normal noise; the usual distributions have heavier tails, and their answer is a little less.
    last = np.where(sd == 0, noise_quantile, np.hypot(noise_quantile, normal))
    h = np.where(sd == 0, noise_quantile, _SECOND_POINT * last)
    low = np.zeros_like(h)
    high = np.full_like(h, np.inf)
    before = _excess(sd, last, noises, alpha)
    excess = before.copy()
    open_ = np.arange(len(h))
    for _ in range(_MOST_STEPS):
        excess[open_] = _excess(sd[open_], h[open_], noises.of(open_), alpha[open_])
        open_ = np.flatnonzero(np.abs(excess) > _NEAR)
        if not len(open_):
            break
        low = np.where(excess > 0, h, low)
        high = np.where(excess > 0, high, h)
        rise = (excess - before) / np.where(h == last, np.inf, h - last)
        trial = h - excess / np.minimum(rise, -1e-300)
        # What leaves the bracket is replaced by its middle, or by twice the width while it is open.
        middle = np.where(high < np.inf, (low + high) / 2, 2 * h)
        last = h
        before = excess.copy()
        h = np.where(np.abs(excess) <= _NEAR, h, np.where((trial > low) & (trial < high), trial, middle))
    return h


def _excess(sd: Floats, h: Floats, noises: NoiseBatch, alpha: Floats) -> Floats:
    """Return log(P(|N + X| > h) / alpha) for every pair of sd and h."""
    return np.asarray(np.log(np.maximum(two_sided_tails(sd, h, noises), 1e-300) / alpha))


def distinct(group: NDArray[np.intp], numbers: Floats) -> tuple[Floats, NDArray[np.intp], NDArray[np.intp]]:
    """Return the numbers of all groups that do not agree, rounded, the place of one of each, and which is whose."""
    logs = np.round(np.log2(np.maximum(numbers, _LEAST)) / _AGREE)
    _, first, which = np.unique(group * 2.0**40 + logs, return_index=True, return_inverse=True)
    return np.where(numbers[first] > _LEAST, 2.0 ** (logs[first] * _AGREE), 0.0), first, which


class MissRates:
    """How often intervals built for one standard deviation miss where another is true, for each noise and level.

    True ones are given row by row, with the case that names noise and alpha, in interquartile ranges of the noise.
    Logarithms are nearly straight between the points of `_GRID`, so interpolating them loses little. A point of a
    table is computed when it is first asked for: most never are.
    """

    def __init__(self, noises: NoiseBatch, alphas: Floats, case: NDArray[np.intp], true: Floats) -> None:
        # Cases of one law and level share half-widths, and rows of one deviation their misses.
        laws, first, table = np.unique(
            np.stack([noises.which, alphas]), axis=1, return_index=True, return_inverse=True
        )
        self._noises = noises.of(first)
        self._alphas = laws[1]
        self._half_widths = np.full((len(first), len(_GRID)), np.nan)
        self._true, first_of_row, self._row = distinct(table[case], true)
        self._table = table[case[first_of_row]]
        self._logs = np.full((len(first_of_row), len(_GRID)), np.nan)
        # The columns of each row that are known.
        self._known = np.repeat([[len(_GRID)], [-1]], len(first_of_row), axis=1)

    def asked(
        self, built: Callable[[NDArray[np.intp], Floats], Floats], shares: Floats
    ) -> Callable[[list[int], list[Asking]], list[Floats]]:
        """Return what answers searches: misses averaged over the variances that `built` gives for a constant."""

        def evaluate(_: list[int], requests: list[Asking]) -> list[Floats]:
            counts = [len(rows) for _, rows in requests]
            row = np.concatenate([rows for _, rows in requests])
            kappa = np.repeat([kappa for kappa, _ in requests], counts)
            misses = np.empty(len(row))
            together = _AT_ONCE // len(shares)
            for batch in (slice(start, start + together) for start in range(0, len(row), together)):
                misses[batch] = self._mean(self._row[row[batch]], built(row[batch], kappa[batch]), shares)
            ends = np.cumsum([0, *counts]).tolist()
            return [misses[start:end] for start, end in pairwise(ends)]

        return evaluate

    def _mean(self, row: NDArray[np.intp], variances: Floats, shares: Floats) -> Floats:
        position = np.log2(np.maximum(variances, _GRID[0] ** 2, out=variances), out=variances)
        position *= _OCTAVE / 2
        position -= _LOWEST * _OCTAVE
        np.clip(position, 0, len(_GRID) - 1 - 1e-9, out=position)
        index = position.astype(np.intp)
        self._fill(row, index)
        position -= index
        index += (row * len(_GRID))[:, None]
        # Places are inside: clipping them checks the least.
        low = self._logs.take(index, mode="clip")
        index += 1
        position *= self._logs.take(index, mode="clip") - low
        position += low
        return np.asarray(np.exp(position, out=position) @ shares)

    def _fill(self, row: NDArray[np.intp], index: NDArray[np.intp]) -> None:
        low = index.min(axis=1)
        high = index.max(axis=1) + 1
        wider = (low < self._known[0, row]) | (high > self._known[1, row])
        if not wider.any():
            return
        low = low[wider]
        high = high[wider]
        row = row[wider]
        np.minimum.at(self._known[0], row, low)
        np.maximum.at(self._known[1], row, high)
        row = np.unique(row)
        columns = np.arange(len(_GRID))
        wanted = (columns >= self._known[0, row, None]) & (columns <= self._known[1, row, None])
        which, column = np.nonzero(wanted & np.isnan(self._logs[row]))
        row = row[which]
        table = self._table[row]
        new = np.isnan(self._half_widths[table, column])
        tables, cells = np.divmod(np.unique(table[new] * len(columns) + column[new]), len(columns))
        chosen = self._noises.of(tables)
        self._half_widths[tables, cells] = half_widths(
            _GRID[cells] * chosen.widths, chosen, self._alphas[tables]
        )
        chosen = self._noises.of(table)
        missed = two_sided_tails(self._true[row] * chosen.widths, self._half_widths[table, column], chosen)
        self._logs[row, column] = np.log(np.maximum(missed, 1e-300))
