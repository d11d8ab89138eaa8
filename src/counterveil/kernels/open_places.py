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

from counterveil.kernels.compilation import bit_scans, compiled

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
