"""A linear prediction of a trial's outcomes from released moments, for the comparison of what it leaves.

Treatment was drawn without a look at covariates, so that any prediction may be taken off everybody's outcome: a poor
one leaves the interval longer, never wrong. Outcomes are in units of half their range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import erfc, exp, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.curator import Gate, Plan
from counterveil.estimators.ate.adjusted_contrast_plan import (
    LEAST_SIGNAL,
    LINE_REACH,
    OUTCOME_LENGTH,
    noise_of_comparison,
)
from counterveil.estimators.ate.doubly_robust_models import scaling_of
from counterveil.estimators.ate.doubly_robust_plan import Design
from counterveil.estimators.ate.doubly_robust_releases import (
    Records,
    Scaling,
    release_products,
    release_residuals,
)
from counterveil.estimators.ate.doubly_robust_run import standard_rows
from counterveil.kernels.orthogonal_score import Models
from counterveil.kernels.record_features import Standard
from counterveil.kernels.spectral_shrinkage import denoised

Floats = NDArray[np.float64]

# Outcomes are whole steps in [0, 2**24], half their range is 2**23 of them.
HALF_RANGE = 1 << 23
# A direction counts where it is longer than noise alone by this many standard deviations of its length.
_LEAST_LENGTH = 1.5
# A covariance is at most this many times what the release that found the direction says.
_MOST_SEEN = 1.5
# Least variance of a line through standardised covariates.
_LEAST_VARIANCE = 0.3
# Where predictions are cut, in their standard deviations; 0 leaves outcomes as they are.
_CUTS = (0.0, 1.0, 1.5, 2.0, 2.5, 3.0)
# Least part of the outcome's variance that is taken to be left.
_LEAST_LEFT = 0.02


@dataclass(frozen=True, slots=True)
class Direction:
    """A direction of standardised covariates along which outcomes rise, and how far rows reach along it.

    `length` is that of the moments or coefficients it was made of, `covariance` that of outcomes with places along
    it, as far as the release that found it tells.
    """

    values: Floats
    reach: float
    length: float
    covariance: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """slope (p - middle), p being a row's place along a direction, cut to [-bound, bound]."""

    standard: Standard
    direction: Direction
    slope: float
    middle: float
    sd: float  # of what is predicted, before it is cut
    outcome_sd: float
    share: float  # of the treated, released
    bound: float = 0.0

    def steps(self, records: Records) -> NDArray[np.int64]:
        """Return what is predicted of every row in whole steps of the outcome."""
        most = self.bound_steps
        found = []
        for part in records.parts():
            p = _along(self.standard.rows(part.x), self.direction)
            found.append(np.clip(np.rint(self.slope * (p - self.middle) * HALF_RANGE), -most, most))
        return np.concatenate(found).astype(np.int64)

    @property
    def bound_steps(self) -> int:
        """The bound in whole steps; less than half the range, so that what is left stays below twice the range."""
        return min(int(self.bound * HALF_RANGE), HALF_RANGE - 1)

    def fitted(self, rows: int) -> Fraction:
        """Return n / (n - f), f being about how many coefficients were fitted to the rows they are used on.

        The fit takes a part f/n of the effect away with the outcomes, as chance makes the arms' covariates differ.
        """
        freedom = len(self.direction.values) * self.slope / self.direction.length if self.bound_steps else 0.0
        return 1 / (1 - Fraction(min(freedom / rows, 0.5)).limit_denominator(1 << 20))

    def cut(self, plan: Plan, rows: int) -> float:
        """Return the bound with the least expected error: a longer one explains more and needs more noise."""
        q = self.share
        share = Fraction(round(1000 * min(q, 1 - q)), 1000)
        left = max(self.outcome_sd**2 - self.sd**2, _LEAST_LEFT * self.outcome_sd**2)

        def expected(cut: float) -> float:
            own = left + _beyond(cut) * self.sd**2 if cut else self.outcome_sd**2
            width = 2 + 2 * Fraction(round(1000 * min(cut * self.sd, 1.0)), 1000)
            return own / (q * (1 - q)) / rows + noise_of_comparison(plan, width, share, rows)

        return min(_CUTS, key=expected) * self.sd


def learn(gate: Gate, records: Records, design: Design, form: str) -> Prediction:
    """Return a prediction of outcomes: centre, norms, a direction, then the line along it."""
    moments, standard = standard_rows(gate, records, design, None)
    scaling = scaling_of(moments, 1 + standard.squared_length, 1.0, OUTCOME_LENGTH)
    find = _from_products if form == "gram" else _from_cross_moments
    direction = find(gate, records, standard, scaling)
    return _line(gate, records, standard, scaling, direction)


