"""A prediction of a trial's outcomes along one direction of covariates, made of released moments.

The direction is that of the cross moments of standardised covariates with outcomes ("line"), or of the
coefficients that all second moments give ("gram"); where it could be noise it is none. Outcomes are then
regressed on places along it, with a slope that is shrunk by the noise's share, and predictions are cut to a
bound of least expected error. In a trial treatment does not depend on covariates, so that a poor prediction
leaves the interval longer, never wrong.

Outcomes are in units of half their range around its middle. The numbers of this module that are choices were
set on seeds below 10 of `python -m experiments.every_method.trials`; the privacy does not depend on them.

In: private rows through noisy moments; out: a function of covariates and the bound of its predictions. Proofs
of privacy: `rows/moments/record_moments.proof.md` (means), `rows/histogram.proof.md` (counts),
`rows/moments/free_gram.proof.md` (second moments) and `rows/moments/orthogonal_score.proof.md` (residuals).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import erfc, exp, pi, sqrt

import numpy as np

from counterveil.estimators.moments.adjustment_budget import Design
from counterveil.estimators.moments.scaling import scaling_of, standard_rows
from counterveil.estimators.moments.trial_adjustment import (
    LEAST_SIGNAL,
    LINE_CLIP_SDS,
    OUTCOME_LENGTH,
    noise_of_comparison,
)
from counterveil.numerics.arrays import Floats
from counterveil.numerics.denoising import denoised
from counterveil.numerics.products import Standard
from counterveil.rows.moments.joint_gram import Scaling
from counterveil.rows.moments.linear_models import LinearModels
from counterveil.rows.moments.residual_products import release_residuals
from counterveil.rows.moments.trial_residuals import (
    Direction,
    PredictedSteps,
    release_places,
    release_with_outcomes,
)
from counterveil.rows.records import Records
from counterveil.session import Gate, Plan

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
# Degrees of freedom of a fit are at most this part of the rows, and fractions of them have this denominator.
_MOST_FREEDOM = 0.5
_FREEDOM_DENOMINATOR = 1 << 20


@dataclass(frozen=True, slots=True)
class Prediction:
    """slope (p - middle), p being a row's place along a direction, cut to [-bound, bound].

    Attributes
    ----------
    standard : Standard
        The map from covariates to standardised ones.
    direction : Direction
        The direction, and where places along it are clipped.
    slope, middle : float
        In units of half the outcome's range, and of places.
    sd : float
        Standard deviation of what is predicted, before it is cut.
    outcome_sd : float
        Standard deviation of outcomes.
    share : float
        Of the treated, released.
    bound : float
        Where predictions are cut.
    """

    standard: Standard
    direction: Direction
    slope: float
    middle: float
    sd: float
    outcome_sd: float
    share: float
    bound: float = 0.0

    @property
    def taken_off(self) -> PredictedSteps:
        """What is taken off every row's outcome."""
        return PredictedSteps(
            standard=self.standard,
            direction=self.direction,
            slope=self.slope,
            middle=self.middle,
            bound=self.bound,
        )

    @property
    def used(self) -> bool:
        """Whether anything is taken off."""
        return self.taken_off.bound_steps > 0

    def fitted(self, rows: int) -> Fraction:
        """Return n / (n - f), f being about how many coefficients were fitted to the rows they are used on.

        The fit takes a part f/n of the effect away with the outcomes, as chance makes the arms' covariates differ.
        """
        freedom = len(self.direction.values) * self.slope / self.direction.length if self.used else 0.0
        return 1 / (1 - Fraction(min(freedom / rows, _MOST_FREEDOM)).limit_denominator(_FREEDOM_DENOMINATOR))

    def cut(self, plan: Plan, rows: int) -> float:
        """Return the bound with the least expected error: a longer one explains more and needs more noise."""
        q = self.share
        share = Fraction(round(1000 * min(q, 1 - q)), 1000)
        residual_variance = max(self.outcome_sd**2 - self.sd**2, _LEAST_LEFT * self.outcome_sd**2)

        def expected(cut: float) -> float:
            outcome_variance = residual_variance + _beyond(cut) * self.sd**2 if cut else self.outcome_sd**2
            width = 2 + 2 * Fraction(round(1000 * min(cut * self.sd, 1.0)), 1000)
            return outcome_variance / (q * (1 - q)) / rows + noise_of_comparison(plan, width, share, rows)

        return min(_CUTS, key=expected) * self.sd


