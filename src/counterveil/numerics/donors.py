"""Which places of a line are open: bits, and over them bits that say which words of bits have one.

A word holds 32 places. Level 0 has a bit for every place, each level above a bit for every word of the
level below, up to a level of one word. The nearest open place on either side is found by going up while
words are empty and down again; closing a place clears its bit and those of words that become empty. Level
0 takes an eighth of a byte a place, so all of it stays in cache where links from place to place would not.
The first and the last place are never closed, so that a search always ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import bit_scans, compiled, is_compiled, run

_ALL = 2**32 - 1

highest_bit, lowest_bit = bit_scans()


def all_open(places: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return the words of all levels when every place is open, and where each level starts."""
    parts, starts, start = [], [], 0
    while True:
        words = np.full(-(-places // 32), _ALL, np.uint32)
        words[-1] = _ALL >> (-places % 32)
        parts.append(words)
        starts.append(start)
        if len(words) == 1:
            return np.concatenate(parts), np.array(starts, np.int64)
        start, places = start + len(words), len(words)


@compiled
def open_at_or_below(words: NDArray[np.uint32], levels: NDArray[np.int64], place: int) -> int:
    """Return the last open place at or before this one."""
    level = 0
    word = place >> 5
    bits = words[word] & ((2 << (place & 31)) - 1)
    while bits == 0:
        level += 1
        place = word - 1
        word = place >> 5
        bits = words[levels[level] + word] & ((2 << (place & 31)) - 1)
    place = (word << 5) + highest_bit(bits)
    while level > 0:
        level -= 1
        place = (place << 5) + highest_bit(words[levels[level] + place])
    return place


@compiled
def open_at_or_above(words: NDArray[np.uint32], levels: NDArray[np.int64], place: int) -> int:
    """Return the first open place at or after this one."""
    level = 0
    word = place >> 5
    bits = words[word] & (_ALL << (place & 31))
    while bits == 0:
        level += 1
        place = word + 1
        word = place >> 5
        bits = words[levels[level] + word] & (_ALL << (place & 31))
    place = (word << 5) + lowest_bit(bits)
    while level > 0:
        level -= 1
        place = (place << 5) + lowest_bit(words[levels[level] + place])
    return place


@compiled
def close(words: NDArray[np.uint32], levels: NDArray[np.int64], place: int) -> None:
    """Close an open place."""
    for level in range(len(levels)):
        word = levels[level] + (place >> 5)
        words[word] &= ~(1 << (place & 31))
        if words[word] != 0:
            break
        place >>= 5


# Rows in the order of a score: a radix sort, linear in the number of rows, equal scores in row order.
#
# The bits of a float64, with the sign bit flipped for positive numbers and all bits flipped for
# negative ones, are unsigned integers in the same order as the numbers. They are sorted byte by
# byte, less significant ones first; each pass keeps the order of the passes before it, so equal scores
# stay in the order of their rows. A byte that is the same in all rows costs nothing. The lowest bytes
# rarely decide: they are left out, and keys still out of order are moved one by one. Where that takes
# many moves the keys are sorted again by all bytes.


# Below this a comparison sort is as fast.
SMALLEST_RADIX = 2048
_SIGN = -(2**63)
# Bytes left out at first, and how many moves a row then make all bytes worth their passes.
_LEFT_OUT = 3
_MOVES = 2


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
    run(to_keys, (score.view(np.int64), treated), (keys.view(np.int64), marks))
    counts = np.zeros((8, 256), np.int64)
    run(count_bytes, (keys,), (counts,))
    for first in (_LEFT_OUT, 0):
        if run(radix, (first, counts), (keys, marks, spare_keys, spare_marks)) % 2:
            keys, marks, spare_keys, spare_marks = spare_keys, spare_marks, keys, marks
        if run(settle, (_MOVES * n,), (keys, marks)):
            break
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
def count_bytes(keys: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    """Add how often each value of each byte occurs."""
    for i in range(len(keys)):
        key = keys[i]
        for byte in range(8):
            counts[byte, (key >> np.uint64(8 * byte)) & np.uint64(255)] += 1


@compiled
def radix(
    first: int,
    counts: NDArray[np.int64],
    keys: NDArray[np.uint64],
    marks: NDArray[np.int32],
    other_keys: NDArray[np.uint64],
    other_marks: NDArray[np.int32],
) -> int:
    """Sort by the bytes from `first` on; return the number of passes.

    After an odd number of passes the keys and marks are in the other pair.
    """
    n = len(keys)
    passes = 0
    for byte in range(first, 8):
        shift = np.uint64(8 * byte)
        if counts[byte, (keys[0] >> shift) & np.uint64(255)] == n:
            continue
        starts = np.cumsum(counts[byte]) - counts[byte]
        for i in range(n):
            digit = (keys[i] >> shift) & np.uint64(255)
            place = starts[digit]
            starts[digit] = place + 1
            other_keys[place] = keys[i]
            other_marks[place] = marks[i]
        keys, other_keys = other_keys, keys
        marks, other_marks = other_marks, marks
        passes += 1
    return passes


@compiled
def settle(limit: int, keys: NDArray[np.uint64], marks: NDArray[np.int32]) -> bool:
    """Put keys that are almost in order in order; return False if more moves than the limit are needed."""
    moves = 0
    for i in range(1, len(keys)):
        key = keys[i]
        if keys[i - 1] <= key:
            continue
        mark, place = marks[i], i
        while place > 0 and keys[place - 1] > key:
            keys[place], marks[place] = keys[place - 1], marks[place - 1]
            place -= 1
        keys[place], marks[place] = key, mark
        moves += i - place
        if moves > limit:
            return False
    return True
