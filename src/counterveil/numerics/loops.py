"""Loops over matrices kept column by column: `columns` is (p, n), one line for each column of a tall matrix.

They read the entries `start` to `stop` of every line, in single or double precision, and add to what they write.
Four lines are read at a time, the last one again where there are fewer, so that every number fetched is
used more than once; a few thousand entries of a line stay in the nearest cache.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats, Integers, compiled, compiled_any_order

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


# Loops that factor and invert small matrices, four rows at a time (the last one again if fewer are left).


@compiled_any_order
def write_root(matrix: Floats, lower: Floats) -> bool:
    """Write L with L L' = matrix to `lower` (w, w); return whether the matrix was positive.

    Of `matrix` the lower triangle of the first w rows and columns is read, of `lower` that alone is written.
    """
    last = len(lower) - 1
    for j in range(last + 1):
        own, rest = lower[j, :j], matrix[j, j]
        for k in range(j):
            rest -= own[k] * own[k]
        if not rest > 0.0:
            return False
        pivot = sqrt(rest)
        lower[j, j] = pivot
        for i in range(j + 1, last + 1, 4):
            p, q = lower[i, :j], lower[min(i + 1, last), :j]
            r, s = lower[min(i + 2, last), :j], lower[min(i + 3, last), :j]
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(j):
                common = own[k]
                a += common * p[k]
                b += common * q[k]
                c += common * r[k]
                d += common * s[k]
            found = (a, b, c, d)
            for k in range(min(4, last + 1 - i)):
                lower[i + k, j] = (matrix[i + k, j] - found[k]) / pivot
    return True


@compiled_any_order
def solve_root(lower: Floats, side: Floats) -> None:
    """Replace `side` (w,) by (L L')^-1 side, for the lower triangle L."""
    for i in range(len(side)):
        own, rest = lower[i, :i], side[i]
        for k in range(i):
            rest -= own[k] * side[k]
        side[i] = rest / lower[i, i]
    for i in range(len(side) - 1, -1, -1):
        own, found = lower[i, :i], side[i] / lower[i, i]
        side[i] = found
        for k in range(i):
            side[k] -= found * own[k]


@compiled_any_order
def write_inverse(lower: Floats, upper: Floats) -> None:
    """Write the transposed inverse of a lower triangle (w, w) to `upper` (w, w) of zeros."""
    last = len(lower) - 1
    for j in range(0, last + 1, 4):
        for i in range(j, last + 1):
            own, pivot = lower[i, j:i], lower[i, i]
            p, q = upper[j, j:i], upper[min(j + 1, last), j:i]
            r, s = upper[min(j + 2, last), j:i], upper[min(j + 3, last), j:i]
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for k in range(i - j):
                common = own[k]
                a -= common * p[k]
                b -= common * q[k]
                c -= common * r[k]
                d -= common * s[k]
            found = (a, b, c, d)
            for k in range(min(4, i - j + 1)):
                upper[j + k, i] = (found[k] + (1.0 if i == j + k else 0.0)) / pivot


# The gradient of logistic regression in one reading of columns kept as lines, (d, n).


Singles = NDArray[np.float32]

# Rows that are read at once: with a hundred columns or so they stay in a core's cache for the second use.
_TOGETHER = 1024


@compiled_any_order
def add_gradient(
    columns: Singles, treated: NDArray[np.bool_], weights: Singles, chances: Singles, total: Floats
) -> None:
    """Write the probabilities (n,) of treatment, and add the sum of (probability - treated) x to `total` (d+1,).

    `weights` (d+1,) has the constant last.
    """
    width, one = len(columns), columns.dtype.type(1)
    residual = np.empty(_TOGETHER, columns.dtype)
    for first in range(0, len(treated), _TOGETHER):
        end = min(first + _TOGETHER, len(treated))
        own, arm = chances[first:end], treated[first:end]
        own[:] = weights[width]
        add_scores(columns, first, end, weights[:width], own)
        rest = residual[: end - first]
        for i in range(end - first):
            own[i] = one / (one + np.exp(-own[i]))
            rest[i] = own[i] - one if arm[i] else own[i]
            total[width] += rest[i]
        add_totals(columns, first, end, rest, total)


# Loops that turn columns of numbers, one contiguous line each, into lines of features.
#
# `raw` is (d, n); the lines `which` (k,) of it are used, with one entry for each in every other vector.


Places = NDArray[np.intp]
Lines = NDArray[np.floating]


@compiled_any_order
def write_moments(raw: Floats, which: Places, mean: Floats, variance: Floats) -> None:
    """Write means and variances."""
    for k in range(len(which)):
        own = raw[which[k]]
        total, squares = 0.0, 0.0
        for i in range(len(own)):
            total += own[i]
        centre = total / len(own)
        for i in range(len(own)):
            squares += (own[i] - centre) * (own[i] - centre)
        mean[k], variance[k] = centre, squares / len(own)


@compiled_any_order
def write_sums(
    raw: Floats, which: Places, mean: Floats, factor: Floats, limit: float, other: Floats, sums: Floats
) -> None:
    """Write to `sums` (k, 3), z being (raw - mean) factor within the limit: sums of z other, z z - 1, its square."""
    for k in range(len(which)):
        own, centre, scale = raw[which[k]], mean[k], factor[k]
        along, first, second = 0.0, 0.0, 0.0
        for i in range(len(own)):
            z = min(max((own[i] - centre) * scale, -limit), limit)
            beyond = z * z - 1.0
            along += z * other[i]
            first += beyond
            second += beyond * beyond
        sums[k, 0], sums[k, 1], sums[k, 2] = along, first, second


@compiled_any_order
def write_plain(raw: Floats, which: Places, mean: Floats, factor: Floats, lines: Lines) -> None:
    """Write (raw - mean) factor to `lines` (k, n)."""
    for k in range(len(which)):
        own, out, centre, scale = raw[which[k]], lines[k], mean[k], factor[k]
        for i in range(len(own)):
            out[i] = (own[i] - centre) * scale


@compiled_any_order
def write_squares(
    raw: Floats,
    which: Places,
    mean: Floats,
    factor: Floats,
    limit: float,
    shift: Floats,
    share: Floats,
    lines: Lines,
) -> None:
    """Write (z z - shift) share to `lines` (k, n), with z = (raw - mean) factor held within the limit."""
    for k in range(len(which)):
        own, out, centre, scale = raw[which[k]], lines[k], mean[k], factor[k]
        taken, stretched = shift[k], share[k]
        for i in range(len(own)):
            z = min(max((own[i] - centre) * scale, -limit), limit)
            out[i] = (z * z - taken) * stretched


@compiled_any_order
def write_cut(
    raw: Floats, which: Places, mean: Floats, low: Floats, high: Floats, deviations: Floats, lines: Lines
) -> None:
    """Write to `lines` (k, n) the lines of `raw` less their means, cut below `low` and above `high`, and centred again.

    They are divided by their largest size, `low` and `high` being attained; what is constant becomes zero. Their
    standard deviations are written to `deviations` (k,).
    """
    for k in range(len(which)):
        own, out, centre, least, most = raw[which[k]], lines[k], mean[k], low[k], high[k]
        total, squares = 0.0, 0.0
        for i in range(len(own)):
            z = min(max(own[i] - centre, least), most)
            total += z
            squares += z * z
        middle = total / len(own)
        largest = max(most - middle, middle - least)
        factor = 1.0 / largest if largest > 0.0 else 0.0
        deviations[k] = factor * np.sqrt(max(squares / len(own) - middle * middle, 0.0))
        for i in range(len(own)):
            out[i] = (min(max(own[i] - centre, least), most) - middle) * factor


@compiled_any_order
def write_levels(codes: Floats, levels: Places, low: Floats, high: Floats, lines: Lines) -> None:
    """Write to `lines` (k, n) for each of the levels (k,) `high` (k,) where the codes (n,) are it, `low` elsewhere."""
    for k in range(len(levels)):
        level, other, own, out = float(levels[k]), low[k], high[k], lines[k]
        for i in range(len(codes)):
            out[i] = own if codes[i] == level else other


@compiled_any_order
def write_above(lines: Lines, which: Places, factor: Floats, above: Lines) -> None:
    """Write to `above` (k, n) what of the lines is above zero, times `factor` (k,)."""
    for k in range(len(which)):
        own, out, scale = lines[which[k]], above[k], lines.dtype.type(factor[k])
        zero = own[0] - own[0]
        for i in range(len(own)):
            out[i] = max(own[i], zero) * scale


# Columns that lie side by side, centred, scaled and written as rows in one pass.


# Rows that are written together: their lines of memory stay in the nearest cache.
_ROWS = 64


@compiled
def turn(columns: Floats, mean: Floats, factor: Floats, rows: Floats) -> None:
    """Write (columns[j, i] - mean[j]) factor[j] to rows[i, j]."""
    count = columns.shape[1]
    for start in range(0, count, _ROWS):
        stop = min(start + _ROWS, count)
        for j in range(len(columns)):
            own, centre, scale = columns[j], mean[j], factor[j]
            for i in range(start, stop):
                rows[i, j] = (own[i] - centre) * scale


# Sums by leaf and code, for trees.


@compiled
def add_histograms(
    codes: NDArray[np.uint8], place: Integers, left: Floats, curvature: Floats, sums: Floats
) -> None:
    """Add what is left of treatment, its curvature and the count of rows to those of every leaf, column and code.

    `sums` is (leaves, d, codes, 3).
    """
    for j in range(len(codes)):
        for i in range(len(place)):
            found = sums[place[i]][j][codes[j][i]]
            found[0] += left[i]
            found[1] += curvature[i]
            found[2] += 1.0
