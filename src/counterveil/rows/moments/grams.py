"""Noisy second moments (1/n) sum w w' of private records' rows w, from which regressions are solved.

A rule of public or released numbers makes of each of n records a row w with |w|^2 <= L, and the upper
triangle

    (1/n) sum w_i^2,    r (1/n) sum w_i w_j for i < j,    r = 1.41421356, just below the root of two,

is released with Gaussian noise. In: the records, the rule and L. Out: the symmetric matrix with r divided
out, in units of w times w, and the standard deviation of its noise off the diagonal (on it, larger by r).

Why it is right: with r = sqrt(2) the triangle is as long as the matrix in the Frobenius norm, and for two
rows

    |v v' - w w'|^2 = |v|^4 + |w|^4 - 2 (v.w)^2 <= 2 L^2,

so that replacing a record moves it by at most sqrt(2) L / n (`free_gram`). Rows are truncated to whole steps
and added exactly; `LENGTH_SLACK` covers the rounding of lengths.
Proof: `rows/moments/free_gram.proof.md`.
"""

# Proof: free_gram.proof.md

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats, sqrt_up
from counterveil.numerics.products import exact_gram, grid_bits, upper_places
from counterveil.rows.moments.sensitivity import LENGTH_SLACK
from counterveil.rows.records import Records, TableRecords
from counterveil.session import Gate

# Entries above the diagonal are weighted with this, just below the root of two.
OFF_DIAGONAL = Fraction(141_421_356, 100_000_000)


def free_gram(rows: int, squared_max_norm: Fraction) -> Fraction:
    """Return the l2 sensitivity of (diagonal, OFF_DIAGONAL * upper triangle) of the mean of w w'.

    |w|^2 <= squared_max_norm. Where every row is in one of two arms, it is that of both arms' means together.
    """
    return sqrt_up(Fraction(2)) * squared_max_norm * (1 + LENGTH_SLACK) / rows


# Rows w of a table, in blocks of at most 4096.
Rows = Callable[..., Iterator[Floats]]


def product_sums(records: TableRecords, rows: Rows, bits: int, *arguments: Any) -> Sums:
    """Return the sum of w w' over the rows w that `rows` makes of the records and the arguments."""
    return (exact_gram(rows(records, *arguments), bits),)


def release_products(
    gate: Gate,
    name: str,
    records: Records,
    rows: Rows,
    arguments: tuple[Any, ...],
    largest: float,
    squared_max_norm: Fraction,
) -> tuple[Floats, float]:
    """Return the released mean of w w' over the rows w, and its noise off the diagonal.

    Parameters
    ----------
    gate, name : Gate, str
        Where it is let through, and what the plan calls it.
    records : Records
        The records.
    rows : callable
        Makes blocks of rows w of a table's records and the arguments; a function of a module.
    arguments : tuple
        Public or released numbers.
    largest : float
        Bound of every entry of w.
    squared_max_norm : Fraction
        Bound L of |w|^2.
    """
    count = records.count

    def values() -> list[Fraction]:
        bits = grid_bits(largest)
        (total,) = records.run(product_sums, rows, bits, *arguments)
        return triangle(total, Fraction(1, count * 4**bits))

    released = gate.release_vector(name, values, free_gram(count, squared_max_norm))
    return symmetric(released.floats()), sqrt(released.variance) / float(OFF_DIAGONAL)


def triangle(total: NDArray[Any], unit: Fraction) -> list[Fraction]:
    """Return the upper triangle of a matrix of whole numbers in these units, for release."""
    return [(unit if i == j else unit * OFF_DIAGONAL) * total[i, j] for i, j in upper_places(len(total))]


def symmetric(triangles: Floats) -> Floats:
    """Return the matrices of released triangles, which lie along the last axis."""
    size = isqrt(2 * triangles.shape[-1])  # of m (m + 1) / 2 numbers
    matrices = np.zeros((*triangles.shape[:-1], size, size))
    for entry, (i, j) in enumerate(upper_places(size)):
        weight = 1.0 if i == j else float(OFF_DIAGONAL)
        matrices[..., i, j] = matrices[..., j, i] = triangles[..., entry] / weight
    return matrices
