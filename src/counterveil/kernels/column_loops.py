"""Loops over matrices kept column by column: `columns` is (p, n), one line for each column of a tall matrix.

They read the entries `start` to `stop` of every line, in single or double precision, and add to what they write.
Four lines are read at a time, the last one again where there are fewer, so that every number fetched is
used more than once; a few thousand entries of a line stay in the nearest cache.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.compilation import compiled_any_order

Floats = NDArray[np.float64]
Columns = NDArray[np.floating]

# Entries of a line that are read together.
_PART = 1024
# Entries whose products are added up in the precision of the columns, before they go to the total.
_SHORT = 256


@compiled_any_order
def add_scores(columns: Columns, start: int, stop: int, direction: Columns, scores: Columns) -> None:
    """Add direction @ columns to the scores (stop - start,)."""
    width = len(columns)
    for first in range(start, stop, _PART):
        end = min(first + _PART, stop)
        own = scores[first - start : end - start]
        for j in range(0, width - 3, 4):
            a, b, c, d = direction[j], direction[j + 1], direction[j + 2], direction[j + 3]
            p, q = columns[j, first:end], columns[j + 1, first:end]
            r, s = columns[j + 2, first:end], columns[j + 3, first:end]
            for i in range(len(own)):
                own[i] += a * p[i] + b * q[i] + c * r[i] + d * s[i]
        for j in range(width - width % 4, width):
            a, p = direction[j], columns[j, first:end]
            for i in range(len(own)):
                own[i] += a * p[i]


@compiled_any_order
def add_totals(columns: Columns, start: int, stop: int, weights: Columns, totals: Floats) -> None:
    """Add columns @ weights to the totals (p,); weights are (stop - start,)."""
    last, zero = len(columns) - 1, weights.dtype.type(0)
    for first in range(start, stop, _PART):
        end = min(first + _PART, stop)
        own = weights[first - start : end - start]
        for j in range(0, last + 1, 4):
            p, q = columns[j, first:end], columns[min(j + 1, last), first:end]
            r, s = columns[min(j + 2, last), first:end], columns[min(j + 3, last), first:end]
            a = b = c = d = zero
            for i in range(len(own)):
                weight = own[i]
                a += weight * p[i]
                b += weight * q[i]
                c += weight * r[i]
                d += weight * s[i]
            found = (a, b, c, d)
            for k in range(min(4, last + 1 - j)):
                totals[j + k] += found[k]


@compiled_any_order
def add_moments(columns: Columns, weights: Floats, first: Floats, second: Floats) -> None:
    """Add to `first` (4, p) the sums of the lines, each less its first entry, under four weights (4, n).

    To `second` (4, p) those of the squares are added.
    """
    a, b, c, d = weights[0], weights[1], weights[2], weights[3]
    for j in range(len(columns)):
        own = columns[j]
        origin = own[0]
        a1 = b1 = c1 = d1 = a2 = b2 = c2 = d2 = 0.0
        for i in range(len(own)):
            x = own[i] - origin
            p, q, r, s = x * a[i], x * b[i], x * c[i], x * d[i]
            a1, b1, c1, d1 = a1 + p, b1 + q, c1 + r, d1 + s
            a2, b2, c2, d2 = a2 + x * p, b2 + x * q, c2 + x * r, d2 + x * s
        for k, found in enumerate(((a1, a2), (b1, b2), (c1, c2), (d1, d2))):
            first[k, j] += found[0]
            second[k, j] += found[1]


@compiled_any_order
def add_products(columns: Columns, start: int, stop: int, sign: float, total: Floats) -> None:
    """Add `sign` times columns @ columns' to the lower triangle of `total`.

    `total` has three more rows and columns than there are lines; what stands there does not count.
    """
    last, zero = len(columns) - 1, columns.dtype.type(0)
    for first in range(start, stop, _SHORT):
        end = min(first + _SHORT, stop)
        for i in range(0, last + 1, 4):
            a0, a1 = columns[i, first:end], columns[min(i + 1, last), first:end]
            a2, a3 = columns[min(i + 2, last), first:end], columns[min(i + 3, last), first:end]
            for j in range(0, i + 1, 4):
                b0, b1 = columns[j, first:end], columns[min(j + 1, last), first:end]
                b2, b3 = columns[min(j + 2, last), first:end], columns[min(j + 3, last), first:end]
                s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = zero
                s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = zero
                for k in range(end - first):
                    x0, x1, x2, x3 = a0[k], a1[k], a2[k], a3[k]
                    y0, y1, y2, y3 = b0[k], b1[k], b2[k], b3[k]
                    s00, s01, s02, s03 = s00 + x0 * y0, s01 + x0 * y1, s02 + x0 * y2, s03 + x0 * y3
                    s10, s11, s12, s13 = s10 + x1 * y0, s11 + x1 * y1, s12 + x1 * y2, s13 + x1 * y3
                    s20, s21, s22, s23 = s20 + x2 * y0, s21 + x2 * y1, s22 + x2 * y2, s23 + x2 * y3
                    s30, s31, s32, s33 = s30 + x3 * y0, s31 + x3 * y1, s32 + x3 * y2, s33 + x3 * y3
                own = ((s00, s01, s02, s03), (s10, s11, s12, s13), (s20, s21, s22, s23), (s30, s31, s32, s33))
                for k, row in enumerate(own):
                    line = total[i + k]
                    line[j] += sign * row[0]
                    line[j + 1] += sign * row[1]
                    line[j + 2] += sign * row[2]
                    line[j + 3] += sign * row[3]
