"""Noisy means and mean squares of features, with those of treatment and outcome or with the share treated.

Of private records (x, t, y), with features x_j and outcome y in half ranges around the middle of their
declared ranges, in [-1, 1], and t in {0, 1}, one vector of means over the n records holds

    x_j,    k x_j^2 where x_j has more than two values,    w (2t - 1),    w y,    w k y^2,    k = 1.665,

and `release_look` a vector without outcomes, of some features and perhaps the share treated. Released with
Gaussian noise, they give centres and standard deviations by which later releases are scaled. w is a public
weight that gives treatment and outcome more or less precision than a feature; privacy holds for every w.

Why it is right: for x in [-1, 1] the pair (x, 1.665 x^2) moves by at most 2 in Euclidean length where a
record is replaced, as x alone does: squares come free. So the vector moves by at most sqrt(4 p + 8 w^2) / n
for p features (flags of one covariate count as two at most), without outcomes by sqrt(4 p + 4 w^2) / n
(`look_moments`).
Proof: `rows/moments/record_moments.proof.md`, and `rows/moments/arm_grams.proof.md` (b) for `look_moments`.
"""

# Proof: record_moments.proof.md
# Proof: arm_grams.proof.md

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Sums
from counterveil.numerics.arrays import Floats, sqrt_up
from counterveil.numerics.products import WholeSum, steps
from counterveil.rows.moments.scores import TERM_BITS
from counterveil.rows.moments.sensitivity import SQUARE_WEIGHT, record_moments
from counterveil.rows.records import MIDDLE, Records, TableRecords
from counterveil.session import Gate

# The shift of outcomes to steps of 2**-20 of half the range.
_SHIFT = 3


def look_moments(rows: int, features: int, weight: Fraction) -> Fraction:
    """Return the joint l2 sensitivity of the means of (x_j, 1.665 x_j^2) and of weight * (2t - 1), x_j in [-1, 1].

    `features` counts the features as in `record_moments`.
    """
    return sqrt_up(4 * features + 4 * weight**2) / rows


def feature_moments(records: TableRecords, features: bool) -> Sums:
    """Return sums of features and of their squares, if wanted, and of (2t - 1, y, y^2), in steps of 2**-TERM_BITS."""
    first = WholeSum()
    second = WholeSum()
    treatment_and_outcome = WholeSum()
    for block in records.parts():
        x = np.zeros((1, 0), dtype=np.int64)
        if features:
            x = steps(block.x, TERM_BITS).astype(np.int64)
        outcome = (block.steps - MIDDLE) >> _SHIFT
        first.add(x.sum(axis=0))
        second.add((x * x).sum(axis=0))
        signed_treatment = 2 * int(np.count_nonzero(block.treated)) - len(outcome)
        treatment_and_outcome.add(np.array([signed_treatment, outcome.sum(), (outcome * outcome).sum()]))
    return first.whole(), second.whole(), treatment_and_outcome.whole()


@dataclass(frozen=True, slots=True)
class RecordMeans:
    """Released means and mean squares of features and outcome and the mean of 2t - 1, with their noise.

    Attributes
    ----------
    means, squares : ndarray of shape (p,)
        Of features; the square of one that is -1 or 1 is 1.
    treatment : float
        Mean of 2t - 1.
    outcome, outcome_square : float
        Of y, in units of half the range.
    sd : float
        Noise of a feature's mean; a mean square's is this over SQUARE_WEIGHT.
    weight : float
        Treatment and outcome have the noise `sd` over this.
    """

    means: Floats
    squares: Floats
    treatment: float
    outcome: float
    outcome_square: float
    sd: float
    weight: float


