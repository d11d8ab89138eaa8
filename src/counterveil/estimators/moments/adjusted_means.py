"""Adjusted mean outcomes of private arms, two or several: what everybody would have in each.

Moments, lines and weights are those of the effect of two arms (`arm_models`), for as many arms as there are:
a record is in one of them, so that all together cost what one does. An arm's mean is what its line says at
the mean of everyone's covariates, and the mean of its weighted residuals,

    mean_a = beta_a'(1, zbar) + (1/n) sum over its rows of alpha_a'u (y - beta_a'u),

released as counts, sums and squares by arm. Answers are in units of the outcome; inside, units of the
released scale.

The constants were set on the tuning designs of `experiments/record_effect/RESULTS.md`; privacy does not
depend on them.

Letters: u = (1, z) with z standardised covariates and zbar their mean over everyone, y the outcome, n the
public number of rows; beta_a is the line of arm a, alpha_a the weights that balance it against everyone. The
mean is doubly robust: its error is a product of those of lines and of weights. Proofs of privacy:
`rows/moments/arm_grams.proof.md` (moments by arm, residuals, sums by arm),
`rows/moments/group_scores.proof.md` (counts, sums and squares of scores) and `rows/histogram.proof.md`
(counts that set clips).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, TypeVar

import numpy as np

from counterveil.data.features import require_covariates
from counterveil.estimators.method import Prepared
from counterveil.estimators.moments.adjusted_answers import (
    PAGES,
    adjusted_facts,
    adjustment,
    chain_of,
    mechanisms_of,
    unaffordable,
)
from counterveil.estimators.moments.arm_chain import ArmDesign, arms_affordable
from counterveil.estimators.moments.arm_models import ArmModels, arm_models
from counterveil.estimators.moments.balanced_weights import expected_shared
from counterveil.estimators.moments.longest_score import longest_weighted
from counterveil.estimators.moments.score_clip import (
    LARGEST_WEIGHT_SDS,
    SIZES,
    ScoreShape,
    SizeHistogram,
    chosen_clip,
    far_lost,
    not_corrected,
)
from counterveil.inference.arm_means import IndependentArmMeans, with_rare_events
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import weighted_sum
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.results.answering import Facts
from counterveil.results.arms import ArmsResult, Shared
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question
from counterveil.results.result import MeasureResult
from counterveil.rows.moments.cell_sums import SCORE_TERMS
from counterveil.rows.moments.score_sizes import release_sizes
from counterveil.rows.moments.score_sums import OwnScore, release_own_scores
from counterveil.rows.public import PublicData
from counterveil.rows.records import Records
from counterveil.session import Gate, Plan
from counterveil.settings import DoublyRobust

# An arm is lost in noise, so that its mean may be anywhere, where it has fewer rows than this many standard
# deviations of their noise,
_LOST_SDS = 4.0
# or than this part of an arm of equal size.
_SMALLEST = 0.06
# The rows of an arm that coefficients of its line do not use up are no less than this part.
_LEAST_UNUSED = 0.5
# How far from the end where most events are their residuals reach: this many standard deviations of the line,
_EVENT_DISTANCE_SDS = 3.0
# times one and this many standard deviations of the weights.
_MOST_WEIGHT = 4.0
_PAGES = (*PAGES, "rows/moments/group_scores.proof.md")

Answer = TypeVar("Answer", ArmsResult, MeasureResult)


def adjusted_arms(public: PublicData, question: Question) -> Prepared[ArmsResult]:
    """Return the adjusted means of all arms, prepared for their releases; n is public and nothing else is."""
    study = public.study

    def facts(means: Sequence[AdjustedMean], shared: Shared) -> Facts:
        limits = float(study.outcome_range[0]), float(study.outcome_range[1])
        effects = []
        for label, mean in zip(study.treatment_labels, means, strict=True):
            error = with_rare_events(mean.error, limits, (mean.size,))
            value = Linear(mean.estimate, error, limits)
            effects.append(Effect(label, value, question.level, size=mean.size, size_sd=mean.size_sd))
        return Facts(means=tuple(effects), shared=shared)

    return _prepared(ArmsResult, public, question, facts, description={"question": "arms"})


def measured(public: PublicData, question: Question) -> Prepared[MeasureResult]:
    """Return the measure of what both arms' mean outcomes would be if everyone were in them, prepared."""
    low, high = map(float, public.study.outcome_range)

    # Both errors are taken for independent, which for a ratio near one is too much.
    def facts(means: Sequence[AdjustedMean], _shared: Shared) -> Facts:
        control, treated = means
        values = treated.estimate, control.estimate
        errors = treated.error, control.error
        sizes = treated.size, control.size
        return Facts(
            measure=question.measure,
            numbers=IndependentArmMeans(values, errors, (low, high), sizes),
            details={"mean_treated": values[0], "mean_control": values[1]},
        )

    return _prepared(MeasureResult, public, question, facts, description={})