def learn(gate: Gate, records: Records, design: Design, form: str) -> Prediction:
    """Return a prediction of outcomes: centre, norms, a direction, then the line along it."""
    moments, standard = standard_rows(gate, records, design)
    scaling = scaling_of(moments, 1 + standard.squared_length, 1.0, OUTCOME_LENGTH)
    find = _from_products if form == "gram" else _from_cross_moments
    direction = find(gate, records, standard, scaling)
    return _line(gate, records, standard, scaling=scaling, direction=direction)


def _from_cross_moments(gate: Gate, records: Records, standard: Standard, scaling: Scaling) -> Direction:
    """Return the direction of the moments of covariates with outcomes."""
    nothing = np.zeros(records.features.size + 1)
    models = LinearModels(
        share=scaling.share, mean=scaling.mean, treatment=nothing, shrunk=nothing, outcome=nothing, effect=0.0
    )
    cross_moments = release_residuals(
        gate, "model", records, standard=standard, models=models, clip=scaling.outcome_bound
    )
    outcome_sd = sqrt(max(cross_moments.square, 0.0) + cross_moments.square_sd)
    raw = cross_moments.products[1:]
    noise = (cross_moments.sd**2 + outcome_sd**2 / records.count) * len(raw)
    # Outcomes have at most correlation one with the line, so that its standard deviation is no less than this.
    least = float(np.linalg.norm(raw)) / max(outcome_sd, 1e-3)
    return _stands_out(raw, noise, LINE_CLIP_SDS * max(1.0, least), unit=1.0, standard=standard)


def _from_products(gate: Gate, records: Records, standard: Standard, scaling: Scaling) -> Direction:
    """Return the coefficients of the outcome on all covariates, from released second moments."""
    root = sqrt(scaling.b)
    matrix, sd = release_with_outcomes(gate, records, standard, scaling)
    gram = denoised(matrix[:-1, :-1], sd)
    unit = scaling.outcome_bound / root
    raw = (gram.inverse @ matrix[:-1, -1] * unit)[1:]
    outcome_variance = max(float(matrix[-1, -1]), 0.0) * unit**2
    noise = (sd * unit) ** 2 * gram.squares + outcome_variance * gram.trace / records.count
    variance = float(raw @ gram.matrix[1:, 1:] @ raw) / max(float(raw @ raw), 1e-12)
    variance = max(variance, _LEAST_VARIANCE)
    return _stands_out(raw, noise, LINE_CLIP_SDS * sqrt(variance), unit=variance, standard=standard)


def _stands_out(
    raw: Floats, noise: float, largest_direction: float, unit: float, standard: Standard
) -> Direction:
    """Return the direction at length one, or nothing where it could be noise; `unit` turns lengths to covariances."""
    squared = float(raw @ raw)
    if squared <= noise * (1 + _LEAST_LENGTH * sqrt(2 / len(raw))):
        return Direction(np.zeros(len(raw)), 1.0, 1.0, 0.0)
    length = sqrt(squared)
    covariance = (squared - noise) / length * unit
    return Direction(raw / length, min(largest_direction, sqrt(standard.squared_length)), length, covariance)


def _line(
    gate: Gate, records: Records, standard: Standard, scaling: Scaling, direction: Direction
) -> Prediction:
    """Return the regression of outcomes on their position along a direction, its slope shrunk by the noise's share."""
    matrix, sd = release_places(gate, records, standard, scaling=scaling, direction=direction)
    # In units of the bounds: means of the place and the outcome, then moments around them.
    mean_position = float(matrix[0, 1])
    mean = float(matrix[0, 2])
    floor = _LEAST_VARIANCE / direction.clip**2
    variance = max(float(matrix[1, 1]) - mean_position**2, floor) + sd / 2
    most = _MOST_SEEN * direction.covariance / direction.clip / scaling.outcome_bound
    covariance = min(float(matrix[1, 2]) - mean_position * mean, most)
    outcome_variance = max(float(matrix[2, 2]) - mean**2, 0.0) + sd
    signal = max(1 - (LEAST_SIGNAL * sd / covariance) ** 2, 0.0) if covariance > 0 else 0.0
    # Whatever the noise says, a line explains no more than there is.
    slope = min(signal * covariance / variance, sqrt(outcome_variance / variance))
    unit = scaling.outcome_bound
    return Prediction(
        standard,
        direction,
        slope=slope * unit / direction.clip,
        middle=mean_position * direction.clip,
        sd=slope * sqrt(variance) * unit,
        outcome_sd=sqrt(outcome_variance) * unit,
        share=scaling.share,
    )


def _beyond(cut: float) -> float:
    """Return the mean of (|z| - cut)^2 over the normal |z| beyond the cut."""
    return (1 + cut * cut) * erfc(cut / sqrt(2)) - cut * sqrt(2 / pi) * exp(-cut * cut / 2)
