"""Vectors of exact draws: a certified float64 path, and the exact path wherever it is not certain.

Both paths read the same words. A draw is settled in float64 only when its proved error bound lies
clear of every rounding boundary; otherwise the exact path continues with the very same bits. The
integers are therefore those of the exact sampler, not approximations of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from flint import arb, arb_series, ctx
from numpy.typing import NDArray

from counterveil.mechanisms.source import (
    TAIL_BITS,
    BitSource,
    Grid,
    SignedUniform,
    TailQuantile,
    check_count,
    settle,
    split,
)

# Piecewise polynomials for quantile functions, each with a proved bound on its error.
#
# Cells are ranges of the first 52 bits k of a uniform number u, which then lies in
# [k, k + 1] / 2**52. In a cell the quantile is approximated by a polynomial in (k + 1/2 - origin)
# with float64 coefficients; `error` bounds everything between the value that Horner's rule returns
# in IEEE arithmetic and the quantile at any u of the interval. Terms: `sampler.proof.md`.


HEAD_BITS = 52
# Few cells of a high degree: at the usual grid deeper tails, of probability 2**-12, are most of what is left to the
# exact path, and a table takes as long to build as some 700 exact draws. Flint has ten terms of a series.
DEGREE = 8
OCTAVES = 12
SUBCELLS = 8
TABLE_PRECISION = 128
_UNIT_ROUNDOFF_BITS = 53


class SmoothDistribution(TailQuantile, Protocol):
    """A distribution whose size |X| has an analytic density on the positive half line."""

    def size_density(self, x: arb_series) -> arb_series:
        """Return the density of |X| as a power series; the constant term may be a wide ball."""
        ...


@dataclass(frozen=True, slots=True)
class Cell:
    """One polynomial: k from `start` on, coefficients in powers of (k + 1/2 - origin)."""

    start: int
    origin: float
    coefficients: tuple[float, ...]
    error: float


@dataclass(frozen=True, slots=True)
class Table:
    """Cells sorted by start; coefficients have shape (degree + 1, cells), lowest power first."""

    starts: NDArray[np.int64]
    origins: NDArray[np.float64]
    coefficients: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, cells: list[Cell]) -> Table:
        """Return the table of these cells, with a first cell that sends the far tail to the exact path."""
        unknown = Cell(0, 0.0, (0.0,), math.inf)
        ordered = sorted([unknown, *cells], key=lambda cell: cell.start)
        width = max(len(cell.coefficients) for cell in ordered)
        padded = [cell.coefficients + (0.0,) * (width - len(cell.coefficients)) for cell in ordered]
        return cls(
            np.array([cell.start for cell in ordered], dtype=np.int64),
            np.array([cell.origin for cell in ordered]),
            np.ascontiguousarray(np.array(padded).T),
            np.array([cell.error for cell in ordered]),
        )

    def evaluate(self, heads: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the approximate quantiles of these heads and the bounds of their errors."""
        index = np.searchsorted(self.starts, heads, side="right") - 1
        # Both numbers are multiples of 1/2 below 2**52, so this difference is exact.
        offset = (heads.astype(np.float64) + 0.5) - self.origins[index]
        value = self.coefficients[-1][index]
        for row in self.coefficients[-2::-1]:
            value = value * offset + row[index]
        return value, self.errors[index]


def smooth_table(distribution: SmoothDistribution) -> Table:
    """Return the table of an analytic distribution: octaves of u, each cut into equal cells."""
    cells: list[Cell] = []
    with ctx.workprec(TABLE_PRECISION):
        for octave in range(OCTAVES):
            width = 2 ** (HEAD_BITS - 1 - octave) // SUBCELLS
            first = 2 ** (HEAD_BITS - 1 - octave)
            edges = [distribution.tail_quantile(_head(first + i * width)) for i in range(SUBCELLS + 1)]
            cells.extend(
                _smooth_cell(distribution, first + i * width, width, edges[i].union(edges[i + 1]))
                for i in range(SUBCELLS)
            )
    return Table.of(cells)


def linear_cell(start: int, stop: int, value: arb, slope: arb) -> Cell:
    """Return the cell of a quantile that equals value + slope * (head - start) on [start, stop].

    `value` and `slope` may depend on the piece but not on the head; `slope` is per unit of the head.
    """
    return _cell(start, float(start), [value, slope], arb(stop - start), abs(slope) / 2)


def blind_cell(start: int) -> Cell:
    """Return a cell that sends every draw to the exact path."""
    return Cell(start, 0.0, (0.0,), math.inf)


