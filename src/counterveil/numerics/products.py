"""Products and exact sums over rows: Gram matrices and features of covariates.

- `gram`, `times`, `sums`: products of tall, thin matrices in blocks. A linear algebra library starts threads
  for such products that cost more than they save, and many times more when another process holds the second
  core. In blocks below its threshold it stays with one. `MirroredRows` are rows followed by their mirror
  images: a logistic model fitted to both has no intercept. They are written a block at a time, for written
  out they would take three times the memory of the rows.
- `steps`, `WholeSum`, `exact_gram`, `exact_arm_grams`: sums of whole steps, which are exact in every order of
  rows.
- `FeatureMap`, `Standard`: covariates as columns in [-1, 1] and their products, centred, scaled and bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import frexp
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsyrk, ssyrk

from counterveil.numerics.arrays import Floats


@dataclass(frozen=True, slots=True)
class MirroredRows:
    """What np.concatenate([upper, -lower]) holds, for two matrices of the same columns."""

    upper: NDArray[np.floating]
    lower: NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.upper) + len(self.lower)

    @property
    def ndim(self) -> int:
        """Two, as of a matrix."""
        return self.upper.ndim

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), int(self.upper.shape[1])

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.upper.size + self.lower.size

    def __getitem__(self, rows: slice) -> NDArray[np.floating]:
        """Return consecutive rows, to be read only."""
        first, stop, _ = rows.indices(len(self))
        middle = len(self.upper)
        if stop <= middle:
            return self.upper[first:stop]
        images: NDArray[np.floating] = np.negative(self.lower[max(first - middle, 0) : stop - middle])
        return images if first >= middle else np.concatenate([self.upper[first:], images])

    def thinned(self, stride: int) -> MirroredRows:
        """Return every stride-th row; nothing is copied."""
        return MirroredRows(self.upper[::stride], self.lower[-len(self.upper) % stride :: stride])

    def astype(self, kind: type[np.float32] | type[np.float64]) -> NDArray[np.floating]:
        """Return all rows as an array of numbers of this kind."""
        return self[:].astype(kind)


Kind = type[np.float32] | type[np.float64]

# Multiplications a block, just below where threads are started: of two matrices, of a matrix with its own
# transpose (of which half are done), of a matrix with a vector.
_WORK, _OWN_WORK, _VECTOR_WORK = 200_000, 430_000, 400_000
_FEWEST_ROWS = 8
# Wider matrices are taken in tiles of columns.
_WIDEST, _TILE = 200, 64


def gram(matrix: NDArray[np.floating]) -> Floats:
    """Return matrix' matrix, (p, p), for an (n, p) matrix, in double precision."""
    width = matrix.shape[1]
    if width > _WIDEST:
        return _gram_in_tiles(matrix)
    total = Gram(width)
    total.add(matrix)
    return total.whole()


class Gram:
    """The sum of matrix' matrix, (p, p), over matrices that are added one after the other; p of any size.

    In single precision it takes half the time: for steps that later ones correct.
    """

    def __init__(self, width: int, kind: Kind = np.float64) -> None:
        self.kind = kind
        self.upper: NDArray[np.floating] = np.zeros((width, width), kind, order="F")

    def add(self, matrix: NDArray[np.floating]) -> None:
        """Add matrix' matrix for an (n, p) matrix."""
        n, width = matrix.shape
        if width > _WIDEST:
            self.upper += np.triu(_gram_in_tiles(matrix))
            return
        step = _rows(width * (width + 1), _OWN_WORK)
        product = dsyrk if self.kind is np.float64 else ssyrk
        for start in range(0, n if width else 0, step):
            block = np.ascontiguousarray(matrix[start : start + step], self.kind)
            # Adds to the upper triangle in place.
            self.upper = product(1.0, block.T, beta=1.0, c=self.upper, overwrite_c=1)

    def whole(self) -> Floats:
        """Return the sum, both triangles of it."""
        # Nothing was ever added below the diagonal.
        full = self.upper.T + self.upper.astype(np.float64, copy=False)
        full[np.diag_indices(len(full))] = self.upper.diagonal()
        return np.asarray(full)


def times(matrix: NDArray[np.floating], small: Floats) -> Floats:
    """Return matrix small, (n, q), for an (n, p) matrix and a (p, q) one, in double precision."""
    n, width = matrix.shape
    result = np.empty((n, small.shape[1]))
    step = _rows(width * small.shape[1], _WORK)
    for start in range(0, n, step):
        np.matmul(matrix[start : start + step], small, out=result[start : start + step])
    return result


