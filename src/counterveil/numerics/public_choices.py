"""Normal and uniform numbers that anybody can compute again: a fixed sequence, for public choices and quadrature.

They protect nothing and must never serve as noise. Here too is the least share of people that methods reckon with.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats, Indices

# Shares of an arm are never taken below this, whatever the noise says: a smaller arm cannot be compared anyway.
LEAST_SHARE = Fraction(1, 50)
# A declared bound on confounding is kappa sd(y) / (this times sd(t)).
LEFT_OF_TREATMENT = 0.75

_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def public_uniforms(rows: int, columns: int, seed: int) -> Floats:
    """Return (rows, columns) numbers in (0, 1) from a fixed integer mixing of their place and the seed."""
    with np.errstate(over="ignore"):
        place = np.arange(1, rows * columns + 1, dtype=np.uint64) + np.uint64(seed) * np.uint64(
            0xD1342543DE82EF95
        )
        z = place * np.uint64(_STEP)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(_FIRST)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(_SECOND)
        z = z ^ (z >> np.uint64(31))
    return np.asarray(((z >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53).reshape(rows, columns)


def public_normals(rows: int, columns: int, seed: int) -> Floats:
    """Return (rows, columns) standard normal numbers made of `public_uniforms`."""
    from scipy.special import ndtri  # loaded by those who need it: it takes a fifth of a second

    return np.asarray(ndtri(public_uniforms(rows, columns, seed)))


# Rows divided into sets by their index alone, so that the division is public.
#
# Indices are sorted by a fixed mixing of their bits (Steele, Lea and Flood's splitmix64): rows that come sorted, or in
# a pattern, are spread over the sets all the same, and nothing is drawn.


_STEP_split = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
_SHIFTS = (np.uint64(30), np.uint64(27), np.uint64(31))


def _mixed(first: int, count: int) -> NDArray[np.uint64]:
    """Return the mixed bits of the indices first..first+count-1; no two indices have the same."""
    mixed = (np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)) * _STEP_split  # modulo 2**64
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=False):
        mixed = (mixed ^ (mixed >> shift)) * factor
    return np.asarray(mixed ^ (mixed >> _SHIFTS[2]))


def shuffled(rows: int) -> Indices:
    """Return the row indices 0..rows-1 in a fixed order that depends on their number alone."""
    return np.argsort(_mixed(0, rows), kind="stable").astype(np.intp)


def two_parts(rows: int, first: int) -> tuple[Indices, Indices]:
    """Return `first` of the indices and the others, each in ascending order."""
    order = shuffled(rows)
    return np.sort(order[:first]), np.sort(order[first:])


def fold_rows(rows: int, folds: int) -> list[Indices]:
    """Return the indices of every fold, in ascending order; sizes differ by one at most."""
    return [np.sort(part) for part in np.array_split(shuffled(rows), folds)]
