"""Rows divided into sets by their index alone, so that the division is public.

Indices are sorted by a fixed mixing of their bits (Steele, Lea and Flood's splitmix64): rows that come sorted, or in
a pattern, are spread over the sets all the same, and nothing is drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.intp]

_STEP = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def shuffled(rows: int) -> Indices:
    """Return the row indices 0..rows-1 in a fixed order that depends on their number alone."""
    mixed = (np.arange(rows, dtype=np.uint64) + np.uint64(1)) * _STEP  # modulo 2**64
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        mixed = (mixed ^ (mixed >> shift)) * factor
    return np.argsort(mixed ^ (mixed >> _SHIFTS[2]), kind="stable").astype(np.intp)


def two_parts(rows: int, first: int) -> tuple[Indices, Indices]:
    """Return `first` of the indices and the others, each in ascending order."""
    order = shuffled(rows)
    return np.sort(order[:first]), np.sort(order[first:])


def fold_rows(rows: int, folds: int) -> list[Indices]:
    """Return the indices of every fold, in ascending order; sizes differ by one at most."""
    return [np.sort(part) for part in np.array_split(shuffled(rows), folds)]
