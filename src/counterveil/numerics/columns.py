"""Totals, balance and overlap of arms, column by column.

Weights are those of an estimate: for the coefficients c_i of a linear estimate pass |c_i|. Within
each arm they are scaled to sum to one. Differences are divided by the standard deviation of the
unweighted data, sqrt((v_1 + v_0)/2) with v the unbiased variances, before and after weighting alike,
so that the two columns can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from math import sqrt
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Flags, Floats
from counterveil.numerics.products import Kind

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

    def variance(self) -> Fraction:
        """Return the unbiased variance; the arm has at least two rows."""
        return (self.squares - Fraction(self.total**2, self.count)) / (self.count - 1)

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


# Products of tall matrices kept column by column with vectors and with themselves.
#
# `columns` is (p, n), one contiguous line for each column of an (n, p) matrix, in single or double precision; the
# rows `start` to `stop` of that matrix count. A few rows at a time are multiplied in one precision, and what they
# give is added up in double precision.


Columns = NDArray[np.floating]
P = TypeVar("P", bound=np.floating)

# Numbers that are multiplied at once: they stay in a core's cache. And the fewest rows.
_COLUMNS_BLOCK, _FEWEST_ROWS = 1 << 16, 64
# Numbers of one line that are worked on at once.
_LINE = 1 << 14


def scores(columns: Columns, start: int, stop: int, direction: NDArray[P]) -> NDArray[P]:
    """Return the rows' products with a direction (p,), in its precision, of shape (stop - start,)."""
    found = np.empty(stop - start, direction.dtype)
    for rows, block in blocks(columns, start, stop, direction.dtype):
        found[rows] = direction @ block
    return found


def totals(columns: Columns, start: int, stop: int, weights: NDArray[np.floating]) -> Floats:
    """Return the sum of the rows times their weights (stop - start,), of shape (p,).

    Where the weights are in single precision a block is added up in it before it goes to the total.
    """
    found = np.zeros(len(columns))
    for rows, block in blocks(columns, start, stop, weights.dtype):
        found += block @ weights[rows]
    return found


def products(columns: Columns, start: int, stop: int, kind: Kind = np.float64) -> Floats:
    """Return the sum of the rows' products with themselves, (p, p).

    In single precision a block is added up before it goes to the total, in half the time: for steps that later ones
    correct.
    """
    total = np.zeros((len(columns), len(columns)))
    for _, block in blocks(columns, start, stop, kind):
        total += block @ block.T
    return total


