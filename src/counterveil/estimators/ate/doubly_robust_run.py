"""The chain of releases of the orthogonal private effect, in order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.curator import Gate
from counterveil.estimators.ate.declared_bound import LEFT_OF_TREATMENT
from counterveil.estimators.ate.doubly_robust_effect import Effect, Scorer
from counterveil.estimators.ate.doubly_robust_features import counted_features, public_standard
from counterveil.estimators.ate.doubly_robust_models import (
    Nuisances,
    first_models,
    public_gram,
    refined,
    residual_clip,
    scaling_of,
    standardise,
    unadjusted,
)
from counterveil.estimators.ate.doubly_robust_plan import Design, Split, clip_reach, gram_index
from counterveil.estimators.ate.doubly_robust_releases import (
    Look,
    Moments,
    Records,
    SecondMoments,
    release_cross,
    release_gram,
    release_moments,
    release_norms,
    release_residuals,
    release_score,
)
from counterveil.estimators.ate.rare_outcomes import longer_reach
from counterveil.kernels.orthogonal_score import Models, Weights
from counterveil.kernels.record_features import Standard
from counterveil.kernels.spectral_shrinkage import denoised

Floats = NDArray[np.float64]

# An unadjusted answer is given where the adjusted one promises to be this many times wider than it: residuals
# narrow the latter later on, and it rests on no declared bound.
_FALL_BACK = 3.0
# From this noise of the Gram on, coordinates are clipped here and this share of the rows is shortened. Noise grows with
# the longest row; what shortening takes away of the confounding stays far below it.
_KNOBS = ((0.6, 2.0, 0.2), (0.35, 2.0, 0.1), (0.25, 2.0, 0.05), (0.1, 2.5, 0.005), (0.0, 4.0, 0.001))
# Where no Gram is released.
_USUAL_INDEX = 0.3


@dataclass(frozen=True, slots=True)
class Known:
    """What is public about the covariates: correlations, and perhaps means and standard deviations."""

    correlations: Floats
    means: tuple[float, ...] | None
    sds: tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """An effect with the numbers a reader wants to see; `adjusted` is False where covariates were not used."""

    effect: Effect
    adjusted: bool
    bound: float  # on confounding, in units of half the outcome's range; 0 where adjusted
    share: float
    squared_length: float
    predicted: tuple[float, float]


def knobs(design: Design) -> tuple[float, float]:
    """Return where coordinates are clipped and the share of rows that is shortened; public numbers only."""
    index = _USUAL_INDEX if design.known_covariance else gram_index(design)
    return next((limit, share) for least, limit, share in _KNOBS if index >= least)


def orthogonal_effect(
    gate: Gate,
    records: Records,
    design: Design,
    split: Split,
    weights: Weights,
    known: Known | None,
    kappa: float | None,
) -> Answer:
    """Return the effect: centre, norms, Gram, residuals, then two looks at the score."""
    moments, standard = standard_rows(gate, records, design, known)
    scaling = scaling_of(moments, 1 + standard.squared_length, split.treatment, split.outcome)
    if known is None:
        second = release_gram(gate, records, standard, scaling)
        assert second.matrix is not None
        gram = denoised(second.matrix, second.entry_sd)
    else:
        second = release_cross(gate, records, standard, scaling)
        located = known.means is not None
        gram = public_gram(
            known.correlations, 0.02 if located else moments.sd / float(np.median(standard.scale))
        )
    nuisances = first_models(second, scaling, gram)
    adjusted, bound = True, 0.0
    if kappa is not None:
        bound = confounding_bound(second, nuisances, kappa)
        sd, bias = nuisances.predicted
        adjusted = 1.96 * sd + bias <= _FALL_BACK * bound
        if not adjusted:
            nuisances = unadjusted(nuisances, second)
    predicted = nuisances.predicted
    effect = _refine_and_score(gate, records, design, split, weights, standard, nuisances, adjusted)
    return Answer(
        effect, adjusted, 0.0 if adjusted else bound, scaling.share, standard.squared_length, predicted
    )


def _refine_and_score(
    gate: Gate,
    records: Records,
    design: Design,
    split: Split,
    weights: Weights,
    standard: Standard,
    nuisances: Nuisances,
    adjusted: bool,
) -> Effect:
    """Return the effect: residuals, a first look, residuals around its effect, the last look."""

    def look(name: str, models: Models, clip: float, largest: float) -> Look:
        return release_score(gate, name, records, standard, models, weights, clip, largest)

    noise = float(design.sd(float(dict(split.shares)["score"]), 3, 2.1)) * sqrt(design.rows)
    reach = longer_reach(float(clip_reach(noise)), noise, nuisances.heavy)
    scorer = Scorer(weights, records.count, reach, look)
    first: Look | None = None
    for place in range(split.residual_passes):
        if place == split.residual_passes - 1:
            nuisances, first = scorer.first(nuisances)
        residuals = release_residuals(
            gate, f"residual {place + 1}", records, standard, nuisances.models, residual_clip(nuisances)
        )
        if adjusted:
            nuisances = refined(nuisances, residuals)
    if first is None:
        nuisances, first = scorer.first(nuisances)
    return scorer.last(nuisances, first)


def standard_rows(
    gate: Gate, records: Records, design: Design, known: Known | None
) -> tuple[Moments, Standard]:
    """Return the released moments and the map to standardised rows."""
    limit, share = knobs(design)
    if known is not None and known.means is not None and known.sds is not None:
        moments = release_moments(gate, records, 0)
        standard = public_standard(records.features, known.means, known.sds, limit)
    else:
        moments = release_moments(gate, records, counted_features(records.features))
        standard = standardise(moments, limit)
    length = release_norms(gate, records, standard, design.pure, share)
    return moments, replace(standard, squared_length=length)


def confounding_bound(moments: SecondMoments, nuisances: Nuisances, kappa: float) -> float:
    """Return kappa sd(y) / (0.75 sd(t)) from released numbers, in units of half the outcome's range."""
    share = nuisances.models.share
    spread = float(np.clip(moments.outcome + moments.square_sd, 0.0005, 1.0))
    return kappa * sqrt(spread) / (LEFT_OF_TREATMENT * sqrt(max(share * (1 - share), 0.04)))
