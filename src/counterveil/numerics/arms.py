"""Exact totals of two arms, and their balance: standardised differences, variance ratios, effective sizes, overlap.

Weights are those of an estimate: for the coefficients c_i of a linear estimate pass |c_i|. Within
each arm they are scaled to sum to one. Differences are divided by the standard deviation of the
unweighted data, sqrt((v_1 + v_0)/2) with v the unbiased variances, before and after weighting alike,
so that the two columns can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Flags, Floats

# Numbers read at once.
_NUMBERS = 1 << 18
# A variance below this part of the squares it was taken from is rounding.
_ROUNDING = 1e-12
_CENTRED = 1e-9


@dataclass(frozen=True, slots=True)
class Balance:
    """Balance of d covariates; arrays are (d,).

    `difference`: standardised mean difference, treated minus control (0 where both arms are constant
    and equal, infinite where they are constant and differ). `variance_ratio`: treated over control
    (1 where both are zero).
    """

    difference: Floats
    variance_ratio: Floats


def balance(X: NDArray[np.floating], treated: Flags, weights: Floats | None = None) -> Balance:
    """Return the balance of the columns of X (n, d) under non-negative weights (n,), equal ones if None."""
    even, weighted = balances(X, treated, np.ones(len(X)) if weights is None else weights)
    return even if weights is None else weighted


def balances(X: NDArray[np.floating], treated: Flags, weights: Floats) -> tuple[Balance, Balance]:
    """Return the balance of the columns of X (n, d) under equal weights, and under the given ones (n,)."""
    return compared(_moments(X, treated, weights))


def effective_size(treated: Flags, weights: Floats) -> tuple[float, float]:
    """Return (sum w)^2 / sum w^2 of the treated and of the control units; 0 for an arm without weight."""
    sizes = []
    for arm in (True, False):
        inside = weights[treated == arm]
        squares = float(inside @ inside)
        sizes.append(float(inside.sum()) ** 2 / squares if squares else 0.0)
    return sizes[0], sizes[1]


def overlap_counts(
    treated: Flags, score: Floats, edges: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counts of treated and control scores in the bins [e_0, e_1), ..., [e_{k-1}, e_k].

    Scores outside the edges are counted in the first or the last bin.
    """
    inner = np.asarray(edges, np.float64)[1:-1]
    bins = np.searchsorted(inner, score, side="right")
    both = np.bincount(2 * bins + treated, minlength=2 * (len(inner) + 1))
    return both[1::2].astype(np.int64), both[::2].astype(np.int64)


@dataclass(frozen=True, slots=True)
class ArmMoments:
    """Mean (d,), variance (d,) and effective size of one arm under some weights."""

    mean: Floats
    variance: Floats
    size: float

    @property
    def unbiased(self) -> Floats:
        """The variance times size/(size - 1); 0 for a single unit."""
        return self.variance * (self.size / (self.size - 1)) if self.size > 1 else np.zeros_like(self.mean)


def compared(moments: Sequence[ArmMoments]) -> tuple[Balance, Balance]:
    """Return the balance under equal weights and under others, from moments of treated and control rows under both."""
    plain_one, plain_zero, one, zero = moments
    scale = np.sqrt((plain_one.unbiased + plain_zero.unbiased) / 2)
    return _compared(plain_one, plain_zero, scale), _compared(one, zero, scale)


def _compared(one: ArmMoments, zero: ArmMoments, scale: Floats) -> Balance:
    gap, top, bottom = one.mean - zero.mean, one.unbiased, zero.unbiased
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.where(gap == 0, 0.0, gap / scale)
        ratio = np.where(top == bottom, 1.0, top / bottom)
    return Balance(difference, ratio)


def _moments(X: NDArray[np.floating], treated: Flags, weights: Floats) -> list[ArmMoments]:
    """Return the moments of treated and control rows under equal weights, then under the given ones.

    Squares are taken once, around the mean of all rows. What is left of them when the distance of an arm's own
    mean is taken off counts as nothing where it is rounding alone.
    """
    w = np.stack([used * inside for used in (1.0, weights) for inside in (treated, ~treated)])
    totals, sizes = w.sum(axis=1), np.einsum("ij,ij->i", w, w)
    share = np.divide(w, totals[:, None], out=np.zeros_like(w), where=totals[:, None] > 0)
    rows = [int(np.count_nonzero(w[arm])) for arm in range(2)]
    mean, squares = _sums(X, share, np.zeros(X.shape[1]))
    centre = (rows[0] * mean[0] + rows[1] * mean[1]) / max(sum(rows), 1)
    # Columns with a mean of zero but for rounding are squared as they are.
    if (np.abs(centre) > _CENTRED).any():
        squares = _sums(X, share, centre)[1]
    else:
        centre = np.zeros_like(centre)
    own = (totals[:, None] > 0) * (mean - centre) ** 2
    effective = [float(t) ** 2 / float(q) if q else 0.0 for t, q in zip(totals, sizes, strict=True)]
    return [
        ArmMoments(m, v, size)
        for m, v, size in zip(mean, left_of_squares(squares, own), effective, strict=True)
    ]


