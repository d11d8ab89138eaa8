"""Products of tall matrices kept column by column with vectors and with themselves.

`columns` is (p, n), one contiguous line for each column of an (n, p) matrix, in single or double precision; the
rows `start` to `stop` of that matrix count. A few rows at a time are multiplied in one precision, and what they
give is added up in double precision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arms import ArmMoments, Balance, compared, left_of_squares
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Kind

Columns = NDArray[np.floating]
P = TypeVar("P", bound=np.floating)

# Numbers that are multiplied at once: they stay in a core's cache. And the fewest rows.
_BLOCK, _FEWEST_ROWS = 1 << 16, 64
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
    step = max(_FEWEST_ROWS, _BLOCK // max(len(columns), 1))
    buffer = None if columns.dtype == kind else np.empty((len(columns), min(step, stop - start)), kind)
    for first in range(start, stop, step):
        block = columns[:, first : min(first + step, stop)]
        if buffer is not None:
            np.copyto(buffer[:, : block.shape[1]], block)
            block = buffer[:, : block.shape[1]]
        yield slice(first - start, first - start + block.shape[1]), block


def _parts(rows: int) -> Iterator[slice]:
    """Yield the rows of a line that are worked on at once."""
    return (slice(start, min(start + _LINE, rows)) for start in range(0, rows, _LINE))


# How alike two arms are in covariates kept column by column; see `balance`.


def column_balances(
    raw: Floats, labels: Sequence[int], treated: NDArray[np.bool_], weights: Floats
) -> tuple[Balance, Balance]:
    """Return the balance of columns under equal weights and under non-negative weights (n,).

    `raw` is (d, n), a line for each covariate. `labels` says of each how many codes it holds, which become one
    column each in its place; 0 stands for numbers.
    """
    w = np.stack([used * inside for used in (1.0, weights) for inside in (treated, ~treated)])
    totals, sizes = w.sum(axis=1), np.einsum("ij,ij->i", w, w)
    share = np.divide(w, totals[:, None], out=w, where=totals[:, None] > 0)
    mean, variance = _moments(raw, share)
    parts = [
        _levels(raw[j], count, share) if count else (mean[:, j : j + 1], variance[:, j : j + 1])
        for j, count in enumerate(labels)
    ]
    means, variances = (np.concatenate([part[k] for part in parts], axis=1) for k in (0, 1))
    effective = [float(t) ** 2 / float(q) if q else 0.0 for t, q in zip(totals, sizes, strict=True)]
    return compared([ArmMoments(*each) for each in zip(means, variances, effective, strict=True)])


def _moments(raw: Floats, share: Floats) -> tuple[Floats, Floats]:
    """Return the lines' means (4, d), less their first entries, and variances (4, d), under four weights (4, n)."""
    first, second = np.zeros((4, len(raw))), np.zeros((4, len(raw)))
    for rows, block in blocks(raw, 0, raw.shape[1], raw.dtype):
        beyond = (block - raw[:, :1]).T
        first += share[:, rows] @ beyond
        second += share[:, rows] @ (beyond * beyond)
    return first, left_of_squares(second, first**2)


def _levels(codes: Floats, count: int, share: Floats) -> tuple[Floats, Floats]:
    """Return the same of one indicator a code."""
    places = codes.astype(np.intp)
    mean: Floats = np.stack([np.bincount(places, one, count).astype(np.float64) for one in share])
    # Squares around the mean of all rows, beside which rounding shows.
    centre = np.bincount(places, minlength=count) / len(places)
    squares = mean * (1.0 - centre) ** 2 + (1.0 - mean) * centre**2
    return mean, left_of_squares(squares, (mean - centre) ** 2)


# Columns of numbers kept as contiguous lines, standardised and clipped, plain or squared.


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

    raw: Floats
    which: Places
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, raw: Floats, which: Places) -> StandardColumns:
        """Return the lines of these places, those left out that are constant."""
        mean, variance = moments(raw, which)
        return cls(raw, which, mean, np.sqrt(variance)).only(varying(mean, variance))

    def only(self, kept: NDArray[np.bool_]) -> StandardColumns:
        """Return some of the columns."""
        return StandardColumns(self.raw, self.which[kept], self.mean[kept], self.deviation[kept])

    def clipped(self, k: int, rows: slice = slice(None)) -> Floats:
        """Return the k-th column (n,), or some rows of it, standardised and clipped."""
        z = (self.raw[self.which[k], rows] - self.mean[k]) / self.deviation[k]
        return np.asarray(np.clip(z, -CLIP, CLIP, out=z))

    def sums(self, other: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (k,) the sums of z times `other` (n,), and mean and variance of z z, for clipped columns z."""
        sums = np.zeros((3, len(self.which)))
        for k in range(len(self.which)):
            for rows in _parts(len(other)):
                z = self.clipped(k, rows)
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
            for rows in _parts(len(line)):
                line[rows] = (self.raw[self.which[k], rows] - self.mean[k]) * factor[k]

    def write_squares(self, shift: Floats, factor: Floats, lines: Lines) -> None:
        """Write the clipped columns' squares less `shift` (k,), times `factor` (k,), to `lines` (k, n)."""
        for k, line in enumerate(lines):
            for rows in _parts(len(line)):
                z = self.clipped(k, rows)
                line[rows] = (z * z - shift[k]) * factor[k]


def moments(raw: Floats, which: Places) -> tuple[Floats, Floats]:
    """Return means and variances of the lines `which` (k,) of `raw` (d, n)."""
    n = raw.shape[1]
    mean, variance = np.empty(len(which)), np.zeros(len(which))
    for k, j in enumerate(which):
        mean[k] = raw[j].sum() / n
        for rows in _parts(n):
            z = raw[j, rows] - mean[k]
            variance[k] += float(z @ z) / n
    return mean, variance


def cut_lines(raw: Floats, which: Places, reach: Floats, lines: Lines) -> Floats:
    """Return deviations (k,) of the lines `which` (k,) of `raw` (d, n), which are cut, centred and written to `lines`.

    They are cut at `reach` (k,) standard deviations either side of their mean, and have a largest size of one;
    constant ones are zero.
    """
    mean, variance = moments(raw, which)
    far, deviations = np.where(varying(mean, variance), reach * np.sqrt(variance), 0.0), np.zeros(len(which))
    for k, j in enumerate(which):
        # The ends are attained.
        low, high = max(raw[j].min() - mean[k], -far[k]), min(raw[j].max() - mean[k], far[k])
        cut = np.clip(raw[j] - mean[k], low, high)
        cut -= cut.mean()
        largest = max(cut.max(), -cut.min()) if far[k] > 0.0 else 0.0
        if largest > 0.0:
            cut /= largest
            deviations[k] = np.sqrt(float(cut @ cut) / len(cut))
        lines[k] = cut if largest > 0.0 else 0.0
    return deviations


def write_levels(codes: Floats, levels: Places, low: Floats, high: Floats, lines: Lines) -> None:
    """Write for each of the levels (k,) a line of `high` (k,) where the codes (n,) are it, and of `low` elsewhere."""
    for k, level in enumerate(levels):
        lines[k] = np.where(codes == level, high[k], low[k])


def varying(mean: Floats, variance: Floats) -> NDArray[np.bool_]:
    """Return which columns of these means and variances are not constant up to rounding."""
    return np.asarray(variance > (_CONSTANT * mean) ** 2)
