"""How much to add to a noisy variance so that the interval built from it keeps its level.

An interval needs the sampling variance V, but only V + xi is known, xi being privacy noise. Adding a high quantile of
xi and paying for it by Bonferroni is valid and wasteful: an interval a little too narrow for its V still covers almost
as often as it should. Here V + xi is first taken for the median p of what V can be (`positive_part`), so that a
release near or below zero is never read as no sampling error. Then the smallest constant kappa is found such that,
averaged over xi, intervals built from

    min(p + kappa, HEADROOM cap)

cover at the wanted level whatever V in [0, cap] is. (With no headroom above the cap, V = cap could never be covered
often enough.) Only public numbers enter: the two noise distributions, the cap and the level. Variances are in squared
units of the estimate.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import inf, isfinite, log2, sqrt
from typing import cast

import numpy as np
from numpy.typing import NDArray

from counterveil.inference.miss_rates import HIGHEST_OCTAVE, Asking, MissRates, distinct, level_rule
from counterveil.inference.noise_distribution import NoiseBatch, NoiseDistribution, standardised
from counterveil.inference.noise_sums import NoiseSum
from counterveil.inference.searches import in_step, remembered
from counterveil.numerics.arrays import Floats

# An inflated variance may exceed the largest possible one by this factor.
HEADROOM = 1.1
# The grids of miss rates reproduce exact coverages to about 4e-4, or to less where alpha is small. The search aims
# this much higher.
_MARGIN = 2e-4
# But at least by the first of these parts of alpha, and at most by the second.
_MARGIN_PARTS = (1 / 200, 1 / 4)
# A cap below this part of the interquartile range of the variance's noise is used itself, with the headroom: what
# was released tells nothing, and the grids are not made for it.
_TELLS_NOTHING = 1e-5
# Variances that are tried, beside 0 and the largest, in squared interquartile ranges of the noise.
_TRIED = 2.0 ** np.arange(-20, 60, 0.5)
# Of these the ones between these multiples of the interquartile range of their own noise.
_LEAST_TRIED = 1 / 50
MOST_TRIED = 200.0
# Part by which the largest of these lies below the cap, at least.
_ROUNDING = 1e-12
# Sums of two noises whose ratios of scales agree to a quarter of an octave are calibrated as one.
_RATIOS_AN_OCTAVE = 4
# Inflations that are searched for together.
_MOST_INFLATED = 1024
# The constant kappa is found to this part of the noise's interquartile range, and rounded upwards.
_PRECISION = 1 / 128
# Or until misses fall short of their aim by less than this, in logarithms.
_ENOUGH = 1 / 8192
# How many of the variances that are missed most often are searched first.
_FEW = 3
# Levels of the variance's noise. Too small a variance misses more often than too large a one, so the lower half has
# more of them.
_LEVELS, _SHARES = level_rule(64, 32)

# A noise, that of the variance, the cap and alpha.
Inflated = tuple[NoiseDistribution, NoiseDistribution, float, float]
_LIKELY: dict[tuple[float, NoiseDistribution], float] = {}
_INFLATIONS: dict[Inflated, float] = {}


def positive_part(released: Floats, noise: NoiseDistribution | NoiseBatch) -> Floats:
    """Return the median of what V >= 0 can be where V plus noise was released and no V is likelier than another.

    It is above 0 and no less than what was released, nearly the same where that is far above the noise. What came out
    below 0 is taken as 0: the lower half of the noise says nothing more about V.
    """
    at = np.maximum(released, 0.0)
    return np.asarray(at - noise.quantile(noise.cdf(at) / 2))


def likely_variances(released: Sequence[tuple[float, NoiseDistribution]]) -> list[float]:
    """Return the positive parts of variances that were released with these noises."""

    def solve(new: list[tuple[float, NoiseDistribution]]) -> list[float]:
        laws, scales = _shapes([noise for _, noise in new])
        variances: list[float] = (
            scales * positive_part(np.array([variance for variance, _ in new]) / scales, laws)
        ).tolist()
        return variances

    return remembered(_LIKELY, released, solve)


def inflation(
    distribution: NoiseDistribution, variance_noise: NoiseDistribution, cap: float, alpha: float
) -> float:
    """Return the smallest kappa beyond `positive_part` that keeps the level 1 - alpha for all variances in [0, cap].

    Infinity where the variance's noise dwarfs the cap: the interval is then built on the cap with its headroom.
    """
    return inflations([(distribution, variance_noise, cap, alpha)])[0]


def inflations(requests: Sequence[Inflated]) -> list[float]:
    """Return the `inflation` of each, searched for together."""
    return remembered(_INFLATIONS, requests, _inflations, _MOST_INFLATED)


def _inflations(requests: list[Inflated]) -> list[float]:
    noises, scales = _shapes([noise for noise, _, _, _ in requests])
    variance_noises, units = _shapes([noise for _, noise, _, _ in requests])
    units = units * variance_noises.widths
    caps = np.array([cap for _, _, cap, _ in requests]) / units
    alphas = np.array([alpha for _, _, _, alpha in requests])
    released = np.flatnonzero(caps >= _TELLS_NOTHING)
    tops = np.minimum(caps, MOST_TRIED)
    # Noise that is nothing beside the sampling error is taken at what is nothing, too.
    spread = np.sqrt(units * (HEADROOM * tops + MOST_TRIED))
    squares = units / np.maximum(scales * noises.widths, spread / 2.0 ** (HIGHEST_OCTAVE - 1)) ** 2
    tried = [
        np.concatenate(
            [[0.0], trials[(trials > _LEAST_TRIED) & (trials < tops[i] * (1 - _ROUNDING))], tops[i : i + 1]]
        )
        for i in released
        for trials in [_TRIED / squares[i]]
    ]
    case = np.repeat(released, list(map(len, tried)))
    variances = np.concatenate([[0.0], *tried])[1:]
    misses = MissRates(noises, alphas, case, np.sqrt(squares[case] * variances))
    positive, which_positive = _positive_parts(variance_noises, case, variances)

    def built(row: NDArray[np.intp], kappa: Floats) -> Floats:
        inflated = positive[which_positive[row]]
        inflated += kappa[:, None]
        np.minimum(inflated, HEADROOM * caps[case[row], None], out=inflated)
        inflated *= squares[case[row], None]
        return inflated

    # From `most` on every variance is taken at its largest: more changes nothing.
    lowest = variance_noises.points((float(_LEVELS[0]),))[:, 0] / variance_noises.widths
    ends = np.cumsum([0, *map(len, tried)]).tolist()
    searches = [
        least_inflation(
            np.arange(*ends[number : number + 2]), aimed_at(alphas[i]), 1.0, HEADROOM * caps[i] - lowest[i]
        )
        for number, i in enumerate(released)
    ]
    kappas = np.full(len(requests), inf)
    kappas[released] = in_step(searches, misses.asked(built, _SHARES))
    return list((kappas * units).tolist())


def _shapes(distributions: Sequence[NoiseDistribution]) -> tuple[NoiseBatch, Floats]:
    """Return the laws that noises are calibrated as, and their scales."""
    shapes = [_shape(cast("Hashable", noise)) for noise in distributions]
    return NoiseBatch([law for law, _ in shapes]), np.array([scale for _, scale in shapes])


@lru_cache(maxsize=4096)
def _shape(distribution: NoiseDistribution) -> tuple[NoiseDistribution, float]:
    """Return a law and a scale: exact, but for sums, which are one of few with the same variance."""
    law, scale = standardised(cast("Hashable", distribution))
    if not isinstance(law, NoiseSum) or not isfinite(law.variance):
        return law, scale
    near = replace(law, ratio=2.0 ** (round(_RATIOS_AN_OCTAVE * log2(law.ratio)) / _RATIOS_AN_OCTAVE))
    return near, scale * sqrt(law.variance / near.variance)


def _positive_parts(
    noises: NoiseBatch, case: NDArray[np.intp], variances: Floats
) -> tuple[Floats, NDArray[np.intp]]:
    """Return what variances can be taken for, level by level of their noise, and which is whose; all in its ranges."""
    keys, first, which = distinct(noises.which[case], variances)
    chosen = noises.of(case[first])
    width = noises.widths[case[first], None]
    xi = chosen.points(tuple(_LEVELS.tolist()))
    return positive_part(keys[:, None] * width + xi, chosen) / width, which


def aimed_at(alpha: float) -> float:
    """Return how often intervals may miss on the grids for them to miss no more often than `alpha`."""
    return alpha - min(max(_MARGIN, _MARGIN_PARTS[0] * alpha), _MARGIN_PARTS[1] * alpha)


def least_inflation(
    everyone: NDArray[np.intp], aim: float, unit: float, most: float
) -> Generator[Asking, Floats, float]:
    """Return the least kappa at which none of the variances is missed more often than `aim`; not beyond about `most`.

    A few variances are the worst ones for every kappa. They are searched, and what is found is tried on all: those
    that are still missed too often are searched from there.
    """

    def excess(kappa: float, rows: NDArray[np.intp]) -> Generator[Asking, Floats, Floats]:
        # Logarithms fall more evenly than the misses themselves.
        return np.log((yield kappa, rows) / aim)

    low = 0.0
    high = unit
    at_low = yield from excess(low, everyone)
    if at_low.max() <= 0:
        return low
    at_high = yield from excess(high, everyone)
    few = sorted({index for misses in (at_low, at_high) for index in misses.argsort()[-_FEW:].tolist()})
    while True:
        ends = (low, max(at_low[few].tolist())), (high, max(at_high[few].tolist()))
        low = yield from _least_root(partial(excess, rows=everyone[few]), *ends, unit, most)
        at_low = yield from excess(low, everyone)
        few = np.flatnonzero(at_low > 0).tolist()
        high = low + unit / 4
        if low >= most or not few:
            return low
        at_high = yield from excess(high, everyone)


def _least_root(
    excess: Callable[[float], Generator[Asking, Floats, Floats]],
    low: tuple[float, float],
    high: tuple[float, float],
    unit: float,
    most: float,
) -> Generator[Asking, Floats, float]:
    """Return where the largest excess falls to 0 or a little below; ends come with their values."""
    lower, at_lower = low
    upper, at_upper = high
    while upper < most and at_upper > 0:
        # As far again as the line through both ends says, and a little farther.
        ahead = 1.1 * at_upper / max(at_lower - at_upper, at_upper / 8)
        step = min(max(ahead, 0.5), 8.0) * (upper - lower)
        lower = upper
        at_lower = at_upper
        upper = upper + step
        at_upper = max((yield from excess(upper)).tolist())
    side = 0
    while at_upper < -_ENOUGH and upper - lower > _PRECISION * unit:
        # False position with the Illinois rule, aimed a little high so that the upper end closes in.
        middle = lower + (upper - lower) * at_lower / (at_lower - at_upper) + _PRECISION / 2 * unit
        middle = min(middle, (lower + 7 * upper) / 8)
        value = max((yield from excess(middle)).tolist())
        if value > 0:
            lower = middle
            at_lower = value
            at_upper = at_upper / 2 if side == 1 else at_upper
            side = 1
        else:
            upper = middle
            at_upper = value
            at_lower = at_lower / 2 if side == -1 else at_lower
            side = -1
    return upper