def _prepared(
    answer: type[Answer],
    public: PublicData,
    question: Question,
    facts: Callable[[Sequence[AdjustedMean], Shared], Facts],
    description: dict[str, Any],
) -> Prepared[Answer]:
    """Return the method whose answer is made of the means of all arms; refused where they are not affordable."""
    study = public.study
    require_covariates(study, "doubly_robust")
    spending = adjustment(public, question, question.settings or DoublyRobust())
    design = spending.design
    if not arms_affordable(design):
        raise unaffordable(design, means=True)
    chain = chain_of(study, design, means=True)
    plan = chain.plan()

    def estimate(gate: Gate) -> Facts:
        means, shared = released_means(gate, plan, Records.at(gate, spending.features), chain)
        of_answer = facts(means, shared)
        numbers = {"rows": design.rows, "features": design.features, "mechanism": design.drawn}
        details = {"adjusted": True} | numbers | of_answer.pop("details", {})
        return Facts(adjusted_facts(study, spending.features, chain), details=details, **of_answer)

    return Prepared(
        question=replace(question, mechanism=design.mechanism),
        plan=plan,
        estimate=estimate,
        answer=answer,
        pages=_PAGES,
        mechanisms=mechanisms_of(design),
        description=description,
    )


@dataclass(frozen=True, slots=True)
class AdjustedMean:
    """An arm's mean outcome with its error, and its released number of rows.

    Attributes
    ----------
    estimate, error : float, Uncertainty
        In units of the outcome.
    size, size_sd : float
        Number of rows and its noise.
    """

    estimate: float
    error: Uncertainty
    size: float
    size_sd: float


@dataclass(frozen=True, slots=True)
class ClippedScores:
    """Where scores of the arms are clipped, in units of the released scale.

    Attributes
    ----------
    ends : ndarray of shape (2, arms)
        Lower and upper ends.
    lost, missed : ndarray of shape (arms,)
        Bounds of how far that moves an arm's mean, and the variance of what it leaves uncorrected.
    """

    ends: Floats
    lost: Floats
    missed: Floats


def released_means(
    gate: Gate, plan: Plan, records: Records, design: ArmDesign
) -> tuple[list[AdjustedMean], Shared]:
    """Return the mean of every arm, the reference first, and what their errors have in common."""
    models = arm_models(gate, records, design, Estimand.ATE)
    clipped = _clipped(gate, models, design)
    score = OwnScore(
        lines=models.fit.lines(models.moments),
        weights=models.balanced.score.weights,
        centres=clipped.ends.sum(axis=0) / 2,
        units=np.diff(clipped.ends, axis=0)[0] / 2,
    )
    sums = release_own_scores(gate, models.records, models.scale.rows, score=score, pure=design.pure)
    noise: NoiseDistribution = (
        plan.cells_noise("score", SCORE_TERMS.absolute)
        if design.pure
        else plan.coordinate_noise("score", SCORE_TERMS.euclidean)
    )
    sampling, from_noise = covariate_covariances(models)
    variances = np.diag(sampling), np.diag(from_noise)
    means = [
        adjusted_mean(models, arm, clipped, sums=of_arm, noise=noise, variances=variances)
        for arm, of_arm in enumerate(sums)
    ]
    between_arms = (matrix - np.diag(np.diag(matrix)) for matrix in (sampling, from_noise))
    return means, Shared(*(tuple(map(tuple, matrix.tolist())) for matrix in between_arms))


def covariate_covariances(models: ArmModels) -> tuple[Floats, Floats]:
    """Return the covariances (arms, arms) of all lines at the mean of everyone's covariates, in units of the outcome.

    They are those from who is in the sample, and from noise: that mean is the one of the Grams.
    """
    moments = models.moments
    slopes = models.fit.slopes.values * _unit(models)
    off = moments.means - moments.overall
    within = np.einsum("a,aij->ij", moments.shares, moments.covariances)
    everyone = within + np.einsum("a,ai,aj->ij", moments.shares, off, off)
    noise = len(slopes) * moments.mean_sd**2
    return slopes @ everyone @ slopes.T / models.records.count, noise * slopes @ slopes.T


def _unit(models: ArmModels) -> float:
    """Return the unit of the scale, in units of the outcome."""
    low, high = models.records.study.outcome_range
    return models.scale.unit * float(high - low) / 2


