"""The published sensitivities of exact single matching (Koga et al.), as printed, kept for comparison only.

They serve `variant="paper"` and carry no guarantee; what is false in them: `exact_matching_sensitivity.proof.md`.
Changes of the effect are in units of B / N, changes of its variance in units of (B / N)^2.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Integers
from counterveil.numerics.gaussian_profile import textbook_constant
from counterveil.statistics.strata.variance_sensitivity import (
    StratumCounts,
    largest_discounted,
    two_fronts,
)

Floats = NDArray[np.float64]

# How many numbers in the smaller arm are tried at once.
_CHUNK = 32


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

    False: ln S moves by more than beta, and the textbook constant is proved below epsilon 1 only.
    """
    return textbook_constant(delta) * smoothness / epsilon


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
        return printed_variance_within(counts, k)

    return largest_discounted(value, 64.0 * (counts.rows + 2) ** 2, counts.rows, smoothness)


def _smaller_larger(counts: StratumCounts) -> tuple[Integers, Integers]:
    smaller = np.minimum(counts.treated, counts.control)
    larger = np.maximum(counts.treated, counts.control)
    kept = two_fronts(smaller, larger)
    return smaller[kept], larger[kept]


def _ratio(smaller: Integers, larger: Integers, k: int) -> float:
    left = np.maximum(1, smaller - k)
    return float(np.where(k >= smaller, larger + k, -(-(larger + k + 1) // left)).max(initial=0))


def printed_variance_within(counts: StratumCounts, k: int) -> float:
    """Return the printed bound on the local change of the variance within k replacements.

    Each printed form grows in the larger arm while the smaller stands still, so that for every number in the
    smaller arm only the largest number that any stratum can put beside it has to be tried.
    """
    inserted = removed = 0.0
    one, two = np.append(counts.treated, counts.control), np.append(counts.control, counts.treated)
    most, first = int(one.max()) + k, max(0, int(one.min()) - k)
    while first <= min(most, counts.rows) and (
        first == 0 or _most_from(first, most) > min(inserted, removed)
    ):
        smaller = np.arange(first, min(first + _CHUNK, counts.rows + 1))
        moved = smaller - one[:, None]
        beside = np.where(np.abs(moved) <= k, two[:, None] + k - np.maximum(0, moved), -1).max(axis=0)
        within = beside >= 0
        a = smaller[within].astype(np.float64)
        b = np.minimum(beside, counts.rows - smaller)[within].astype(np.float64)
        inserted = max(inserted, float(_inserted(a, b).max(initial=0)))
        removed = max(removed, float(_removed(a, b).max(initial=0)))
        first += _CHUNK
    return (inserted + removed) / 2


def _most_from(smaller: int, larger: int) -> float:
    """Return what no printed form exceeds where the arms have at least `smaller` and at most `larger` people.

    Every form is a sum of terms 2 (a + i) (2 + (b + j) / a)^2, 2 (b + i) (1 + 3)^2 and (2 + (b + j) / a)^2 with i
    and j up to 2; the bound falls in a = `smaller`.
    """
    ratio = (larger + 2) / smaller
    steep = 8 * (1 + 2 / smaller) * (larger + 2) + 2 * (1 + 2 / smaller) * ratio * (larger + 2)
    return 42.0 * (larger + 4) + steep + (2 + ratio) ** 2


def _inserted(treated: Floats, control: Floats) -> Floats:
    """Return LS_g^+ of the appendix, without B^2, stratum by stratum."""
    single = np.maximum(treated, control)
    both = _either(_one_inserted, np.minimum(treated, control), single)
    return np.where((treated > 0) & (control > 0), both, (1 + single) ** 2 + 4 * single) * (single > 0)


def _one_inserted(t: Floats, c: Floats) -> Floats:
    return 2 * t * _square(c, t) + 2 * c * _square(t + 1, c) + _square(c, t + 1)


def _removed(treated: Floats, control: Floats) -> Floats:
    """Return the appendix's maximum of LS_g^- after one insertion, without B^2, stratum by stratum."""
    single = np.maximum(treated, control)
    return _either(_one_removed, np.minimum(treated, control), single) * (single > 0)


def _one_removed(t: Floats, c: Floats) -> Floats:
    grown = 2 * (1 + c) * _square(1 + t, c) + 2 * (1 + t) * _square(1 + c, 1 + t) + _square(1 + t, c)
    kept = 2 * (2 + t) * _square(c, 1 + t) + 2 * c * _square(2 + t, c) + _square(c, 1 + t)
    return np.maximum(grown, kept)


def _either(form: Callable[[Floats, Floats], Floats], smaller: Floats, larger: Floats) -> Floats:
    """Return the larger of form(smaller, larger) and form(larger, smaller); the first where an arm is empty."""
    empty = smaller == 0
    first = np.append(smaller, np.where(empty, smaller, larger))
    second = np.append(larger, np.where(empty, larger, smaller))
    found = form(first, second)
    return np.maximum(found[: len(smaller)], found[len(smaller) :])


def _square(above: Floats, below: Floats) -> Floats:
    """Return (1 + ceil(above / below))^2; where nobody is below, the caller does not use it."""
    return (1 + np.ceil(above / np.maximum(below, 1))) ** 2