def _smooth_cell(distribution: SmoothDistribution, start: int, width: int, sizes: arb) -> Cell:
    """Return the Taylor cell about the middle of [start, start + width]; `sizes` holds its quantiles."""
    middle = start + width // 2
    half = arb(width) / 2
    centre = distribution.tail_quantile(_head(middle))
    taylor = [centre, *_inverse_derivatives(distribution, centre)[1 : DEGREE + 1]]
    anywhere = _inverse_derivatives(distribution, sizes)
    remainder = abs(anywhere[DEGREE + 1]) * half ** (DEGREE + 1)
    # The midpoint k + 1/2 stands for [k, k + 1]: the quantile moves by at most half a unit times its slope.
    return _cell(start, float(middle), taylor, half, remainder + abs(anywhere[1]) / 2)


def _inverse_derivatives(distribution: SmoothDistribution, size: arb) -> list[arb]:
    """Return balls of the Taylor coefficients of the quantile in the head, wherever it equals `size`."""
    length = DEGREE + 2
    density = _padded(distribution.size_density(arb_series([size, 1], length)), length)
    # The tail falls at the rate of the density: head(x) - head(size) = -2**52 * integral of the density.
    falls = [-(arb(2) ** HEAD_BITS) * density[i - 1] / i for i in range(1, length)]
    return _padded(arb_series([arb(0), *falls], length).reversion(), length)


def _padded(series: arb_series, length: int) -> list[arb]:
    """Return the first `length` coefficients; flint leaves out zeros at the end."""
    if series.prec < length:  # flint cuts series off at the length of its context, without a word
        raise ValueError("fewer terms than a bound of the error needs")
    known = list(series.coeffs())[:length]
    return known + [arb(0)] * (length - len(known))


def _cell(start: int, origin: float, taylor: list[arb], reach: arb, other: arb) -> Cell:
    """Return the cell with rounded coefficients and the sum of all errors for |offset| <= reach."""
    rounded = tuple(float(coefficient.mid()) for coefficient in taylor)
    error, size, power = other, arb(0), arb(1)
    for coefficient, number in zip(taylor, rounded, strict=True):
        error += abs(coefficient - arb(number)) * power
        size += abs(arb(number)) * power
        power *= reach
    # Horner's rule: each coefficient meets at most 2 degree roundings (one more covers gamma_n > n u).
    error += size * (2 * len(rounded)) * arb(2) ** -_UNIT_ROUNDOFF_BITS
    return Cell(start, origin, rounded, _float_above(error))


def _float_above(ball: arb) -> float:
    """Return a float64 that is not below any point of a non-negative ball; infinity if unknown."""
    if not ball.is_finite():
        return math.inf
    # float() of the upper end may round down; one part in 2**40 more than covers it.
    return float(ball.abs_upper()) * (1 + 2.0**-40) + 2.0**-1000


def _head(head: int) -> arb:
    """Return head / 2**52 as an exact ball."""
    return arb((head, -HEAD_BITS))


def head_floor(u: arb) -> int | None:
    """Return floor(u * 2**52) where it is certain."""
    floor = (u * arb(2) ** HEAD_BITS).floor().unique_fmpz()
    return None if floor is None else int(floor)


BLOCK = 2**20  # draws whose words are read at once; bounds the memory
CHUNK = 2**15  # draws evaluated at once; keeps the work in the cache
FEW = 256  # fewer draws than this do not build a table; those that come often are vectors of some hundred
MOST_TABLES = 64
_HALF = Fraction(1, 2)
# Outside this range of scale / step a float64 product could overflow or lose its relative accuracy.
_RATIO_RANGE = (Fraction(1, 2**200), Fraction(2**100))
_SPREAD = 1 + 2.0**-20  # more than covers the roundings made while the bound itself is computed
_ROUNDINGS = (
    2.0**-51
)  # of the ratio, its product with the quantile, the shift and their sum: 2**-52 beside size + 1
_MARGIN = 0.5 - 2.0**-40
_FITS = 2**62  # sums of a draw and a value below this fit in 64 bits


class TabledDistribution(TailQuantile, Protocol):
    """A distribution that also has a certified table; distributions are compared by value, so tables are shared."""

    def table(self) -> Table:
        """Return a newly built table."""
        ...

    def __hash__(self) -> int: ...


_TABLES: dict[TabledDistribution, Table] = {}


def release_values(
    distribution: TabledDistribution,
    scale: Fraction,
    values: Sequence[Fraction],
    grid: Grid,
    source: BitSource,
) -> list[Fraction]:
    """Return the grid points nearest to value + scale * X, with an exact draw X of its own for every value."""
    parts = [split(value, grid) for value in values]
    table, ratio = _table_for(distribution, scale, len(values), grid)
    drawn = _in_blocks(distribution, ratio, len(values), source, table, [rest for _, rest in parts])
    return [grid.value(whole + int(own)) for (whole, _), own in zip(parts, drawn, strict=True)]