def _clipped(gate: Gate, models: ArmModels, design: ArmDesign) -> ClippedScores:
    """Return scores clipped where a histogram of each arm's sizes says."""
    moments = models.moments
    fit = models.fit
    scale = models.scale
    shares = moments.shares
    weights = models.balanced.score.weights
    slopes = weights[:, 1:]
    # Weights of an arm are one on average once its share multiplies them.
    spreads = shares * np.sqrt(np.einsum("ai,aij,aj->a", slopes, moments.covariances, slopes))
    typical = np.sqrt(fit.residual * (1 + spreads**2))
    score = OwnScore(fit.lines(moments), weights, np.zeros(len(shares)), typical / shares)
    counts, sd = release_sizes(gate, models.records, scale.rows, score=score, edges=SIZES, pure=design.pure)
    counts = counts.reshape(len(shares), -1)
    least = scale.least_clip(fit.levels) * (1 + LARGEST_WEIGHT_SDS * spreads)
    bounds = shares * longest_weighted(score.lines, weights, scale.rows)
    clips = []
    for arm, share in enumerate(shares):
        edges = typical[arm] * SIZES
        far_losses = far_lost(moments, scale, {arm: slopes[arm]}, edges / share)
        shape = ScoreShape(
            rows=share * models.records.count,
            noise_unit=design.score_unit / share,
            typical=float(typical[arm]),
            peaked=1.0,
            far=sqrt(fit.residual) * float(1 + spreads[arm]),
            missed=not_corrected(moments, fit, arm, weights=slopes[arm], clips=edges / share),
            far_losses=replace(far_losses, longest=far_losses.longest * share),
            least=float(least[arm]),
            location=scale.location,
            longest=float(bounds[arm]),
        )
        clips.append(chosen_clip(SizeHistogram(counts[arm], sd, edges), shape))
    ends = _ends(models, np.array([clip.clip for clip in clips]), spreads) / shares
    lost = np.array([clip.lost for clip in clips])
    return ClippedScores(ends, lost, np.array([clip.missed for clip in clips]))


def _ends(models: ArmModels, clips: Floats, spreads: Floats) -> Floats:
    """Return where scores are clipped below and above, (2, arms): events no farther than the many may lie."""
    if not models.scale.location.whole:
        return np.stack([-clips, clips])
    # Of events nearly all rows are at one end, to which residuals are short.
    levels = models.fit.levels
    slopes = models.fit.slopes.values
    lines = np.sqrt(np.einsum("ai,aij,aj->a", slopes, models.moments.covariances, slopes))
    near = (1 - np.abs(levels) + _EVENT_DISTANCE_SDS * lines) * (1 + _MOST_WEIGHT * spreads)
    near = np.clip(near, 0.0, clips)
    return np.where(levels < 0, np.stack([-near, clips]), np.stack([-clips, near]))


def adjusted_mean(
    models: ArmModels,
    arm: int,
    clipped: ClippedScores,
    sums: Floats,
    noise: NoiseDistribution,
    variances: tuple[Floats, Floats],
) -> AdjustedMean:
    """Return an arm's mean with every part of its error.

    Parameters
    ----------
    models, arm, clipped
        Lines and weights, which arm, and where its scores were clipped.
    sums : ndarray of shape (3,)
        Released: of (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4 over the arm's scores r in [-1, 1].
    noise : NoiseDistribution
        Of each of these sums.
    variances : pair of ndarray of shape (arms,)
        Variances of the lines at the mean of everyone's covariates: from who is in the sample, and from
        noise.
    """
    moments = models.moments
    arm_weights = models.balanced.arms[arm]
    rows = models.records.count
    size = float(moments.shares[arm]) * rows
    is_lost = float(sums.sum()) < max(
        _LOST_SDS * sqrt(3 * noise.variance), _SMALLEST * rows / len(moments.shares)
    )
    # The three sums count at the ends and between them.
    low_end, high_end = clipped.ends[:, arm] / rows
    weights = np.array([low_end, (low_end + high_end) / 2, high_end])
    squares = np.array([low_end**2, low_end * high_end, high_end**2])
    value = models.balanced.levels[arm] + arm_weights.shared + float(weights @ sums)
    unused = max(1 - len(moments.overall) / size, _LEAST_UNUSED)
    product = arm_weights.product + clipped.missed[arm] + expected_shared(arm_weights.shared)
    low, high = map(float, models.records.study.outcome_range)
    unit = _unit(models)
    weights = unit * weights
    squares = unit**2 / unused * squares
    of_covariates, of_noise = variances
    further_sampling = float(of_covariates[arm]) + arm_weights.sampling * unit**2
    error = Uncertainty(
        noise=weighted_sum(np.abs(weights), [noise] * 3),
        variance=float(squares @ sums) + further_sampling,
        variance_cap=float(squares.max()) * size + further_sampling,
        variance_noise=weighted_sum(np.abs(squares), [noise] * 3),
        extra=product * unit**2 + float(of_noise[arm]),
        bias=high - low if is_lost else unit * (arm_weights.bias + float(clipped.lost[arm])),
    )
    middle = (low + high) / 2 + models.scale.location.centre * (high - low) / 2
    estimate = min(max(middle + unit * float(value), low), high)
    return AdjustedMean(estimate, error, size, rows * sqrt(moments.share_error))
