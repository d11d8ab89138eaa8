"""The chain of releases of the orthogonal private effect, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from counterveil.data.features import counted_features, public_standard
from counterveil.numerics.arrays import Floats
from counterveil.numerics.products import Standard
from counterveil.numerics.public_choices import LEFT_OF_TREATMENT
from counterveil.numerics.shrinkage import denoised
from counterveil.session import Gate
from counterveil.statistics.moments.doubly_robust_models import (
    Nuisances,
    first_models,
    longer_reach,
    public_gram,
    refined,
    residual_clip,
    scaling_of,
    standardise,
    unadjusted,
)
from counterveil.statistics.moments.doubly_robust_plan import (
    Design,
    Split,
    clip_reach,
    gram_index,
)
from counterveil.statistics.moments.doubly_robust_releases import (
    Moments,
    ScorePass,
    SecondMoments,
    release_cross,
    release_gram,
    release_moments,
    release_norms,
    release_residuals,
    release_score,
)
from counterveil.statistics.moments.kernels.scores import Models
from counterveil.statistics.moments.records import Records

# The effect and its interval from two passes over the orthogonal score: post-processing of released numbers.


# Numbers of this module that are choices, and not derived, were set on the tuning seeds of
# `experiments/record_effect/NOTES.md`.
# Clip of the score in the first pass, in multiples of that in the second, and a margin there for wrong predictions.
_FIRST_REACH, _MARGIN = 1.25, 1.15
_LEAST_CLIP, _LARGEST_CLIP = 0.0005, 2.0
_LEAST_INFORMATION = 0.35
# (t-e)^2 is clipped here; noise in e may carry it beyond one.
_LARGEST_INFORMATION = 1.2

ReleasePass = Callable[[str, Models, float, float], ScorePass]


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect in units of half the outcome's range, and the parts of its uncertainty.

    `sampling`, `noise` and `product` are variances, `bias` is a bound that is added to the half-width.
    """

    value: float
    sampling: float
    noise: float
    product: float
    bias: float
    information: float


@dataclass(frozen=True, slots=True)
class Scorer:
    """What both passes share: number of rows, clip in standard deviations, and the release itself."""

    rows: int
    reach: float
    release_pass: ReleasePass

    def first(self, nuisances: Nuisances) -> tuple[Nuisances, ScorePass]:
        """Return the models around the effect of a first pass, and that pass, called "first_pass"."""
        clip = _FIRST_REACH * self.reach * _score_sd(nuisances)
        clip = float(np.clip(clip, self._least_clip(nuisances), _LARGEST_CLIP))
        seen = self.release_pass("first_pass", nuisances.models, clip, _LARGEST_INFORMATION)
        return _after_first(nuisances, seen, self._floor(nuisances)), seen

    def last(self, nuisances: Nuisances, first: ScorePass) -> Effect:
        """Return the effect from a last pass, called "score"; the models may have been refined since the first."""
        predicted = _score_sd(nuisances) * _MARGIN
        measured = sqrt(max(first.square, 0.0) + 1.5 * first.square_sd)
        clip = self.reach * min(predicted, measured)
        clip = float(np.clip(clip, self._least_clip(nuisances), _LARGEST_CLIP))
        seen = self.release_pass("score", nuisances.models, clip, _LARGEST_INFORMATION)
        return _effect(nuisances, first, seen, self._floor(nuisances), self.rows)

    def _least_clip(self, nuisances: Nuisances) -> float:
        share = nuisances.models.share
        largest = nuisances.least_clip * max(share, 1 - share)
        return max(_LEAST_CLIP, largest)

    def _floor(self, nuisances: Nuisances) -> float:
        return _LEAST_INFORMATION * nuisances.variance


def _score_sd(nuisances: Nuisances) -> float:
    """Return an upper estimate of the standard deviation of the unweighted score."""
    return sqrt((nuisances.variance + nuisances.treatment_error) * nuisances.residual_variance)


def _after_first(nuisances: Nuisances, first: ScorePass, floor: float) -> Nuisances:
    """Return the models around the effect of the first pass."""
    information = max(first.information - nuisances.treatment_error, floor)
    step = (first.score + nuisances.shared) / information
    sd = first.score_sd / information
    expected = nuisances.treatment_variance * nuisances.product / nuisances.variance**2 + 0.0025
    step *= expected / (expected + sd * sd)
    models = nuisances.models
    models = replace(models, effect=models.effect + step, outcome=models.outcome - step * models.shrunk)
    shared = nuisances.shared + step * nuisances.treatment_factor * nuisances.treatment_error
    product = nuisances.product + step**2 * nuisances.gamma_error
    return replace(nuisances, models=models, shared=shared, product=product)


def _effect(nuisances: Nuisances, first: ScorePass, second: ScorePass, floor: float, rows: int) -> Effect:
    # The second pass has four times the budget of the first.
    ours = _weight_of_second_pass(first, second)
    information = ours * second.information + (1 - ours) * first.information
    denominator = max(information - nuisances.treatment_error, floor)
    last = (second.score + nuisances.shared) / denominator
    m = len(nuisances.models.outcome)
    information_variance = ours**2 * second.information_sd**2 + (1 - ours) ** 2 * first.information_sd**2
    information_variance += 2 * nuisances.treatment_error**2 / m + 0.05 * information**2 / rows
    product = nuisances.product + last**2 * nuisances.gamma
    square = max(second.square, 0.0) + second.square_sd
    noise = second.score_sd**2 + last**2 * information_variance
    models = nuisances.treatment_variance * product + 2 * nuisances.shared**2 / m
    return Effect(
        nuisances.models.effect + last,
        square / max(rows - m - 1, 1) / denominator**2,
        noise / denominator**2,
        models / denominator**2,
        nuisances.bias / denominator,
        denominator,
    )


def _weight_of_second_pass(first: ScorePass, second: ScorePass) -> float:
    a, b = first.information_sd**2, second.information_sd**2
    return a / (a + b)


# An unadjusted answer is given where the adjusted one is expected to be this many times wider than it: residuals
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
    known: Known | None,
    kappa: float | None,
) -> Answer:
    """Return the effect: centre, norms, Gram, residuals, then two passes over the score."""
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
    effect = _refine_and_score(gate, records, design, split, standard, nuisances, adjusted)
    return Answer(
        effect, adjusted, 0.0 if adjusted else bound, scaling.share, standard.squared_length, predicted
    )


def _refine_and_score(
    gate: Gate,
    records: Records,
    design: Design,
    split: Split,
    standard: Standard,
    nuisances: Nuisances,
    adjusted: bool,
) -> Effect:
    """Return the effect: residuals, a first pass, residuals around its effect, the last pass."""

    def release_pass(name: str, models: Models, clip: float, largest: float) -> ScorePass:
        return release_score(gate, name, records, standard, models, clip, largest)

    noise = float(design.sd(float(dict(split.shares)["score"]), 3, 2.1)) * sqrt(design.rows)
    reach = longer_reach(float(clip_reach(noise)), noise, nuisances.heavy)
    scorer = Scorer(records.count, reach, release_pass)
    first: ScorePass | None = None
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
    variance = float(np.clip(moments.outcome + moments.square_sd, 0.0005, 1.0))
    return kappa * sqrt(variance) / (LEFT_OF_TREATMENT * sqrt(max(share * (1 - share), 0.04)))