def draw_units(
    distribution: TabledDistribution, scale: Fraction, count: int, grid: Grid, source: BitSource
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Return `count` draws of scale * X rounded to the grid, in steps; Python ints if one needs 63 bits."""
    table, ratio = _table_for(distribution, scale, count, grid)
    return _in_blocks(distribution, ratio, count, source, table)


def draw_units_exactly(
    distribution: TailQuantile, scale: Fraction, count: int, grid: Grid, source: BitSource
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Return what `draw_units` returns, bit for bit, without its float64 path."""
    return _in_blocks(distribution, scale / grid.step, count, source, None)


def shared_table(distribution: TabledDistribution) -> Table:
    """Return the table of a distribution, built at its first use."""
    if distribution not in _TABLES:
        while len(_TABLES) >= MOST_TABLES:
            del _TABLES[next(iter(_TABLES))]
        _TABLES[distribution] = distribution.table()
    return _TABLES[distribution]


def _table_for(
    distribution: TabledDistribution, scale: Fraction, count: int, grid: Grid
) -> tuple[Table | None, Fraction]:
    """Return the table for so many draws, None where the exact path takes them all, and the scale in steps."""
    ratio = scale / grid.step
    if not _RATIO_RANGE[0] <= ratio <= _RATIO_RANGE[1]:
        return None, ratio
    return _TABLES.get(distribution) if count < FEW else shared_table(distribution), ratio


def _in_blocks(
    distribution: TailQuantile,
    ratio: Fraction,
    count: int,
    source: BitSource,
    table: Table | None,
    offsets: Sequence[Fraction] | None = None,
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Return floor(offset + ratio * X) for every draw, offsets being in [0, 1), or 1/2.

    Each block reads its words first and further bits after them.
    """
    check_count(count)
    units = np.zeros(count, dtype=np.int64)
    large: dict[int, int] = {}
    for start in range(0, count, BLOCK):
        words = source.words(min(BLOCK, count - start))
        block = units[start : start + len(words)]
        own = None if offsets is None else offsets[start : start + len(words)]
        open_ = (
            np.arange(len(words))
            if table is None
            else _settle_in_float(table, float(ratio), words, _shifts(own, len(words)), block)
        )
        for i in open_:
            uniform = SignedUniform.of_word(int(words[i]))
            drawn = settle(distribution, ratio, _HALF if own is None else own[i], uniform, source)
            if abs(drawn) < _FITS:
                block[i] = drawn
            else:
                large[start + int(i)] = drawn
    if not large:
        return units
    wide = units.astype(object)
    for i, drawn in large.items():
        wide[i] = drawn
    return wide


def _shifts(offsets: Sequence[Fraction] | None, count: int) -> NDArray[np.float64]:
    """Return offset - 1/2, rounded once: Python divides whole numbers correctly."""
    if offsets is None:
        return np.zeros(count)
    return np.array([(2 * one.numerator - one.denominator) / (2 * one.denominator) for one in offsets])


def _settle_in_float(
    table: Table,
    ratio: float,
    words: NDArray[np.uint64],
    shifts: NDArray[np.float64],
    units: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Write every draw that float64 settles into `units`; return the indices of the others."""
    undecided: list[NDArray[np.int64]] = []
    tail, unseen = np.uint64((1 << TAIL_BITS) - 1), np.uint64(TAIL_BITS - HEAD_BITS)
    for start in range(0, len(words), CHUNK):
        chunk = words[start : start + CHUNK]
        heads = ((chunk & tail) >> unseen).astype(np.int64)
        with np.errstate(invalid="ignore", over="ignore"):
            quantile, error = table.evaluate(heads)
            size = quantile * ratio
            bound = (error * ratio + (np.abs(size) + 1.0) * _ROUNDINGS) * _SPREAD
            centre = np.where(chunk >> np.uint64(TAIL_BITS), -size, size) + shifts[start : start + CHUNK]
            nearest = np.rint(centre)
            # A bound that is not a number compares as False, so nothing unknown is ever accepted.
            settled = np.abs(centre - nearest) + bound < _MARGIN
        units[start : start + len(chunk)] = np.where(settled, nearest, 0.0).astype(np.int64)
        undecided.append(start + np.flatnonzero(~settled))
    return np.concatenate(undecided) if undecided else np.empty(0, dtype=np.int64)
