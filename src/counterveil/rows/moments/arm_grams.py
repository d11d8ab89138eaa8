"""Second moments of covariates and outcome in every arm, which together cost what one matrix does.

A row of a private record, made by `ScaledRows`, is

    w = (sqrt(a), z, sqrt(b) v),    |w|^2 <= a + |z|^2 + b,
    released: (1/n) times the sum of w w' over the rows of every arm,

with z the standardised covariates (length at most sqrt(L), where L is `standard.squared_length`), v the
outcome less a centre in parts of a unit, clipped to [-1, 1], and a and b public or released numbers that
weigh the constant and the outcome. n is the public number of rows in all arms.

Out come the noisy matrices of (1, z, v)(1, z, v)', one for each arm, with sqrt(a) and sqrt(b) divided out,
and the standard deviation of the noise of one entry off the diagonal.

Why the price is that of one matrix: a row is in one arm alone. Replacing one row therefore changes the upper
triangles of all arms together, entries off the diagonal times the root of two, by at most sqrt(2) (a + L + b)
/ n in Euclidean length. Rows are added in whole steps, so that sums are exact.
Proof: `rows/moments/arm_grams.proof.md` (a), which extends `rows/moments/free_gram.proof.md`.
"""

# Proof: arm_grams.proof.md

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.data import Study, Sums
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import exact_arm_grams, grid_bits
from counterveil.rows.moments.grams import OFF_DIAGONAL, free_gram, symmetric, triangle
from counterveil.rows.moments.scaled_rows import ScaledRows
from counterveil.rows.records import Records, TableRecords
from counterveil.session import Gate


def arm_gram_sums(records: TableRecords, rows: ScaledRows, bits: int) -> Sums:
    """Return the sums of w w' over the rows of every arm, in steps of 2**-bits squared."""
    root_a = sqrt(rows.constant)
    root_b = sqrt(rows.outcome)

    def blocks() -> Iterator[tuple[Floats, Floats]]:
        for u, arm, v in rows.blocks(records):
            outcome = root_b * np.clip(np.nan_to_num(v), -1.0, 1.0)
            yield arm, np.vstack((np.full(len(outcome), root_a), u[:, 1:].T, outcome)).T

    return exact_arm_grams(blocks(), bits, arms_of(records.table.study))


def arms_of(study: Study) -> int:
    """Return how many arms a study has."""
    return 2 if study.arms is None else len(study.arms)


def release_arm_grams(gate: Gate, records: Records, rows: ScaledRows) -> tuple[Floats, float]:
    """Return the Grams of all arms, (arms, m + 1, m + 1), and the noise of an entry between features.

    They are sums of (1, z, v) (1, z, v)' over the rows of an arm, divided by the number of all rows. The
    noise of an entry with the constant is that of one between features over sqrt(a), with the outcome over
    sqrt(b).
    """
    n = records.count
    root_a = sqrt(rows.constant)
    root_b = sqrt(rows.outcome)

    def values() -> list[Fraction]:
        bits = grid_bits(max(rows.standard.limit, root_a, root_b))
        totals = records.run(arm_gram_sums, rows, bits)
        return [value for total in totals for value in triangle(total, Fraction(1, n * 4**bits))]

    squared_max_norm = (
        Fraction(rows.standard.squared_length) + Fraction(rows.constant) + Fraction(rows.outcome)
    )
    released = gate.release_vector("gram", values, free_gram(n, squared_max_norm))
    grams = symmetric(released.floats().reshape(arms_of(records.study), -1))
    lengths = np.array([root_a, *[1.0] * (grams.shape[1] - 2), root_b])
    return grams / np.outer(lengths, lengths), sqrt(released.variance) / float(OFF_DIAGONAL)