def release_moments(gate: Gate, records: Records, counted: int) -> RecordMeans:
    """Return first and second moments of every column, released under the name "centre".

    Parameters
    ----------
    gate : Gate
        Where they are let through.
    records : Records
        The records.
    counted : int
        Number of features that bound how far one record moves the vector (`counted_features`). With 0
        features are left out: their moments are public.
    """
    n = records.count
    two_valued = records.features.two_valued if counted else np.zeros(0, dtype=np.bool_)
    weight = Fraction(round(1000 * sqrt(counted / 8)), 1000) if counted else Fraction(1)

    def values() -> list[Fraction]:
        first, second, (t, y, yy) = records.run(feature_moments, counted > 0)
        step = Fraction(1, n << TERM_BITS)
        square_step = SQUARE_WEIGHT * step / 2**TERM_BITS
        of_features = [total * step for total in first]
        of_features += [
            total * square_step for total, is_one in zip(second, two_valued, strict=True) if not is_one
        ]
        return [*of_features, weight * Fraction(t, n), weight * y * step, weight * yy * square_step]

    released = gate.release_vector("centre", values, record_moments(n, counted, weight))
    noisy = released.floats()
    size = len(two_valued)
    squares = np.ones(size)
    squares[~two_valued] = noisy[size:-3] / float(SQUARE_WEIGHT)
    t_mean, y_mean, y_square = noisy[-3:] / float(weight)
    return RecordMeans(
        means=noisy[:size],
        squares=squares,
        treatment=t_mean,
        outcome=y_mean,
        outcome_square=y_square / float(SQUARE_WEIGHT),
        sd=sqrt(released.variance),
        weight=float(weight),
    )


@dataclass(frozen=True, slots=True)
class FeatureMeans:
    """Released means and mean squares of features, perhaps with the share treated.

    Attributes
    ----------
    means, squares : ndarray of shape (p,)
        Of features; 0 and 1 of those that were not asked for.
    sd : float
        Noise of a mean.
    treated, treated_sd : float
        Share treated and its noise; one half and none where it was not released.
    """

    means: Floats
    squares: Floats
    sd: float
    treated: float = 0.5
    treated_sd: float = 0.0

    @property
    def square_sd(self) -> float:
        """Noise of a mean square."""
        return self.sd / float(SQUARE_WEIGHT)


def release_look(
    gate: Gate, name: str, records: Records, counted: int, chosen: NDArray[np.bool_], share: bool
) -> FeatureMeans:
    """Return moments of some features and perhaps the share treated.

    Parameters
    ----------
    gate, name : Gate, str
        Where they are let through, and what the plan calls them.
    records : Records
        The records.
    counted : int
        How many of the chosen features bound how far one record moves the vector.
    chosen : ndarray of bool, shape (p,)
        Which features.
    share : bool
        Whether the share treated is released too.
    """
    n = records.count
    two_valued = records.features.two_valued
    size = len(two_valued)
    weight = Fraction(round(1000 * sqrt(max(counted, 1) / 8)), 1000) if share else Fraction(0)
    columns = np.flatnonzero(chosen)
    squared = [column for column in columns if not two_valued[column]]

    def values() -> list[Fraction]:
        first, second, (signed_treatment, _, _) = records.run(feature_moments, True)
        step = Fraction(1, n << TERM_BITS)
        sums = [int(first[column]) * step for column in columns]
        sums += [int(second[column]) * step * SQUARE_WEIGHT / 2**TERM_BITS for column in squared]
        return sums + ([weight * Fraction(signed_treatment, n)] if share else [])

    released = gate.release_vector(name, values, look_moments(n, counted, weight))
    noisy = released.floats()
    sd = sqrt(released.variance)
    means = np.zeros(size)
    squares = np.ones(size)
    means[columns] = noisy[: len(columns)]
    squares[squared] = noisy[len(columns) : len(columns) + len(squared)] / float(SQUARE_WEIGHT)
    if not share:
        return FeatureMeans(means, squares, sd)
    treated = (1 + noisy[-1] / float(weight)) / 2
    return FeatureMeans(means, squares, sd, treated=treated, treated_sd=sd / float(weight) / 2)