def left_of_squares(squares: Floats, own: Floats) -> Floats:
    """Return mean squares less the square of a mean; what rounding leaves counts as nothing."""
    return np.where(squares - own <= _ROUNDING * squares, 0.0, squares - own)


def _sums(X: NDArray[np.floating], share: Floats, centre: Floats) -> tuple[Floats, Floats]:
    """Return the sums of X - centre, and of its squares, (4, d), under the weights `share` (4, n)."""
    first, second = np.zeros((4, X.shape[1])), np.zeros((4, X.shape[1]))
    step = max(1, _NUMBERS // max(X.shape[1], 1))
    for start in range(0, len(X), step):
        beyond, weights = X[start : start + step] - centre, share[:, start : start + step]
        first += weights @ beyond
        second += weights @ (beyond * beyond)
    return first, second


# Counts, sums and sums of squares of an integer outcome in the two arms of a trial.


# Outcomes are below 2**25, so a block's sum of squares stays below 2**64 / 2: exact in int64.
_BLOCK = 1 << 13


@dataclass(frozen=True, slots=True)
class Arm:
    """Exact integer totals of one arm: number of rows, sum and sum of squares of the outcome."""

    count: int
    total: int
    squares: int

    def mean(self) -> Fraction:
        """Return the arm's mean."""
        return Fraction(self.total, self.count)

    def sum_of_squares(self) -> Fraction:
        """Return the sum of squared deviations from the arm's mean."""
        return self.squares - Fraction(self.total**2, self.count)

    def variance(self) -> Fraction:
        """Return the unbiased variance; the arm has at least two rows."""
        return self.sum_of_squares() / (self.count - 1)

    def centred_total(self, centre: Fraction) -> Fraction:
        """Return the sum of (y - centre)."""
        return self.total - self.count * centre

    def centred_squares(self, centre: Fraction) -> Fraction:
        """Return the sum of (y - centre) squared."""
        return self.squares - 2 * centre * self.total + self.count * centre**2


@dataclass(frozen=True, slots=True)
class TwoArms:
    """The totals of both arms; `people` is the number of rows where the totals are those of a part of them."""

    treated: Arm
    control: Arm
    people: int | None = None

    @property
    def count(self) -> int:
        """Number of rows in both arms, those of other parts with them."""
        return self.treated.count + self.control.count if self.people is None else self.people

    @property
    def sums(self) -> NDArray[np.object_]:
        """The six totals, which add up over parts of the rows."""
        return np.array(
            [getattr(arm, one.name) for arm in (self.treated, self.control) for one in fields(arm)], object
        )

    @classmethod
    def of(cls, sums: NDArray[np.object_], people: int | None = None) -> TwoArms:
        """Return the totals whose `sums` these are."""
        return cls(Arm(*sums[:3]), Arm(*sums[3:]), people)


def arm_totals(treated: NDArray[np.bool_], outcome: NDArray[np.int64]) -> TwoArms:
    """Return the exact totals of both arms; one pass, integers only, so every order of rows agrees."""
    sums = [0, 0, 0, 0, 0, 0]
    for start in range(0, len(outcome), _BLOCK):
        y = outcome[start : start + _BLOCK]
        arm = treated[start : start + _BLOCK]
        in_treated = np.where(arm, y, 0)
        count = int(np.count_nonzero(arm))
        total, total_treated = int(y.sum()), int(in_treated.sum())
        squares, squares_treated = int(y @ y), int(in_treated @ in_treated)
        parts = (count, total_treated, squares_treated, len(y) - count, total - total_treated)
        for place, part in enumerate((*parts, squares - squares_treated)):
            sums[place] += part
    return TwoArms(Arm(*sums[:3]), Arm(*sums[3:]))


# Steps are taken apart into two of these many bits: products of parts then add up exactly in doubles, 2**29 at a time.
_PART_BITS = 12


def cell_totals(cells: NDArray[np.integer], count: int, outcome: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return (count, 3): number of rows, sum and sum of squares of outcomes in [0, 2**24] in every cell; exact."""
    high, low = outcome >> _PART_BITS, outcome & ((1 << _PART_BITS) - 1)

    def added(terms: NDArray[np.int64] | None) -> NDArray[np.object_]:
        return np.bincount(cells, terms, minlength=count).astype(np.int64).astype(object)

    squares = (added(high * high) << 2 * _PART_BITS) + (added(high * low) << _PART_BITS + 1)
    return np.stack([added(None), added(outcome), squares + added(low * low)], axis=1)
