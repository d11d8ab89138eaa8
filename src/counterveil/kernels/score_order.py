"""Rows in the order of a score: a radix sort, linear in the number of rows, equal scores in row order.

The bits of a float64, with the sign bit flipped for positive numbers and all bits flipped for
negative ones, are unsigned integers in the same order as the numbers. They are sorted byte by
byte, least significant first; each pass keeps the order of the passes before it, so equal scores
stay in the order of their rows. A byte that is the same in all rows costs nothing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.kernels.compilation import compiled, is_compiled, run

# Below this a comparison sort is as fast.
SMALLEST_RADIX = 2048
_SIGN = -(2**63)


def marks_by_score(
    score: NDArray[np.float64], treated: NDArray[np.bool_]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return (marks, scores) by ascending (score, row): row i is marked i if treated and -1-i if not.

    Scores are finite and there are fewer than 2**31 of them. Carrying the arm in the sign spares a
    random look-up per row later.
    """
    n = len(score)
    if n < SMALLEST_RADIX or not is_compiled(radix):
        rows = np.argsort(score, kind="stable").astype(np.int32)
        return np.where(treated[rows], rows, ~rows), score[rows]
    keys, spare_keys = np.empty(n, np.uint64), np.empty(n, np.uint64)
    marks, spare_marks = np.empty(n, np.int32), np.empty(n, np.int32)
    counts = np.zeros((8, 256), np.int64)
    run(to_keys, (score.view(np.int64), treated), (keys.view(np.int64), marks))
    if run(radix, (), (counts, keys, marks, spare_keys, spare_marks)) % 2:
        keys, marks = spare_keys, spare_marks
    bits = keys.view(np.int64)
    run(to_bits, (), (bits,))
    return marks, bits.view(np.float64)


@compiled
def to_keys(
    bits: NDArray[np.int64], treated: NDArray[np.bool_], keys: NDArray[np.int64], marks: NDArray[np.int32]
) -> None:
    """Write the sortable keys of floats given as bits, and the marks of their rows."""
    for i in range(len(bits)):
        bit = bits[i]
        if bit == _SIGN:
            bit = 0  # -0.0 and 0.0 are equal scores
        keys[i] = bit ^ ((bit >> 63) | _SIGN)
        marks[i] = i if treated[i] else -1 - i


@compiled
def to_bits(keys: NDArray[np.int64]) -> None:
    """Turn sortable keys back into the bits of floats, in place."""
    for i in range(len(keys)):
        keys[i] ^= _SIGN if keys[i] < 0 else -1


@compiled
def radix(
    counts: NDArray[np.int64],
    keys: NDArray[np.uint64],
    marks: NDArray[np.int32],
    other_keys: NDArray[np.uint64],
    other_marks: NDArray[np.int32],
) -> int:
    """Return the number of passes; after an odd number the sorted keys and marks are in the other pair."""
    n = len(keys)
    for i in range(n):
        key = keys[i]
        for byte in range(8):
            counts[byte, (key >> np.uint64(8 * byte)) & np.uint64(255)] += 1
    passes = 0
    for byte in range(8):
        shift = np.uint64(8 * byte)
        count = counts[byte]
        if count[(keys[0] >> shift) & np.uint64(255)] == n:
            continue
        start = 0
        for digit in range(256):
            start, count[digit] = start + count[digit], start
        for i in range(n):
            digit = (keys[i] >> shift) & np.uint64(255)
            place = count[digit]
            count[digit] = place + 1
            other_keys[place] = keys[i]
            other_marks[place] = marks[i]
        keys, other_keys = other_keys, keys
        marks, other_marks = other_marks, marks
        passes += 1
    return passes
