"""Vectors of exact draws: a certified float64 path, and the exact path wherever it is not certain.

Both paths read the same words. A draw is settled in float64 only when its proved error bound lies
clear of every rounding boundary; otherwise the exact path continues with the very same bits. The
integers are therefore those of the exact sampler, not approximations of them.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from counterveil.mechanisms.grid import Grid
from counterveil.mechanisms.sampler import TAIL_BITS, SignedUniform, TailQuantile, settle
from counterveil.mechanisms.source import BitSource, check_count
from counterveil.mechanisms.table import HEAD_BITS, Table

BLOCK = 2**20  # draws whose words are read at once; bounds the memory
CHUNK = 2**15  # draws evaluated at once; keeps the work in the cache
FEW = 4096  # fewer draws than this are not worth a table
MOST_TABLES = 64
_HALF = Fraction(1, 2)
# Outside this range of scale / step a float64 product could overflow or lose its relative accuracy.
_RATIO_RANGE = (Fraction(1, 2**200), Fraction(2**100))
_SPREAD = 1 + 2.0**-20  # more than covers the roundings made while the bound itself is computed
_ROUNDINGS = 2.0**-51  # scale / step and its product with the quantile: two roundings, doubled
_MARGIN = 0.5 - 2.0**-40
_FITS = 2**62  # sums of a draw and a value below this fit in 64 bits


class TabledLaw(TailQuantile, Protocol):
    """A law that also has a certified table; laws are compared by value, so tables are shared."""

    def table(self) -> Table:
        """Return a newly built table."""
        ...

    def __hash__(self) -> int: ...


_TABLES: dict[TabledLaw, Table] = {}


def draw_units(
    law: TabledLaw, scale: Fraction, count: int, grid: Grid, source: BitSource
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Return `count` draws of scale * X rounded to the grid, in steps; Python ints if one needs 63 bits."""
    ratio = scale / grid.step
    if not _RATIO_RANGE[0] <= ratio <= _RATIO_RANGE[1]:
        return draw_units_exactly(law, scale, count, grid, source)
    # A table takes as long to build as some thousands of exact draws; the integers are the same.
    table = _TABLES.get(law) if count < FEW else shared_table(law)
    return _in_blocks(law, ratio, count, source, table)


def draw_units_exactly(
    law: TailQuantile, scale: Fraction, count: int, grid: Grid, source: BitSource
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Return what `draw_units` returns, bit for bit, without its float64 path."""
    return _in_blocks(law, scale / grid.step, count, source, None)


def shared_table(law: TabledLaw) -> Table:
    """Return the table of a law, built at its first use."""
    if law not in _TABLES:
        while len(_TABLES) >= MOST_TABLES:
            del _TABLES[next(iter(_TABLES))]
        _TABLES[law] = law.table()
    return _TABLES[law]


def _in_blocks(
    law: TailQuantile, ratio: Fraction, count: int, source: BitSource, table: Table | None
) -> NDArray[np.int64] | NDArray[np.object_]:
    """Return the draws block by block; each block reads its words first and further bits after them."""
    check_count(count)
    units = np.zeros(count, dtype=np.int64)
    large: dict[int, int] = {}
    for start in range(0, count, BLOCK):
        words = source.words(min(BLOCK, count - start))
        block = units[start : start + len(words)]
        open_ = (
            np.arange(len(words)) if table is None else _settle_in_float(table, float(ratio), words, block)
        )
        for i in open_:
            drawn = settle(law, ratio, _HALF, SignedUniform.of_word(int(words[i])), source)
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


def _settle_in_float(
    table: Table, ratio: float, words: NDArray[np.uint64], units: NDArray[np.int64]
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
            nearest = np.rint(size)
            bound = (error * ratio + np.abs(size) * _ROUNDINGS) * _SPREAD
            # A bound that is not a number compares as False, so nothing unknown is ever accepted.
            settled = np.abs(size - nearest) + bound < _MARGIN
        rounded = np.where(settled, nearest, 0.0).astype(np.int64)
        negative = (chunk >> np.uint64(TAIL_BITS)).astype(bool)
        units[start : start + len(chunk)] = np.where(negative, -rounded, rounded)
        undecided.append(start + np.flatnonzero(~settled))
    return np.concatenate(undecided) if undecided else np.empty(0, dtype=np.int64)
