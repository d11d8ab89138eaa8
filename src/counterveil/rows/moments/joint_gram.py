"""Noisy second moments of features, treatment and outcome together, in one matrix.

A row made of a private record (x, t, y), with y in half ranges around the middle of its declared range, is

    w = (u, sqrt(a) t~, sqrt(b) y~),    u = (1, z),    t~ = (t - p) / P,    y~ = clip((y - m) / h, -1, 1),

z being the features standardised by released centres and scales and shortened to |z|^2 <= L, p the released
share treated, m the released mean outcome, P and h bounds (`treatment_bound`, `outcome_bound`), and a and b
how much of a row's length treatment and outcome get. Out come the means of u u', u t, u y, t y, t^2 and y^2
(t and y centred, y in half ranges) and the standard deviation of each one's noise: all that linear models of
treatment and of outcome are fitted from.

Why it is right: |w|^2 <= 1 + L + a + b for every record, so that replacing one moves the upper triangle of
the mean of w w', off the diagonal times the root of two, by at most sqrt(2) (1 + L + a + b) / n.
Proof: `rows/moments/free_gram.proof.md`. The scaling shares out precision; privacy holds for every one.
"""

# Proof: free_gram.proof.md

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np

from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard
from counterveil.rows.moments.grams import release_products
from counterveil.rows.records import Records, TableRecords
from counterveil.session import Gate


@dataclass(frozen=True, slots=True)
class Scaling:
    """Released centres and bounds of treatment and outcome; outcomes are in units of half their range.

    Attributes
    ----------
    share, mean : float
        Share treated and mean outcome, which are subtracted.
    treatment_bound, outcome_bound : float
        Where what is left is clipped.
    a, b : float
        Squared lengths of treatment and outcome beside |u|^2.
    near_bound : bool
        Whether the mean outcome lies near an end of its range.
    variance, variance_sd : float
        Of the outcome before it is clipped, and the noise of that.
    """

    share: float
    mean: float
    treatment_bound: float
    outcome_bound: float
    a: float
    b: float
    near_bound: bool = False
    variance: float = 0.0
    variance_sd: float = 0.0

    def columns(self, t: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Return centred treatment and outcome in [-1, 1]."""
        outcome = np.clip((y - self.mean) / self.outcome_bound, -1.0, 1.0)
        return (t - self.share) / self.treatment_bound, outcome


@dataclass(frozen=True, slots=True)
class SecondMoments:
    """Released moments of u = (1, z), centred treatment and outcome, in the units of the latter two.

    Attributes
    ----------
    matrix : ndarray of shape (m, m)
        Mean of u u'.
    with_treatment, with_outcome : ndarray of shape (m,)
        Means of u t and of u y.
    treatment, both, outcome : float
        Means of t^2, t y and y^2.
    entry_sd, treatment_sd, outcome_sd, both_sd, square_sd : float
        Noise of an entry of the matrix off its diagonal, of u t, of u y, of t y and of y^2.
    """

    matrix: Floats
    with_treatment: Floats
    with_outcome: Floats
    treatment: float
    both: float
    outcome: float
    entry_sd: float
    treatment_sd: float
    outcome_sd: float
    both_sd: float
    square_sd: float


def joint_rows(records: TableRecords, standard: Standard, scaling: Scaling) -> Iterator[Floats]:
    """Yield (u, sqrt(a) t, sqrt(b) y) of all rows, a block at a time."""
    root_a = sqrt(scaling.a)
    root_b = sqrt(scaling.b)
    for u, t, y in records.models(standard):
        treatment, outcome = scaling.columns(t, y)
        yield np.vstack((u.T, root_a * treatment, root_b * outcome)).T


def release_gram(
    gate: Gate, records: Records, standard: Standard, scaling: Scaling, name: str = "gram"
) -> SecondMoments:
    """Return the released second moments of (u, sqrt(a) t, sqrt(b) y)."""
    m = records.features.size + 1
    root_a = sqrt(scaling.a)
    root_b = sqrt(scaling.b)
    squared_max_norm = Fraction(standard.squared_length) + 1 + Fraction(scaling.a) + Fraction(scaling.b)
    largest = max(standard.limit, root_a, root_b, 1.0)
    noisy, sd = release_products(
        gate,
        name,
        records,
        rows=joint_rows,
        arguments=(standard, scaling),
        largest=largest,
        squared_max_norm=squared_max_norm,
    )
    # Units of t~ and y~ in those of t and y.
    unit_t = scaling.treatment_bound / root_a
    unit_y = scaling.outcome_bound / root_b
    return SecondMoments(
        matrix=noisy[:m, :m],
        with_treatment=noisy[:m, m] * unit_t,
        with_outcome=noisy[:m, m + 1] * unit_y,
        treatment=float(noisy[m, m]) * unit_t**2,
        both=float(noisy[m, m + 1]) * unit_t * unit_y,
        outcome=float(noisy[m + 1, m + 1]) * unit_y**2,
        entry_sd=sd,
        treatment_sd=sd * unit_t,
        outcome_sd=sd * unit_y,
        both_sd=sd * unit_t * unit_y,
        square_sd=sqrt(2.0) * sd * unit_y**2,
    )