def _from_cross_moments(gate: Gate, records: Records, standard: Standard, scaling: Scaling) -> Direction:
    """Return the direction of the moments of covariates with outcomes."""
    nothing = np.zeros(records.features.size + 1)
    models = Models(scaling.share, scaling.mean, nothing, nothing, nothing, 0.0)
    found = release_residuals(gate, "model", records, standard, models, scaling.outcome_bound)
    spread = sqrt(max(found.square, 0.0) + found.square_sd)
    raw = found.with_rows[1:]
    noise = (found.sd**2 + spread**2 / records.count) * len(raw)
    # Outcomes have at most correlation one with the line, so that its standard deviation is no less than this.
    least = float(np.linalg.norm(raw)) / max(spread, 1e-3)
    return _stands_out(raw, noise, LINE_REACH * max(1.0, least), 1.0, standard)


def _from_products(gate: Gate, records: Records, standard: Standard, scaling: Scaling) -> Direction:
    """Return the coefficients of the outcome on all covariates, from released second moments."""
    root = sqrt(scaling.b)

    def rows() -> Iterator[Floats]:
        for u, t, y in records.models(standard):
            yield np.column_stack((u, root * scaling.columns(t, y)[1]))

    reach = Fraction(standard.squared_length) + 1 + Fraction(scaling.b)
    largest = max(standard.limit, root, 1.0)
    matrix, sd = release_products(gate, "model", rows(), records.count, largest, reach)
    gram = denoised(matrix[:-1, :-1], sd)
    unit = scaling.outcome_bound / root
    raw = (gram.inverse @ matrix[:-1, -1] * unit)[1:]
    spread = max(float(matrix[-1, -1]), 0.0) * unit**2
    noise = (sd * unit) ** 2 * gram.squares + spread * gram.trace / records.count
    variance = float(raw @ gram.matrix[1:, 1:] @ raw) / max(float(raw @ raw), 1e-12)
    variance = max(variance, _LEAST_VARIANCE)
    return _stands_out(raw, noise, LINE_REACH * sqrt(variance), variance, standard)


def _stands_out(raw: Floats, noise: float, reach: float, unit: float, standard: Standard) -> Direction:
    """Return the direction at length one, or nothing where it could be noise; `unit` turns lengths to covariances."""
    squared = float(raw @ raw)
    if squared <= noise * (1 + _LEAST_LENGTH * sqrt(2 / len(raw))):
        return Direction(np.zeros(len(raw)), 1.0, 1.0, 0.0)
    length = sqrt(squared)
    covariance = (squared - noise) / length * unit
    return Direction(raw / length, min(reach, sqrt(standard.squared_length)), length, covariance)


def _line(
    gate: Gate, records: Records, standard: Standard, scaling: Scaling, direction: Direction
) -> Prediction:
    """Return the regression of outcomes on their place along a direction, drawn in by what may be noise."""

    def rows() -> Iterator[Floats]:
        for u, t, y in records.models(standard):
            p = _along(u, direction) / direction.reach
            yield np.column_stack((np.ones(len(u)), p, scaling.columns(t, y)[1]))

    matrix, sd = release_products(gate, "fit", rows(), records.count, 1.0, Fraction(3))
    # In units of the bounds: means of the place and the outcome, then moments around them.
    place, mean = float(matrix[0, 1]), float(matrix[0, 2])
    floor = _LEAST_VARIANCE / direction.reach**2
    variance = max(float(matrix[1, 1]) - place**2, floor) + sd / 2
    most = _MOST_SEEN * direction.covariance / direction.reach / scaling.outcome_bound
    covariance = min(float(matrix[1, 2]) - place * mean, most)
    spread = max(float(matrix[2, 2]) - mean**2, 0.0) + sd
    signal = max(1 - (LEAST_SIGNAL * sd / covariance) ** 2, 0.0) if covariance > 0 else 0.0
    # Whatever the noise says, a line explains no more than there is.
    slope = min(signal * covariance / variance, sqrt(spread / variance))
    unit = scaling.outcome_bound
    return Prediction(
        standard,
        direction,
        slope * unit / direction.reach,
        place * direction.reach,
        slope * sqrt(variance) * unit,
        sqrt(spread) * unit,
        scaling.share,
    )


def _along(u: Floats, direction: Direction) -> Floats:
    """Return every row's place along the direction, inside its reach."""
    return np.asarray(np.clip(u[:, 1:] @ direction.values, -direction.reach, direction.reach))


def _beyond(cut: float) -> float:
    """Return the mean of (|z| - cut)^2 over the normal |z| beyond the cut."""
    return (1 + cut * cut) * erfc(cut / sqrt(2)) - cut * sqrt(2 / pi) * exp(-cut * cut / 2)
