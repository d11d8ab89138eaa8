"""The published sensitivities of exact single matching (Koga et al.), as printed, kept for comparison only.

They serve `variant="paper"` and carry no guarantee; what is false in them: `stratified_paper.proof.md`.
Changes of the effect are in units of B / N, changes of its variance in units of (B / N)^2.
"""

from __future__ import annotations

from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.sensitivity.stratum_counts import (
    Integers,
    StratumCounts,
    largest_discounted,
    two_fronts,
)

Floats = NDArray[np.float64]

# Cells of one table of strata and counts within reach.
_TABLE = 1 << 20


def printed_smoothness(epsilon: float, delta: float) -> float:
    """Return beta = epsilon / (2 ln(2 / delta)); for the Laplace noise below it is safe to epsilon about 10."""
    return epsilon / (2 * log(2 / delta))


def printed_noise_scale(smooth: float, epsilon: float) -> float:
    """Return the scale 2 S / epsilon of the Laplace noise; false wherever the printed S is not smooth."""
    return 2 * smooth / epsilon


def printed_global_change(rows: int) -> float:
    """Return B, in units of B / N: too small by the factor 1 + 1/N for three rows or more."""
    return float(rows)


def printed_local_change(counts: StratumCounts) -> float:
    """Return the printed bound on the local change: never exceeded, and at least twice too large."""
    return 4.0 * (1 + printed_ratio(counts, 0))


def printed_ratio(counts: StratumCounts, k: int) -> float:
    """Return max over strata of R^(k).

    False from k = the smaller arm on: k replacements also reach (larger arm + k, 1), at which the printed
    local bound is larger by one step than max + k.
    """
    return _ratio(*_smaller_larger(counts), k)


def printed_change_within(counts: StratumCounts, k: int) -> float:
    """Return A^(k), said to bound the local change at distance k; not below A^(k+1) of every neighbour."""
    return 4.0 * (1 + printed_ratio(counts, k))


def printed_smooth_change(counts: StratumCounts, smoothness: float) -> float:
    """Return max over k = 0..N of e^(-k beta) A^(k): its logarithm moves by up to 1.5 beta, not beta."""
    smaller, larger = _smaller_larger(counts)

    def value(k: int, floor: float) -> float:
        del floor
        return 4.0 * (1 + _ratio(smaller, larger, k))

    return largest_discounted(value, 8.0 * (counts.rows + 1), counts.rows, smoothness)


def printed_log_sd(smoothness: float, epsilon: float, delta: float) -> float:
    """Return the standard deviation of the Gaussian noise on ln S.

    False: ln S moves by more than beta, and the constant sqrt(2 ln(1.25 / delta)) is proved below epsilon 1 only.
    """
    return sqrt(2 * log(1.25 / delta)) * smoothness / epsilon


def printed_variance_change(counts: StratumCounts) -> float:
    """Return the printed bound on the local change of the variance.

    Its part for removals puts t + 1 where a removal leads to t - 1, and falls below its own derivation; no
    data set is known at which the whole is exceeded, because it is five times too large elsewhere.
    """
    treated, control = counts.treated.astype(np.float64), counts.control.astype(np.float64)
    return float(_inserted(treated, control).max() + _removed(treated, control).max()) / 2


def printed_smooth_variance_change(counts: StratumCounts, smoothness: float) -> float:
    """Return max over k = 0..N of e^(-k beta) times the printed bound within k replacements.

    Insertion and removal take their largest counts each for itself, as the printed maximum over data sets
    leaves open; that only enlarges it.
    """

    def value(k: int, floor: float) -> float:
        del floor
        return sum(_variance_within(counts, k)) / 2

    return largest_discounted(value, 64.0 * (counts.rows + 2) ** 2, counts.rows, smoothness)


def _smaller_larger(counts: StratumCounts) -> tuple[Integers, Integers]:
    smaller = np.minimum(counts.treated, counts.control)
    larger = np.maximum(counts.treated, counts.control)
    kept = two_fronts(smaller, larger)
    return smaller[kept], larger[kept]


def _ratio(smaller: Integers, larger: Integers, k: int) -> float:
    left = np.maximum(1, smaller - k)
    return float(np.where(k >= smaller, larger + k, -(-(larger + k + 1) // left)).max(initial=0))


def _variance_within(counts: StratumCounts, k: int) -> tuple[float, float]:
    """Return the largest printed insertion and removal over the counts that k replacements reach.

    Each printed form grows in the larger arm while the smaller stands still, so that for every number in one
    arm only the largest number in the other has to be tried.
    """
    shift = np.arange(-k, k + 1)
    inserted = removed = 0.0
    step = max(1, _TABLE // len(shift))
    for one, two in ((counts.treated, counts.control), (counts.control, counts.treated)):
        for start in range(0, len(one), step):
            fixed = np.maximum(0, one[start : start + step, None] + shift)
            grown = np.maximum(0, fixed - one[start : start + step, None])
            fixed = np.minimum(fixed, counts.rows)
            other = np.minimum(two[start : start + step, None] + k - grown, counts.rows - fixed)
            a, b = fixed.astype(np.float64), other.astype(np.float64)
            inserted = max(inserted, float(_inserted(a, b).max()))
            removed = max(removed, float(_removed(a, b).max()))
    return inserted, removed


def _inserted(treated: Floats, control: Floats) -> Floats:
    """Return LS_g^+ of the appendix, without B^2, stratum by stratum."""
    both = np.maximum(_one_inserted(treated, control), _one_inserted(control, treated))
    single = np.maximum(treated, control)
    return np.where((treated > 0) & (control > 0), both, (1 + single) ** 2 + 4 * single) * (single > 0)


def _one_inserted(t: Floats, c: Floats) -> Floats:
    return 2 * t * _square(c, t) + 2 * c * _square(t + 1, c) + _square(c, t + 1)


def _removed(treated: Floats, control: Floats) -> Floats:
    """Return the appendix's maximum of LS_g^- after one insertion, without B^2, stratum by stratum."""
    none = np.minimum(treated, control) == 0
    single = np.maximum(treated, control)
    both = np.maximum(_one_removed(treated, control), _one_removed(control, treated))
    return np.where(none, _one_removed(np.zeros_like(single), single), both) * (single > 0)


def _one_removed(t: Floats, c: Floats) -> Floats:
    grown = 2 * (1 + c) * _square(1 + t, c) + 2 * (1 + t) * _square(1 + c, 1 + t) + _square(1 + t, c)
    kept = 2 * (2 + t) * _square(c, 1 + t) + 2 * c * _square(2 + t, c) + _square(c, 1 + t)
    return np.maximum(grown, kept)


def _square(above: Floats, below: Floats) -> Floats:
    """Return (1 + ceil(above / below))^2; where nobody is below, the caller does not use it."""
    return (1 + np.ceil(above / np.maximum(below, 1))) ** 2
