"""Numbers and divisions of rows that anybody can compute again, made of a fixed sequence and of no data.

They serve public choices and quadrature. They protect nothing and must never serve as noise. Two constants that many
methods share stand here too.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from counterveil.numerics.arrays import Floats, Indices

# Lower bound on an arm's share of people, whatever its noisy estimate says: a smaller arm cannot be compared anyway.
LEAST_SHARE = Fraction(1, 50)
# A declared bound on confounding is kappa sd(y) / (this times sd(t)).
LEFT_OF_TREATMENT = 0.75

# Weyl increment of splitmix64 (Steele, Lea and Flood 2014), the two multipliers of its finalizer, and the constant
# that spreads seeds.
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FIRST_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_MULTIPLIER = np.uint64(0x94D049BB133111EB)
_SEED_MULTIPLIER = np.uint64(0xD1342543DE82EF95)


def _splitmix64(positions: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the outputs of splitmix64 at these positions of its sequence; no two positions have the same."""
    with np.errstate(over="ignore"):
        bits = positions * _INCREMENT  # modulo 2**64
        bits = (bits ^ (bits >> np.uint64(30))) * _FIRST_MULTIPLIER
        bits = (bits ^ (bits >> np.uint64(27))) * _SECOND_MULTIPLIER
        return np.asarray(bits ^ (bits >> np.uint64(31)))


def public_uniforms(rows: int, columns: int, seed: int) -> Floats:
    """Return (rows, columns) numbers in (0, 1) that depend on their position and the seed alone."""
    with np.errstate(over="ignore"):
        first = np.uint64(seed) * _SEED_MULTIPLIER
        positions = np.arange(1, rows * columns + 1, dtype=np.uint64) + first
    mantissa = (_splitmix64(positions) >> np.uint64(11)).astype(np.float64)
    return np.asarray((mantissa + 0.5) / 2.0**53).reshape(rows, columns)


def public_normals(rows: int, columns: int, seed: int) -> Floats:
    """Return (rows, columns) standard normal numbers, the quantiles of `public_uniforms`."""
    from scipy.special import ndtri  # loading it takes a fifth of a second

    return np.asarray(ndtri(public_uniforms(rows, columns, seed)))


def shuffled(rows: int) -> Indices:
    """Return the row indices 0..rows-1 in a fixed order that depends on their number alone.

    They are sorted by the output of splitmix64, so that data that come sorted, or in a pattern, are spread evenly over
    folds although nothing is drawn.
    """
    return np.argsort(_splitmix64(np.arange(1, rows + 1, dtype=np.uint64)), kind="stable").astype(np.intp)


def two_parts(rows: int, first: int) -> tuple[Indices, Indices]:
    """Return `first` of the indices and the others, each in ascending order."""
    order = shuffled(rows)
    return np.sort(order[:first]), np.sort(order[first:])


def fold_rows(rows: int, folds: int) -> list[Indices]:
    """Return the indices of every fold, in ascending order; sizes differ by one at most."""
    return [np.sort(fold) for fold in np.array_split(shuffled(rows), folds)]