def blocks(columns: Columns, start: int, stop: int, kind: Any) -> Iterator[tuple[slice, Columns]]:
    """Yield a few rows at a time in this precision: (their places from `start` on, block), the block to be read only.

    A block may be written over by the next.
    """
    step = max(_FEWEST_ROWS, _COLUMNS_BLOCK // max(len(columns), 1))
    buffer = None if columns.dtype == kind else np.empty((len(columns), min(step, stop - start)), kind)
    for first in range(start, stop, step):
        block = columns[:, first : min(first + step, stop)]
        if buffer is not None:
            np.copyto(buffer[:, : block.shape[1]], block)
            block = buffer[:, : block.shape[1]]
        yield slice(first - start, first - start + block.shape[1]), block


class RawLines(Protocol):
    """Lines (n,) of numbers one after another: an array (d, n), or `MadeLines`."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: Any, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class MadeLines:
    """So many lines, each made whenever it is read and not kept."""

    count: int
    make: Callable[[int], Floats]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, place: int) -> Floats:
        return self.make(place)


def _parts(rows: int) -> Iterator[slice]:
    """Yield the rows of a line that are worked on at once."""
    return (slice(start, min(start + _LINE, rows)) for start in range(0, rows, _LINE))


def column_balances(
    raw: RawLines, labels: Sequence[int], treated: NDArray[np.bool_], weights: Floats
) -> tuple[Balance, Balance]:
    """Return the balance of columns under equal weights and under non-negative weights (n,).

    `raw` is (d, n), a line for each covariate. `labels` says of each how many codes it holds, which become one
    column each in its place; 0 stands for numbers.
    """
    share = np.zeros((4, len(weights)))
    share[0][treated] = share[1][~treated] = 1.0
    np.multiply(weights, share[:2], out=share[2:])
    totals, sizes = share.sum(axis=1), np.einsum("ij,ij->i", share, share)
    np.divide(share, totals[:, None], out=share, where=totals[:, None] > 0)
    mean, variance = _columns_moments(raw, share)
    parts = [
        _levels(raw[j], count, share) if count else (mean[:, j : j + 1], variance[:, j : j + 1])
        for j, count in enumerate(labels)
    ]
    means, variances = (np.concatenate([part[k] for part in parts], axis=1) for k in (0, 1))
    effective = [float(t) ** 2 / float(q) if q else 0.0 for t, q in zip(totals, sizes, strict=True)]
    return compared([ArmMoments(*each) for each in zip(means, variances, effective, strict=True)])


def _columns_moments(raw: RawLines, share: Floats) -> tuple[Floats, Floats]:
    """Return the lines' means (4, d), less their first entries, and variances (4, d), under four weights (4, n)."""
    first, second = np.zeros((4, len(raw))), np.zeros((4, len(raw)))
    for k in range(len(raw)):
        line = raw[k]
        for rows in _parts(len(line)):
            beyond = line[rows] - line[0]
            first[:, k] += share[:, rows] @ beyond
            second[:, k] += share[:, rows] @ (beyond * beyond)
    return first, left_of_squares(second, first**2)


def _levels(codes: Floats, count: int, share: Floats) -> tuple[Floats, Floats]:
    """Return the same of one indicator a code."""
    places = codes.astype(np.intp)
    mean: Floats = np.stack([np.bincount(places, one, count).astype(np.float64) for one in share])
    # Squares around the mean of all rows, beside which rounding shows.
    centre = np.bincount(places, minlength=count) / len(places)
    squares = mean * (1.0 - centre) ** 2 + (1.0 - mean) * centre**2
    return mean, left_of_squares(squares, (mean - centre) ** 2)


Lines = NDArray[np.floating]
Places = NDArray[np.intp]

# Standard deviations beyond which a value counts no further where it is clipped: one extreme row must not
# own a feature.
CLIP = 3.0
# A column whose standard deviation is below this share of its size is constant up to rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True, slots=True)
class StandardColumns:
    """Those of some lines `which` (k,) of `raw` (d, n) that vary, with their means and deviations (k,)."""

    raw: RawLines
    which: Places
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, raw: RawLines, which: Places) -> StandardColumns:
        """Return the lines of these places, those left out that are constant."""
        mean, variance = moments(raw, which)
        return cls(raw, which, mean, np.sqrt(variance)).only(varying(mean, variance))

    def only(self, kept: NDArray[np.bool_]) -> StandardColumns:
        """Return some of the columns."""
        return StandardColumns(self.raw, self.which[kept], self.mean[kept], self.deviation[kept])

    def line(self, k: int) -> Floats:
        """Return the k-th column (n,) as it is."""
        found: Floats = self.raw[self.which[k]]
        return found

    def clipped(self, k: int, line: Floats) -> Floats:
        """Return the k-th column, or some rows of it, standardised and clipped."""
        z = (line - self.mean[k]) / self.deviation[k]
        return np.asarray(np.clip(z, -CLIP, CLIP, out=z))

    def sums(self, other: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (k,) the sums of z times `other` (n,), and mean and variance of z z, for clipped columns z."""
        sums = np.zeros((3, len(self.which)))
        for k in range(len(self.which)):
            line = self.line(k)
            for rows in _parts(len(other)):
                z = self.clipped(k, line[rows])
                sums[0, k] += z @ other[rows]
                z *= z
                z -= 1.0
                sums[1, k] += z.sum()
                sums[2, k] += z @ z
        along, first, second = sums
        first, second = first / len(other), second / len(other)
        return along, 1.0 + first, np.maximum(second - first**2, 0.0)

    def write(self, factor: Floats, lines: Lines) -> None:
        """Write the columns less their means, times `factor` (k,), to `lines` (k, n)."""
        for k, line in enumerate(lines):
            own = self.line(k)
            for rows in _parts(len(line)):
                line[rows] = (own[rows] - self.mean[k]) * factor[k]

    def write_squares(self, shift: Floats, factor: Floats, lines: Lines) -> None:
        """Write the clipped columns' squares less `shift` (k,), times `factor` (k,), to `lines` (k, n)."""
        for k, line in enumerate(lines):
            own = self.line(k)
            for rows in _parts(len(line)):
                z = self.clipped(k, own[rows])
                line[rows] = (z * z - shift[k]) * factor[k]


def moments(raw: RawLines, which: Places) -> tuple[Floats, Floats]:
    """Return means and variances of the lines `which` (k,) of `raw` (d, n)."""
    found = np.array([_line_moments(raw[j]) for j in which]).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _line_moments(line: Floats) -> tuple[float, float]:
    """Return mean and variance of a line."""
    n, variance = len(line), 0.0
    mean = float(line.sum()) / n
    for rows in _parts(n):
        z = line[rows] - mean
        variance += float(z @ z) / n
    return mean, variance


def cut_lines(raw: RawLines, which: Places, limits: Floats, lines: Lines) -> Floats:
    """Return deviations (k,) of the lines `which` (k,) of `raw` (d, n), which are cut, centred and written to `lines`.

    They are cut at `limits` (k,) standard deviations either side of their mean, and have a largest size of one;
    constant ones are zero.
    """
    deviations = np.zeros(len(which))
    for k, j in enumerate(which):
        line = raw[j]
        mean, variance = _line_moments(line)
        far = limits[k] * sqrt(variance) if varying(mean, variance) else 0.0
        # The ends are attained.
        low, high = max(line.min() - mean, -far), min(line.max() - mean, far)
        cut = np.clip(line - mean, low, high)
        cut -= cut.mean()
        largest = max(cut.max(), -cut.min()) if far > 0.0 else 0.0
        if largest > 0.0:
            cut /= largest
            deviations[k] = np.sqrt(float(cut @ cut) / len(cut))
        lines[k] = cut if largest > 0.0 else 0.0
    return deviations


def write_levels(codes: Floats, levels: Places, low: Floats, high: Floats, lines: Lines) -> None:
    """Write for each of the levels (k,) a line of `high` (k,) where the codes (n,) are it, and of `low` elsewhere."""
    for k, level in enumerate(levels):
        lines[k] = np.where(codes == level, high[k], low[k])


def varying(mean: Floats | float, variance: Floats | float) -> NDArray[np.bool_]:
    """Return which columns of these means and variances are not constant up to rounding."""
    return np.asarray(variance > (_CONSTANT * mean) ** 2)
