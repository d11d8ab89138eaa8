"""Tails and half-widths of N + X: a normal sampling error plus symmetric privacy noise, to eight digits.

    P(N + X > x) = integral of phi(z) P(X > x - sd z) dz,  phi the standard normal density.

It is taken by Gauss-Legendre pieces that end wherever the distribution of the noise has a breakpoint and shrink
towards the breakpoints, so that it is accurate whether the noise is a thousand times wider or narrower than the
sampling error. Time and memory are bounded whatever the two are. Half-widths h with P(|N + X| > h) = alpha are found
by Newton's steps on the logarithm of the tail, and rounded outwards.

Values and standard deviations are in units of the estimate. What was computed once is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from functools import lru_cache, partial
from math import ceil, hypot, inf, isfinite, isnan, log, log2, sqrt
from typing import cast

import numpy as np
from numpy.polynomial.legendre import leggauss
from scipy.special import ndtr, ndtri

from counterveil.inference.noise_distribution import (
    NoiseBatch,
    NoiseDistribution,
    interquartile_range,
    lower_quantile,
)
from counterveil.inference.noise_sums import NoiseSum, largest_value
from counterveil.inference.searches import in_step, remembered
from counterveil.numerics.arrays import Floats

_NODES, _WEIGHTS = leggauss(8)
_SCALED_WEIGHTS = _WEIGHTS / np.sqrt(2 * np.pi)
# Beyond this many standard deviations a normal holds less than 3e-18 of its mass.
_NORMAL_END = 8.7
_NORMAL_ENDS = np.linspace(-_NORMAL_END, _NORMAL_END, 19)
# Distances from a breakpoint, in standard deviations of the noise, at which pieces end.
_OFFSETS = np.concatenate([2.0 ** np.arange(-4, 7), [100.0, 200.0, 400.0, 1600.0]])
# A distribution with more breakpoints than are listed falls by less than 0.006 (in logarithms) from one to the next,
# so that its tails are within 5e-6 of smooth ones: they are taken as larger by twice that part.
_RIPPLE = 1e-5
# A normal this much narrower than the noise, as a part of its interquartile range, is bounded, not integrated.
_NARROW = 1e-9
# It is bounded by so many standard deviations, which it exceeds with less than this probability.
_FAR = 9.6
_BEYOND_FAR = 1e-21
# A half-width is at most this part above the one that is exact.
_TOLERANCE = 1e-8
# Part by which closed forms are rounded outwards.
_ROUNDING = 1e-12
_MOST_NEWTON_STEPS = 100
# Numbers at once: memory for more is asked of the system afresh each time, which takes longer than the work.
_AT_ONCE = 24_000
# A sampling error of so many of the noise's standard deviations hides what noise exactly it is: sums of two noises
# then have the half-widths of one of few sums.
_HIDES = 4.0
# Ratios of scales of these few sums, an octave.
_RATIOS_AN_OCTAVE = 8

# A number, a standard deviation and a noise.
Case = tuple[float, float, NoiseDistribution | None]
_TAILS: dict[Case, float] = {}
_HALF_WIDTHS: dict[Case, float] = {}

# Asks for tails: sent are P(N + X > x) and the density of N + X at x.
Search = Generator[float, tuple[float, float], float]


def tail(x: float, sd: float, distribution: NoiseDistribution | None) -> float:
    """Return P(N + X > x) for N normal with standard deviation `sd` and X of the given distribution."""
    return tails_beyond([(x, sd, distribution)])[0]


def tails_beyond(cases: Sequence[Case]) -> list[float]:
    """Return P(N + X > x) for every x, standard deviation and noise."""
    return remembered(_TAILS, _with_common_noise(cases), partial(_solved, search=_one_tail))


def half_width(sd: float, distribution: NoiseDistribution | None, alpha: float) -> float:
    """Return the smallest h with P(|N + X| > h) <= alpha, rounded outwards."""
    return exact_half_widths([(alpha, sd, distribution)])[0]


def exact_half_widths(cases: Sequence[Case]) -> list[float]:
    """Return for every alpha, standard deviation and noise the smallest h with P(|N + X| > h) <= alpha."""
    return remembered(_HALF_WIDTHS, _with_common_noise(cases), partial(_solved, search=_one_half_width))


def _with_common_noise(cases: Sequence[Case]) -> list[Case]:
    """Return the same with one of few sums of noises, no smaller, where the sampling error hides the difference.

    |N + X + ratio Y| grows with the ratio where X is symmetric with one peak. Half-widths grow by less than 0.4 %.
    """
    return [(number, sd, _common_noise(sd, noise)) for number, sd, noise in cases]


def _common_noise(sd: float, noise: NoiseDistribution | None) -> NoiseDistribution | None:
    if not isinstance(noise, NoiseSum) or noise.ratio != 1.0:
        return noise
    near, least = _common_sum_no_smaller(cast("Hashable", noise))
    return near if sd > least else noise


@lru_cache(maxsize=4096)
def _common_sum_no_smaller(noise: NoiseSum) -> tuple[NoiseSum, float]:
    """Return the sum whose narrower part is a little wider, one of few but for its scale, and the least sd for it."""
    wide = noise.first
    narrow = noise.second
    if largest_value(wide) < noise.ratio * largest_value(narrow):
        wide, narrow = narrow, wide
    law, _ = noise.standard
    ratio = 2.0 ** (ceil(_RATIOS_AN_OCTAVE * log2(law.ratio)) / _RATIOS_AN_OCTAVE) / law.ratio
    return NoiseSum(wide, narrow, ratio), _HIDES * sqrt(noise.variance)


def _solved(
    cases: list[Case], search: Callable[[float, float, NoiseDistribution | None], Search]
) -> list[float]:
    """Return what searches find that ask for tails and densities of N + X."""
    noisy = {index: row for row, index in enumerate(i for i, case in enumerate(cases) if case[2] is not None)}
    noises = NoiseBatch([cast("NoiseDistribution", cases[i][2]) for i in noisy])

    def evaluate(indices: list[int], x: list[float]) -> list[tuple[float, float]]:
        sd = np.array([cases[i][1] for i in indices])
        batch = noises.of(np.array([noisy[i] for i in indices]))
        tails, density = _tails_and_densities(np.array(x), sd, batch)
        return list(zip(tails.tolist(), density.tolist(), strict=True))

    return in_step([search(*case) for case in cases], evaluate)


def _one_tail(x: float, sd: float, distribution: NoiseDistribution | None) -> Search:
    if not isfinite(x):
        # An estimate that somebody wrote into a file, or that an unproved form overflowed to.
        return float("nan") if isnan(x) else float(x < 0)
    if distribution is None:
        return float(ndtr(-x / sd)) if sd > 0 else float(x < 0)
    if sd <= 0:
        return float(1 - distribution.cdf(np.array([x]))[0])
    if sd < _NARROW * interquartile_range(distribution):
        return float(distribution.cdf(np.array([_FAR * sd - x]))[0]) + _BEYOND_FAR
    return (yield x)[0]


def _one_half_width(alpha: float, sd: float, distribution: NoiseDistribution | None) -> Search:
    normal = -sd * float(ndtri(alpha / 2)) if sd > 0 else 0.0
    if distribution is None:
        return normal * (1 + _ROUNDING)
    if sd <= 0:
        return -float(distribution.quantile(np.array([alpha / 2]))[0]) * (1 + _TOLERANCE)
    if sd < _NARROW * interquartile_range(distribution):
        # |N + X| is beyond h only where |X| is beyond h - FAR sd or |N| beyond FAR sd.
        noise_half_width = -float(
            distribution.quantile(np.array([max(alpha / 2 - _BEYOND_FAR, alpha / 4)]))[0]
        )
        return (noise_half_width + _FAR * sd) * (1 + _TOLERANCE)
    # Exact for normal noise; heavier tails have their answer a little lower.
    h = hypot(lower_quantile(distribution, alpha / 2), normal)
    low = 0.0
    high = inf
    for _ in range(_MOST_NEWTON_STEPS):
        beyond, density = yield h
        # Logarithms of tails are nearly straight: Newton's steps on them find the root fast.
        excess = log(max(2 * beyond, 1e-300) / alpha)
        step = excess * beyond / density if density > 0 else inf
        if excess <= 0 and (-step <= _TOLERANCE * h or h - low <= _TOLERANCE * h):
            return h
        low, high = (max(h, low), high) if excess > 0 else (low, min(h, high))
        # Aim a hair beyond the root, so that a good guess ends above it.
        trial = (h + step) * (1 + _TOLERANCE / 2)
        if not low < trial < high:
            trial = (low + high) / 2 if high < inf else 2 * h
        h = trial
    return high


def _tails_and_densities(x: Floats, sd: Floats, noises: NoiseBatch) -> tuple[Floats, Floats]:
    """Return P(N + X > x) and the density of N + X at x, for positive standard deviations."""
    normal_end = _NORMAL_END * sd * (1 + _TOLERANCE)
    breakpoints = noises.breakpoints(x - normal_end, x + normal_end)
    counts = np.array([1 if points is None else len(points) for points in breakpoints])
    tails = np.empty_like(x)
    density = np.empty_like(x)
    # Those of about as many breakpoints are integrated together: none has many more pieces than it needs.
    order = np.argsort(counts, kind="stable")
    start = 0
    while start < len(order):
        most = max(16, 2 * int(counts[order[start]]))
        together = max(1, _AT_ONCE // (len(_NODES) * (most + len(_NORMAL_ENDS) + 2 * len(_OFFSETS))))
        rows = order[start : start + together]
        rows = rows[counts[rows] <= most]
        start += len(rows)
        ends = np.full((len(rows), int(counts[rows].max())), inf)
        for row, points in zip(ends, (breakpoints[i] for i in rows), strict=True):
            row[: 1 if points is None else len(points)] = 0.0 if points is None else points
        z, weight = _pieces(x[rows], sd[rows], noises.widths[rows], ends)
        # The upper tail is integrated itself rather than taken from 1, which would lose its digits.
        weight *= noises.of(rows).cdf(sd[rows, None] * z - x[rows, None])
        rippled = np.array([breakpoints[i] is None for i in rows])
        tails[rows] = np.where(rippled, 1 + _RIPPLE, 1.0) * weight.sum(axis=1)
        density[rows] = np.einsum("ij,ij->i", weight, z) / sd[rows]
    return tails, density


def _pieces(x: Floats, sd: Floats, widths: Floats, breakpoints: Floats) -> tuple[Floats, Floats]:
    """Return points of the normal parts and what they weigh, in pieces between which the integrands are smooth.

    `widths` are typical of the noises, `breakpoints[i]` those of the i-th. A piece beyond the normal is empty.
    """
    offsets = _OFFSETS * widths[:, None]
    cuts = (x[:, None] - np.concatenate([breakpoints, -offsets, offsets], axis=1)) / sd[:, None]
    ends = np.broadcast_to(_NORMAL_ENDS, (len(x), len(_NORMAL_ENDS)))
    cuts = np.sort(np.concatenate([ends, np.clip(cuts, -_NORMAL_END, _NORMAL_END)], axis=1), axis=1)
    # Pieces that are empty for all are left out.
    first = np.count_nonzero(cuts <= -_NORMAL_END, axis=1).min()
    last = np.count_nonzero(cuts < _NORMAL_END, axis=1).max()
    cuts = cuts[:, first - 1 : last + 1]
    half = (cuts[:, 1:] - cuts[:, :-1]) / 2
    z = (half[:, :, None] * _NODES + (cuts[:, :-1] + half)[:, :, None]).reshape(len(x), -1)
    weight = z * z
    weight *= -0.5
    np.exp(weight, out=weight)
    weight *= (half[:, :, None] * _SCALED_WEIGHTS).reshape(len(x), -1)
    return z, weight