def sums(matrix: NDArray[np.floating], weights: Floats) -> Floats:
    """Return weights matrix, (p,) or (k, p), for an (n, p) matrix and (n,) or (k, n) weights, in double precision."""
    n, width = matrix.shape
    total = np.zeros((*weights.shape[:-1], width))
    step = _rows(width * max(1, weights.size // max(n, 1)), _VECTOR_WORK if weights.ndim == 1 else _WORK)
    for start in range(0, n, step):
        block = matrix[start : start + step].astype(np.float64, copy=False)
        total += weights[..., start : start + step] @ block
    return total


def _gram_in_tiles(matrix: NDArray[np.floating]) -> Floats:
    n, width = matrix.shape
    total = np.empty((width, width))
    step = _rows(_TILE * _TILE, _WORK)
    for first_column in range(0, width, _TILE):
        a = slice(first_column, first_column + _TILE)
        for right in range(first_column, width, _TILE):
            b = slice(right, right + _TILE)
            tile = np.zeros((len(range(width)[a]), len(range(width)[b])))
            for start in range(0, n, step):
                block = matrix[start : start + step].astype(np.float64, copy=False)
                tile += block[:, a].T @ block[:, b]
            total[a, b], total[b, a] = tile, tile.T
    return total


def _rows(work: int, most: int) -> int:
    return max(_FEWEST_ROWS, most // max(work, 1))


# Whole steps stay below 2**_STEP_BITS: 2**12 products of two of them add up below 2**53, exactly in doubles.
_STEP_BITS = 20
# Finer grids gain nothing beside the noise.
_FINEST = 16


def upper_places(size: int) -> list[tuple[int, int]]:
    """Return the places of a square matrix on its diagonal and above, row by row."""
    return [(i, j) for i in range(size) for j in range(i, size)]


def grid_bits(largest: float) -> int:
    """Return the finest grid 2**-bits on which numbers up to `largest` keep below 2**20 steps."""
    return min(_FINEST, _STEP_BITS - frexp(largest)[1])


def steps(values: Floats, bits: int) -> Floats:
    """Return the values in whole steps of 2**-bits, truncated towards zero: no number grows."""
    # In place: pages of a second array this size cost more than the arithmetic.
    found: Floats = values * 2.0**bits
    return np.trunc(found, out=found)


def whole_gram(matrix: Floats) -> NDArray[np.int64]:
    """Return matrix' matrix for at most 4096 rows of whole numbers up to 2**20.

    Sums stay below 2**53, so that doubles add them exactly in any order. Other threads may run meanwhile.
    """
    columns = np.ascontiguousarray(matrix.T)
    width, n = columns.shape
    if width > _WIDEST:
        return _gram_in_tiles(matrix).astype(np.int64)
    total = np.zeros((width, width))
    step = _rows(width * (width + 1), _OWN_WORK)
    for start in range(0, n, step):
        block = columns[:, start : start + step]
        total += block @ block.T
    return total.astype(np.int64)


class WholeSum:
    """A sum of arrays of whole numbers below 2**53, in 64 bits for as long as they hold it."""

    # So many numbers below 2**53 fit into 64 bits.
    _MOST = 1024

    def __init__(self) -> None:
        self._large: NDArray[np.object_] | int = 0
        self._small: NDArray[np.int64] | int = 0
        self._count = 0

    def add(self, array: NDArray[np.int64]) -> None:
        """Add an array of the same shape as those before."""
        self._small = self._small + array
        self._count += 1
        if self._count == self._MOST:
            self._spill()

    def whole(self) -> NDArray[np.object_]:
        """Return the sum in Python's integers."""
        self._spill()
        return np.asarray(self._large, dtype=object)

    def _spill(self) -> None:
        self._large = self._large + np.asarray(self._small).astype(object)
        self._small, self._count = 0, 0


def exact_gram(row_blocks: Iterable[Floats], bits: int) -> NDArray[np.object_]:
    """Return the sum over rows of w w' in units of 4**-bits; every block has at most 4096 rows."""
    return exact_arm_grams(((np.empty(0), block) for block in row_blocks), bits, 1)[0]


def exact_arm_grams(
    row_blocks: Iterable[tuple[NDArray[Any], Floats]], bits: int, arms: int
) -> tuple[NDArray[np.object_], ...]:
    """Return the sums of w w' over the rows of every arm, as `exact_gram` does."""
    totals = [WholeSum() for _ in range(arms)]
    for arm, block in row_blocks:
        fixed = steps(block, bits)
        for place, total in enumerate(totals):
            total.add(whole_gram(fixed[arm == place] if arms > 1 else fixed))
    return tuple(total.whole() for total in totals)


# Sums along a row, column by column: to the bit the same wherever the row stands in a block, and on every processor.
# A library's product of matrix and vector takes the last rows of a block in another order than the others.


def projected(rows: Floats, weights: Floats) -> Floats:
    """Return rows @ weights, (n,), for (n, p) rows and (p,) weights."""
    product = np.zeros(len(rows))
    for index, weight in enumerate(weights):
        product += rows[:, index] * weight
    return product


def squared_lengths(rows: Floats) -> Floats:
    """Return the sum of the squares of every row of an (n, p) matrix."""
    lengths = np.zeros(len(rows))
    for column in range(rows.shape[1]):
        lengths += rows[:, column] * rows[:, column]
    return lengths


# Covariates as columns in [-1, 1], in blocks of rows: numbers, two labels, one column a label, and products.
#
# A row's features depend on that row and on public declarations alone.


# Rows a block: small enough that a block of features stays in the processor's cache.
BLOCK = 4096


def blocks(rows: int) -> Iterator[slice]:
    """Yield slices that cover `rows` rows in order."""
    for start in range(0, rows, BLOCK):
        yield slice(start, min(start + BLOCK, rows))


@dataclass(frozen=True, slots=True)
class Column:
    """How one column is made of a covariate's values: (value - low) / width on [0, 1], or a label's flag.

    `label` is the code that is flagged, None for numbers; `two_valued` says that only -1 and 1 occur.
    """

    source: str
    low: float
    width: float
    label: int | None
    two_valued: bool


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """Columns and products of two of them; the pair (i, i) is 2 x_i^2 - 1.

    Where `windows` are given, a column is first taken as its distance from a middle, in parts of a
    half-width, and clipped to [-1, 1].
    """

    columns: tuple[Column, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    windows: tuple[tuple[float, float], ...] = ()

    @property
    def size(self) -> int:
        """Number of features."""
        return len(self.columns) + len(self.pairs)

    @property
    def two_valued(self) -> NDArray[np.bool_]:
        """For every feature whether only -1 and 1 occur, so that its square is known."""
        of_columns = [column.two_valued for column in self.columns]
        return np.array(of_columns + [of_columns[i] and of_columns[j] for i, j in self.pairs], dtype=np.bool_)

    def block(self, covariates: Mapping[str, Floats], block: slice) -> Floats:
        """Return the (rows, size) features of a block of rows, each in [-1, 1]."""
        count = len(next(iter(covariates.values()))[block])
        # A feature a row while they are made: what is written lies together.
        features = np.empty((self.size, count))
        for index, column in enumerate(self.columns):
            values = covariates[column.source][block]
            if column.label is None:
                # Clipped after the division, whose rounding could step over the end.
                features[index] = 2.0 * np.clip((values - column.low) / column.width, 0.0, 1.0) - 1.0
            else:
                features[index] = np.where(values == column.label, 1.0, -1.0)
        for index, (middle, half_width) in enumerate(self.windows):
            if (middle, half_width) != (0.0, 1.0):
                features[index] = np.clip((features[index] - middle) / half_width, -1.0, 1.0)
        for index, (i, j) in enumerate(self.pairs, len(self.columns)):
            np.multiply(features[i], features[j], out=features[index])
            if i == j:
                features[index] *= 2.0
                features[index] -= 1.0
        return features.T


@dataclass(frozen=True, slots=True, eq=False)
class Standard:
    """Centre and scale of the features, and the bound on a standardised row.

    Coordinates are clipped to [-limit, limit]; rows longer than the root of `squared_length` are
    shortened to it.
    """

    centre: Floats
    scale: Floats
    limit: float
    squared_length: float

    def coordinates(self, x: Floats, out: Floats | None = None) -> Floats:
        """Return (x - centre) / scale, clipped; same shape, written to `out`."""
        z: Floats = np.subtract(x, self.centre, out=out)
        z /= self.scale
        return np.clip(z, -self.limit, self.limit, out=z)

    def rows(self, x: Floats) -> Floats:
        """Return (1, z) with z clipped and shortened; one column more than x."""
        # A column lies together, as in the features.
        out = np.empty((x.shape[1] + 1, len(x)))
        out[0] = 1.0
        z = self.coordinates(x, out[1:].T)
        out[1:] *= np.sqrt(self.squared_length / np.maximum(squared_lengths(z), self.squared_length))
        return out.T
