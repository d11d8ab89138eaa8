"""Columns of covariates that are standardised, clipped or turned into indicators while they are read, one at a time.

Matrices are (d, n) here, a row for each covariate, so that each is contiguous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats

# Numbers of one row that are worked on at once.
_STRIP = 1 << 14


class RowSource(Protocol):
    """Rows (n,) of numbers, one for each feature: an array (d, n), or `ComputedRows`."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: Any, /) -> Any: ...


@dataclass(frozen=True, slots=True)
class ComputedRows:
    """So many rows, each computed whenever it is read and not kept."""

    count: int
    make: Callable[[int], Floats]

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, place: int) -> Floats:
        return self.make(place)


@dataclass(frozen=True, slots=True)
class Ordered(Mapping[str, Floats]):
    """Columns with their rows in an order, made whenever one is read: no copy of all is kept."""

    columns: Mapping[str, Floats]
    order: NDArray[np.intp]

    def __getitem__(self, name: str) -> Floats:
        return np.take(self.columns[name], self.order)

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


def strips(rows: int) -> Iterator[slice]:
    """Yield the parts of a column that are worked on at once."""
    return (slice(start, min(start + _STRIP, rows)) for start in range(0, rows, _STRIP))


FeatureRows = NDArray[np.floating]
Places = NDArray[np.intp]

# Standard deviations beyond which a value counts no further where it is clipped: one extreme row must not
# own a feature.
CLIP = 3.0
# A column whose standard deviation is below this share of its size is constant up to rounding.
_CONSTANT = 1e-9


@dataclass(frozen=True, slots=True)
class StandardColumns:
    """Those of some rows `which` (k,) of `raw` (d, n) that vary, with their means and deviations (k,)."""

    raw: RowSource
    which: Places
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, raw: RowSource, which: Places) -> StandardColumns:
        """Return the rows of these places without those that are constant."""
        mean, variance = moments(raw, which)
        return cls(raw, which, mean, np.sqrt(variance)).only(varying(mean, variance))

    def only(self, kept: NDArray[np.bool_]) -> StandardColumns:
        """Return some of the columns."""
        return StandardColumns(self.raw, self.which[kept], self.mean[kept], self.deviation[kept])

    def column(self, k: int) -> Floats:
        """Return the k-th column (n,) as it is."""
        column: Floats = self.raw[self.which[k]]
        return column

    def clipped(self, k: int, values: Floats) -> Floats:
        """Return the k-th column, or some rows of it, standardised and clipped."""
        z = (values - self.mean[k]) / self.deviation[k]
        return np.asarray(np.clip(z, -CLIP, CLIP, out=z))

    def products(self, pairs: Sequence[tuple[int, int]]) -> ComputedRows:
        """Return the products (n,) of two clipped columns, for pairs of their numbers."""

        def product(pair: int) -> Floats:
            first, second = (self.clipped(k, self.column(k)) for k in pairs[pair])
            return np.multiply(first, second, out=first)

        return ComputedRows(len(pairs), product)

    def sums(self, other: Floats) -> tuple[Floats, Floats, Floats]:
        """Return (k,) the sums of z times `other` (n,), and mean and variance of z z, for clipped columns z."""
        sums = np.zeros((3, len(self.which)))
        for k in range(len(self.which)):
            column = self.column(k)
            for rows in strips(len(other)):
                z = self.clipped(k, column[rows])
                sums[0, k] += z @ other[rows]
                z *= z
                z -= 1.0
                sums[1, k] += z.sum()
                sums[2, k] += z @ z
        products, first, second = sums
        first, second = first / len(other), second / len(other)
        return products, 1.0 + first, np.maximum(second - first**2, 0.0)

    def write(self, factor: Floats, out: FeatureRows) -> None:
        """Write the columns less their means, times `factor` (k,), to `out` (k, n)."""
        for k, out_row in enumerate(out):
            column = self.column(k)
            for rows in strips(len(out_row)):
                out_row[rows] = (column[rows] - self.mean[k]) * factor[k]

    def write_squares(self, shift: Floats, factor: Floats, out: FeatureRows) -> None:
        """Write the clipped columns' squares less `shift` (k,), times `factor` (k,), to `out` (k, n)."""
        for k, out_row in enumerate(out):
            column = self.column(k)
            for rows in strips(len(out_row)):
                z = self.clipped(k, column[rows])
                out_row[rows] = (z * z - shift[k]) * factor[k]


def moments(raw: RowSource, which: Places) -> tuple[Floats, Floats]:
    """Return means and variances of the rows `which` (k,) of `raw` (d, n)."""
    both = np.array([_column_moments(raw[j]) for j in which]).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _column_moments(column: Floats) -> tuple[float, float]:
    """Return mean and variance of a column."""
    n = len(column)
    variance = 0.0
    mean = float(column.sum()) / n
    for rows in strips(n):
        z = column[rows] - mean
        variance += float(z @ z) / n
    return mean, variance


def clip_rows(raw: RowSource, which: Places, limits: Floats, out: FeatureRows) -> Floats:
    """Return deviations (k,) of the rows `which` (k,) of `raw` (d, n), which are clipped, centred and written to `out`.

    They are clipped at `limits` (k,) standard deviations either side of their mean, and have a largest size of one;
    constant ones are zero.
    """
    deviations = np.zeros(len(which))
    for k, j in enumerate(which):
        column = raw[j]
        mean, variance = _column_moments(column)
        limit = limits[k] * sqrt(variance) if varying(mean, variance) else 0.0
        # The ends are attained.
        low = max(column.min() - mean, -limit)
        high = min(column.max() - mean, limit)
        clipped = np.clip(column - mean, low, high)
        clipped -= clipped.mean()
        largest = max(clipped.max(), -clipped.min()) if limit > 0.0 else 0.0
        if largest > 0.0:
            clipped /= largest
            deviations[k] = np.sqrt(float(clipped @ clipped) / len(clipped))
        out[k] = clipped if largest > 0.0 else 0.0
    return deviations


def write_levels(codes: Floats, levels: Places, low: Floats, high: Floats, out: FeatureRows) -> None:
    """Write for each of the levels (k,) a row of `high` (k,) where the codes (n,) are it, and of `low` elsewhere."""
    for k, level in enumerate(levels):
        out[k] = np.where(codes == level, high[k], low[k])


def varying(mean: Floats | float, variance: Floats | float) -> NDArray[np.bool_]:
    """Return which columns of these means and variances are not constant up to rounding."""
    return np.asarray(variance > (_CONSTANT * mean) ** 2)
