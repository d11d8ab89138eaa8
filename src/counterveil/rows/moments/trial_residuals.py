"""Outcomes of a trial less what one direction of covariates predicts of them, summed by arm, and its moments.

With p a row's place along a direction v of its standardised covariates z, clipped to [-c, c],

    g = slope (p - middle), cut to [-h, h] and rounded to whole steps,    r = f (y - g + h),

r lies in [0, f (B + 2 h)] for outcomes y in a range of width B (y and B in units of the outcome, a step being
1 / 2^24 of the range; slope and h in half ranges; f a factor without unit). The contrast of both arms is that
of r in place of y: since a prediction from covariates takes off the same on average in both arms of a trial,
it changes the variance and not what is estimated. Direction, slope, middle, h and f were released before. The
direction is made of second moments of (u, sqrt(b) y~) with u = (1, z) and y~ a scaled outcome in [-1, 1], the
slope of those of (1, p / c, y~); both matrices are released here.

Why it is right: g is a function of a row's own covariates and of released numbers, cut to [-h, h], so that r
is one row's number in a known range; the bounds of the centred contrast hold with f (B + 2 h) in place of B.
A poor prediction costs length of the interval, not validity.
Proof: `rows/moments/centred_contrast.proof.md`, and for the moments `rows/moments/free_gram.proof.md`.
"""

# Proof: centred_contrast.proof.md

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Sums
from counterveil.data.domains import outcome_unit
from counterveil.numerics.arm_totals import TwoArms, arm_totals
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard, projected
from counterveil.rows.moments.centred_contrast import PrivateArms
from counterveil.rows.moments.grams import release_products
from counterveil.rows.moments.joint_gram import Scaling
from counterveil.rows.records import Part, Records, TableRecords
from counterveil.session import Gate

# Outcomes are whole steps in [0, 2**24], half their range is 2**23 of them.
HALF_RANGE = 1 << 23


@dataclass(frozen=True, slots=True)
class Direction:
    """A direction of standardised covariates along which outcomes rise, and where rows are clipped along it.

    Attributes
    ----------
    values : ndarray of float64, (features,)
        v, of length one; zeros where nothing stands out of the noise.
    clip : float
        c, in standard deviations.
    length : float
        Length of the moments or coefficients that it was made of.
    covariance : float
        Of outcomes with places along it, as far as the release that found it tells.
    """

    values: Floats
    clip: float
    length: float
    covariance: float

    def places(self, u: Floats) -> Floats:
        """Return every row's place along the direction, clipped."""
        return np.asarray(np.clip(projected(u[:, 1:], self.values), -self.clip, self.clip))


@dataclass(frozen=True, slots=True)
class PredictedSteps:
    """What is taken off every row's outcome; all of it public or released.

    Attributes
    ----------
    standard : Standard
        The map from covariates to z.
    direction : Direction
        v and c.
    slope, middle : float
        In units of half the outcome's range, and of places.
    bound : float
        h, in units of half the outcome's range.
    """

    standard: Standard
    direction: Direction
    slope: float
    middle: float
    bound: float

    @property
    def bound_steps(self) -> int:
        """The bound in whole steps; less than half the range, so that what is left stays below twice the range."""
        return min(int(self.bound * HALF_RANGE), HALF_RANGE - 1)

    def steps(self, block: Part) -> NDArray[np.int64]:
        """Return what is predicted of every row of a block in whole steps of the outcome."""
        most = self.bound_steps
        p = self.direction.places(block.u(self.standard))
        predicted = np.clip(np.rint(self.slope * (p - self.middle) * HALF_RANGE), -most, most)
        return np.asarray(predicted.astype(np.int64))


def residual_arm_sums(records: TableRecords, prediction: PredictedSteps) -> Sums:
    """Return both arms' totals of outcomes less what is predicted of them, moved by the bound to start at zero."""
    residuals = [block.steps - prediction.steps(block) + prediction.bound_steps for block in records.parts()]
    return (arm_totals(records.table.treated, np.concatenate(residuals)).sums,)


def residuals_by_arm(records: Records, prediction: PredictedSteps, factor: Fraction) -> PrivateArms:
    """Return the totals of outcomes less what is predicted of them, times a released factor; one pass."""
    (totals,) = records.run(residual_arm_sums, prediction)
    study = records.source.study
    low, high = study.outcome_range
    step = outcome_unit(study.outcome_bounds)
    width = (high - low + 2 * prediction.bound_steps * step) * factor
    return PrivateArms(TwoArms.of(totals), step * factor, width)


def release_with_outcomes(
    gate: Gate, records: Records, standard: Standard, scaling: Scaling
) -> tuple[Floats, float]:
    """Return the released mean of w w' over rows w = (u, sqrt(b) y), and its noise off the diagonal."""
    squared_max_norm = Fraction(standard.squared_length) + 1 + Fraction(scaling.b)
    return release_products(
        gate,
        "model",
        records,
        rows=rows_with_outcomes,
        arguments=(standard, scaling),
        largest=max(standard.limit, sqrt(scaling.b), 1.0),
        squared_max_norm=squared_max_norm,
    )


def release_places(
    gate: Gate, records: Records, standard: Standard, scaling: Scaling, direction: Direction
) -> tuple[Floats, float]:
    """Return the released mean of w w' over rows w = (1, p / c, y), and its noise off the diagonal."""
    return release_products(
        gate,
        "fit",
        records,
        rows=places_with_outcomes,
        arguments=(standard, scaling, direction),
        largest=1.0,
        squared_max_norm=Fraction(3),
    )


def rows_with_outcomes(records: TableRecords, standard: Standard, scaling: Scaling) -> Iterator[Floats]:
    """Yield (u, sqrt(b) y) of all rows, a block at a time."""
    root = sqrt(scaling.b)
    for u, t, y in records.models(standard):
        yield np.vstack((u.T, root * scaling.columns(t, y)[1])).T


def places_with_outcomes(
    records: TableRecords, standard: Standard, scaling: Scaling, direction: Direction
) -> Iterator[Floats]:
    """Yield (1, place along the direction, y) of all rows in parts of their bounds, a block at a time."""
    for u, t, y in records.models(standard):
        p = direction.places(u) / direction.clip
        yield np.column_stack((np.ones(len(u)), p, scaling.columns(t, y)[1]))
