"""The loop behind `balance`: sums of columns and of their squares, for both arms and two weights in one pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats, Integers, compiled


@compiled
def add_moments(
    values: Floats,
    treated: NDArray[np.bool_],
    one: Floats,
    other: Floats,
    centre: Floats,
    sums: Floats,
    squares: Floats,
) -> None:
    """Add both weighted sums of values - centre, and of its squares, to those of each row's arm.

    `sums` and `squares` are (4, d): the treated under weights `one`, the others, and both again under `other`.
    """
    for i in range(len(values)):
        arm = 0 if treated[i] else 1
        row = values[i]
        first, second = sums[arm], sums[arm + 2]
        first_squares, second_squares = squares[arm], squares[arm + 2]
        a, b = one[i], other[i]
        for j in range(len(row)):
            x = row[j] - centre[j]
            first[j] += a * x
            second[j] += b * x
            first_squares[j] += a * x * x
            second_squares[j] += b * x * x


# The loops behind `pairing.covariate_pairs`: cut an arm into small cells, pair the rows of each.


Flat = NDArray[np.float64]


@compiled
def widest(flat: Flat, columns: int, rows: Integers, low: int, high: int, sample: int) -> int:
    """Return the column with the largest variance over rows[low:high], or over every few of them."""
    stride = max(1, (high - low) // sample)
    best, answer = -1.0, 0
    for j in range(columns):
        total, squares, count = 0.0, 0.0, 0
        origin = flat[rows[low] * columns + j]
        for i in range(low, high, stride):
            value = flat[rows[i] * columns + j] - origin
            total += value
            squares += value * value
            count += 1
        centred_squares = squares - total * total / count
        if centred_squares > best:
            best, answer = centred_squares, j
    return answer


@compiled
def split(
    flat: Flat, columns: int, rows: Integers, values: Flat, low: int, high: int, place: int, column: int
) -> None:
    """Reorder rows[low:high] so that rows[place] is where a sort by (value, row) would put it (quickselect)."""
    # Rows lie far apart in memory: each is looked up once, and its value moves with it.
    for i in range(low, high):
        values[i] = flat[rows[i] * columns + column]
    left, right = low, high - 1
    while left < right:
        at = (left + right) // 2
        middle, pivot = rows[at], values[at]
        i, j = left, right
        while i <= j:
            while values[i] < pivot or (values[i] == pivot and rows[i] < middle):
                i += 1
            while values[j] > pivot or (values[j] == pivot and rows[j] > middle):
                j -= 1
            if i <= j:
                rows[i], rows[j] = rows[j], rows[i]
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if place <= j:
            right = j
        elif place >= i:
            left = i
        else:
            return


@compiled
def cut(
    flat: Flat,
    columns: int,
    cell: int,
    sample: int,
    rows: Integers,
    values: Flat,
    stack: Integers,
    starts: Integers,
) -> int:
    """Return the number of cells; rows are reordered cell by cell, `starts` are the cells' first places and n.

    Cells are halved until they have at most `cell` rows, the lower half first, so `starts` ascends.
    """
    top, cells = 2, 0
    stack[0], stack[1] = 0, len(rows)
    while top > 0:
        top -= 2
        low, high = stack[top], stack[top + 1]
        if high - low <= cell:
            starts[cells] = low
            cells += 1
            continue
        place = (low + high) // 2
        column = widest(flat, columns, rows, low, high, sample)
        split(flat, columns, rows, values, low, high, place, column)
        stack[top], stack[top + 1] = place, high
        stack[top + 2], stack[top + 3] = low, place
        top += 4
    starts[cells] = len(rows)
    return cells


@compiled
def pair_up(
    flat: Flat,
    columns: int,
    rows: Integers,
    starts: Integers,
    pairs: Integers,
    near: Flat,
    distance: Flat,
    free: Integers,
) -> int:
    """Return how many entries of `pairs` were written: the two rows of each pair, one pair after the other."""
    used = 0
    for c in range(len(starts) - 1):
        low, size = starts[c], starts[c + 1] - starts[c]
        # The cell's rows are brought together first, for they lie far apart in memory.
        for a in range(size):
            for j in range(columns):
                near[a * columns + j] = flat[rows[low + a] * columns + j]
        for a in range(size):
            free[a] = 1
            for b in range(a):
                total = 0.0
                for j in range(columns):
                    gap = near[a * columns + j] - near[b * columns + j]
                    total += gap * gap
                distance[a * size + b] = total
                distance[b * size + a] = total
        for _ in range((size + 1) // 2):
            best, one, other = np.inf, -1, -1
            for a in range(size):
                if free[a] == 1:
                    for b in range(a):
                        if free[b] == 1 and distance[a * size + b] < best:
                            best, one, other = distance[a * size + b], a, b
            if one < 0:
                # One row is left over: it joins the row nearest to it, which then is in two pairs.
                for a in range(size):
                    if free[a] == 1:
                        one = a
                for b in range(size):
                    if b != one and distance[one * size + b] < best:
                        best, other = distance[one * size + b], b
            pairs[used], pairs[used + 1] = rows[low + one], rows[low + other]
            used += 2
            free[one], free[other] = 0, 0
    return used
