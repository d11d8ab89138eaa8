"""Lines and weights of all arms, fitted to moments by arm: everything that is released before a score is.

Two looks at the covariates find windows and scales, two histograms where outcomes lie and one how long rows
are. Second moments of covariates and outcome by arm give lines, which are refined on moments of their
residuals, and weights that balance each arm against the people asked about.

In: private rows, through a gate that adds noise and lets each planned release through once. Out: lines,
weights and the parts of their errors, in units of the released scale, v = (outcome - centre) / unit with
centre and unit from released counts. Each release bounds what a row adds by clipping to limits that earlier
releases gave, so that the budgets of all add up. Proofs: `rows/moments/arm_grams.proof.md` (moments of
covariates and outcome by arm, moments of residuals) and `rows/histogram.proof.md` (histograms of outcomes and
of lengths of rows).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.data.features import counted_features
from counterveil.estimators.moments.arm_chain import (
    CONSTANT_LENGTH,
    OUTCOME_LENGTH,
    RESIDUAL_PASSES,
    ArmDesign,
)
from counterveil.estimators.moments.arm_fits import ArmFit, explained_by, first_fit, refined, residual_clip
from counterveil.estimators.moments.arm_moments import ArmMoments, arm_moments
from counterveil.estimators.moments.balanced_weights import BalancedScore, Guard, moved_by_richer, weighted
from counterveil.estimators.moments.outcome_location import ANYWHERE, OutcomeLocation, locate_outcomes
from counterveil.estimators.moments.row_scale import RowScale
from counterveil.estimators.moments.scaling import shrunk_towards_prior, squared_max_length
from counterveil.numerics.products import FeatureMap, Standard
from counterveil.privacy import Estimand
from counterveil.rows.moments.arm_grams import release_arm_grams
from counterveil.rows.moments.feature_moments import FeatureMeans, release_look
from counterveil.rows.moments.residual_products import release_arm_residuals
from counterveil.rows.records import Records
from counterveil.session import Gate

# A number is looked at again within so many standard deviations of its mean.
_WINDOW_SDS = 3.0
# Least standard deviation of a feature in [-1, 1].
_LEAST_SCALE = 0.2
# Of numbers it may be smaller, as far as noise lets see: least variance.
_LEAST_SQUARE = 0.001
# Clip of the outcome in the Grams, in its standard deviations;
_OUTCOME_CLIP_SDS = 2.5
# where tails are heavy it is as far as outcomes reach, and no farther than this.
_FARTHEST = 6.0


@dataclass(frozen=True, slots=True)
class ArmModels:
    """What is released before any score, and what was made of it.

    Attributes
    ----------
    records : Records
        The records, numbers being taken within windows.
    scale : RowScale
        Units of features and outcome.
    moments : ArmMoments
        Of all arms.
    fit : ArmFit
        Lines of all arms.
    balanced : BalancedScore
        The score that lines and weights make, and what they leave.
    """

    records: Records
    scale: RowScale
    moments: ArmMoments
    fit: ArmFit
    balanced: BalancedScore


def arm_models(gate: Gate, records: Records, design: ArmDesign, estimand: Estimand) -> ArmModels:
    """Return the models of an estimand, from all releases of a chain but those of scores."""
    records, first_look = _within_windows(gate, records, design)
    scale = _scale(gate, records, design)
    grams, sd = release_arm_grams(gate, records, scale.rows)
    moments = arm_moments(grams, sd, scale, share=first_look.treated, share_sd=first_look.treated_sd)
    fit = first_fit(moments, sqrt(2) * sd / scale.outcome)
    for name in RESIDUAL_PASSES:
        clip = max(residual_clip(fit), scale.least_clip(fit.levels))
        residuals = release_arm_residuals(
            gate, name, records, rows=scale.rows, lines=fit.lines(moments), clip=clip
        )
        fit = refined(moments, fit, residuals)
    explained = explained_by(moments, fit.slopes.values)
    guard = Guard(design.inflation(explained / (explained + fit.residual)), design.shared)
    balanced = weighted(moments, fit, estimand, rows=records.count, guard=guard)
    if records.features.pairs:
        balanced = _with_nonlinear_shift(
            balanced, moments, fit, records=records, estimand=estimand, means=design.means
        )
    return ArmModels(records=records, scale=scale, moments=moments, fit=fit, balanced=balanced)


def _with_nonlinear_shift(
    balanced: BalancedScore,
    moments: ArmMoments,
    fit: ArmFit,
    records: Records,
    estimand: Estimand,
    *,
    means: bool,
) -> BalancedScore:
    """Return the score with what squares and products surely move: the effect, or each arm's mean."""
    numbers = moments, fit, estimand, len(records.features.columns), records.count
    if not means:
        return replace(balanced, nonlinear_shift=moved_by_richer(*numbers))
    shifts = [moved_by_richer(*numbers, signs) for signs in np.eye(len(balanced.arms)).tolist()]
    arms = zip(balanced.arms, shifts, strict=True)
    return replace(balanced, arms=tuple(replace(arm, bias=arm.bias + shift) for arm, shift in arms))


def _within_windows(gate: Gate, records: Records, design: ArmDesign) -> tuple[Records, FeatureMeans]:
    """Return the records with numbers taken within windows around their means, and the first look."""
    plain = records.with_features(FeatureMap(records.features.columns))
    numbers = ~plain.features.two_valued
    look = release_look(gate, "centre", plain, counted=int(numbers.sum()), chosen=numbers, share=True)
    means = np.clip(look.means, -1.0, 1.0)
    spread = np.sqrt(np.clip(look.squares - means**2, look.square_sd, 1.0))
    half_widths = np.minimum(max(_WINDOW_SDS, design.limit) * spread, 1 + np.abs(means))
    windows = tuple(
        (float(mean), float(half_width)) if number else (0.0, 1.0)
        for mean, half_width, number in zip(means, half_widths, numbers, strict=True)
    )
    return records.with_features(replace(records.features, windows=windows)), look


def _scale(gate: Gate, records: Records, design: ArmDesign) -> RowScale:
    """Return how rows enter the Grams: from a second look, the outcomes' location and the lengths of rows."""
    standard = _standard(gate, records, design)
    location = ANYWHERE
    if design.searched:
        location = locate_outcomes(gate, records, design.pure, design.place_cells)
    length = squared_max_length(gate, records, standard, pure=design.pure, share=design.shortened)
    size = records.features.size
    length = size * min(length / size, design.limit**2, design.longest)
    return RowScale(
        standard=replace(standard, squared_length=length),
        location=location,
        constant=CONSTANT_LENGTH * length,
        outcome=OUTCOME_LENGTH * length,
        clip=_outcome_clip(location),
    )


def _standard(gate: Gate, records: Records, design: ArmDesign) -> Standard:
    """Return means and scales of all features, numbers being rescaled to their windows."""
    features = records.features
    everything = np.ones(features.size, dtype=np.bool_)
    look = release_look(
        gate, "features", records, counted=counted_features(features), chosen=everything, share=False
    )
    means, squares = shrunk_towards_prior(look.means, look.squares, look.sd)
    square_noise = np.clip(look.square_sd, _LEAST_SQUARE, _LEAST_SCALE**2)
    least = np.where(features.two_valued, _LEAST_SCALE**2, square_noise)
    return Standard(means, np.sqrt(np.clip(squares - means**2, least, 1.0)), design.limit, np.inf)


def _outcome_clip(location: OutcomeLocation) -> float:
    """Return where outcomes are clipped in the Grams, in their scales."""
    if location.whole:
        return 1.0
    return max(_OUTCOME_CLIP_SDS, min(location.farthest, _FARTHEST)) if location.uneven else _OUTCOME_CLIP_SDS
