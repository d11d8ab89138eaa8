"""Adjusted mean outcomes of private arms, two or several: what everybody would have in each.

Moments, lines and weights are those of the effect of two arms (`doubly_robust`), for as many arms as there are: a
record is in one of them, so that all together cost what one does. An arm's mean is what its line says at the mean of
everyone's covariates, and the mean of its weighted residuals, released as counts, sums and squares by arm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import sqrt
from typing import Any, TypeVar

import numpy as np

from counterveil.data.features import require_covariates
from counterveil.estimators.moments.doubly_robust import (
    LARGEST_WEIGHT_SDS,
    PAGES,
    SIZES,
    ArmDesign,
    ArmModels,
    RowScale,
    adjusted_said,
    arm_design,
    arm_models,
    arms_affordable,
    chain_of,
    chosen_clip,
    expected_shared,
    far_lost,
    longest_weighted,
    mechanisms_of,
    not_corrected,
    over_scaled,
    release_sizes,
    unaffordable,
)
from counterveil.estimators.moments.records import Records
from counterveil.inference.measures import IndependentArmMeans, with_rare_events
from counterveil.inference.noise_distribution import NoiseDistribution
from counterveil.inference.noise_sums import weighted_sum
from counterveil.inference.uncertainty import Uncertainty
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.results.answering import Facts, answer_request
from counterveil.results.arms import ArmsResult, Shared
from counterveil.results.effect import Effect, Linear
from counterveil.results.question import Question
from counterveil.results.result import MeasureResult
from counterveil.rows.counts import release_sums
from counterveil.rows.moments.scores import TERM_BITS, OwnScore, own_score_sums
from counterveil.rows.moments.sensitivity import SCORE_TERMS
from counterveil.session import BaseSession, Gate, Plan
from counterveil.settings import DoublyRobust

# An arm of fewer rows than so many standard deviations of their noise, or than this part of an equal one, is lost: its
# mean may be anywhere.
_LOST, _SMALLEST = 4.0, 0.06
# The rows of an arm that coefficients of its line do not use up are no less than this part.
_LEFT = 0.5
# How far events lie from the end where most are: standard deviations of their line, and of weights.
_EVENT_DISTANCE_SDS, _MOST_WEIGHT = 3.0, 4.0
_PAGES = (*PAGES, "rows/moments/group_scores.proof.md")


@dataclass(frozen=True, slots=True)
class AdjustedMean:
    """An arm's mean outcome with its error, in units of the outcome, and its released number of rows."""

    estimate: float
    error: Uncertainty
    size: float
    size_sd: float


@dataclass(frozen=True, slots=True)
class _Clipped:
    """The ends that scores of the arms are clipped at, (2, arms), and bounds of how far that moves an arm's mean."""

    ends: Floats
    lost: Floats
    missed: Floats


def release_means(
    gate: Gate, plan: Plan, records: Records, design: ArmDesign
) -> tuple[list[AdjustedMean], Shared]:
    """Return the mean of every arm, the reference first, and what their errors have in common."""
    models = arm_models(gate, records, design, Estimand.ATE)
    clipped = _clipped(gate, models, design)
    centres = clipped.ends.sum(axis=0) / 2
    units = np.diff(clipped.ends, axis=0)[0] / 2
    score = OwnScore(models.fit.lines(models.moments), models.found.score.weights, centres, units)
    sums = release_own_scores(gate, models.rows, models.scale, score, design.pure)
    noise: NoiseDistribution = (
        plan.cells_noise("score", SCORE_TERMS.absolute)
        if design.pure
        else plan.coordinate_noise("score", SCORE_TERMS.euclidean)
    )
    chance, unknown = _of_covariates(models)
    parts = np.diag(chance), np.diag(unknown)
    means = [_mean(models, arm, clipped, own, noise, parts) for arm, own in enumerate(sums)]
    shared = (one - np.diag(np.diag(one)) for one in (chance, unknown))
    return means, Shared(*(tuple(map(tuple, one.tolist())) for one in shared))


def _of_covariates(models: ArmModels) -> tuple[Floats, Floats]:
    """Return the covariances (arms, arms) of all lines at the mean of everyone's covariates, in units of the outcome.

    They are those from who is in the sample, and from noise: that mean is the one of the Grams.
    """
    moments = models.moments
    slopes = models.fit.slopes.values * _unit(models)
    off = moments.means - moments.overall
    within = np.einsum("a,aij->ij", moments.shares, moments.covariances)
    everyone = within + np.einsum("a,ai,aj->ij", moments.shares, off, off)
    noise = len(slopes) * moments.mean_sd**2
    return slopes @ everyone @ slopes.T / models.rows.count, noise * slopes @ slopes.T


def _unit(models: ArmModels) -> float:
    """Return the unit of the scale, in units of the outcome."""
    low, high = models.rows.source.study.outcome_range
    return models.scale.unit * float(high - low) / 2


def release_own_scores(gate: Gate, records: Records, scale: RowScale, score: OwnScore, pure: bool) -> Floats:
    """Return for every arm the sums of (1-r)^2/4, (1-r^2)/2 and (1+r)^2/4 over its rows' scores r, (arms, 3)."""

    def values() -> list[Fraction]:
        ((counts, totals, squares),) = records.run(over_scaled, own_score_sums, scale, score)
        one = Fraction(1, 1 << TERM_BITS)
        parts = [(n, one * s, one * one * q) for n, s, q in zip(counts, totals, squares, strict=True)]
        return [term for n, s, q in parts for term in ((n - 2 * s + q) / 4, (n - q) / 2, (n + 2 * s + q) / 4)]

    released = release_sums(gate, "score", values, pure, SCORE_TERMS.absolute, SCORE_TERMS.euclidean)
    return released.floats().reshape(-1, 3)


def _clipped(gate: Gate, models: ArmModels, design: ArmDesign) -> _Clipped:
    """Return scores clipped where a histogram of each arm's sizes says."""
    moments, fit, scale = models.moments, models.fit, models.scale
    shares = moments.shares
    rows = models.rows.count
    slopes = models.found.score.weights[:, 1:]
    # Weights of an arm are one on average once its share multiplies them.
    spreads = shares * np.sqrt(np.einsum("ai,aij,aj->a", slopes, moments.covariances, slopes))
    typical = np.sqrt(fit.residual * (1 + spreads**2))
    score = OwnScore(fit.lines(moments), models.found.score.weights, np.zeros(len(shares)), typical / shares)
    counts, sd = release_sizes(gate, models.rows, scale, score, SIZES, design.pure)
    counts = counts.reshape(len(shares), -1)
    least = scale.least_clip(fit.levels) * (1 + LARGEST_WEIGHT_SDS * spreads)
    bounds = shares * longest_weighted(score.lines, score.weights, scale)
    clips, lost, missed = (np.empty(len(shares)) for _ in range(3))
    for arm, share in enumerate(shares):
        edges = typical[arm] * SIZES
        unseen = not_corrected(moments, fit, arm, slopes[arm], edges / share)
        far = sqrt(fit.residual) * float(1 + spreads[arm])
        found, lost_sd, longest = far_lost(moments, scale, {arm: slopes[arm]}, edges / share)
        hidden = found, lost_sd, longest * share
        numbers = float(typical[arm]), 1.0, far, unseen, hidden, float(least[arm]), scale.place
        clips[arm], lost[arm], missed[arm] = chosen_clip(
            counts[arm], sd, edges, design.score_unit / share, share * rows, *numbers, float(bounds[arm])
        )
    return _Clipped(_ends(models, clips, spreads) / shares, lost, missed)


def _ends(models: ArmModels, clips: Floats, spreads: Floats) -> Floats:
    """Return where scores are clipped below and above, (2, arms): events no farther than the many may lie."""
    if not models.scale.place.whole:
        return np.stack([-clips, clips])
    # Of events nearly all rows are at one end, to which residuals are short.
    levels = models.fit.levels
    slopes = models.fit.slopes.values
    lines = np.sqrt(np.einsum("ai,aij,aj->a", slopes, models.moments.covariances, slopes))
    near = (1 - np.abs(levels) + _EVENT_DISTANCE_SDS * lines) * (1 + _MOST_WEIGHT * spreads)
    near = np.clip(near, 0.0, clips)
    return np.where(levels < 0, np.stack([-near, clips]), np.stack([-clips, near]))


def _mean(
    models: ArmModels,
    arm: int,
    clipped: _Clipped,
    sums: Floats,
    noise: NoiseDistribution,
    covariates: tuple[Floats, Floats],
) -> AdjustedMean:
    """Return an arm's mean with every part of its error, from the three released sums of its scores."""
    moments = models.moments
    side = models.found.sides[arm]
    scale = models.scale
    rows = models.rows.count
    study = models.rows.source.study
    seen = float(sums.sum())
    size = float(moments.shares[arm]) * rows
    lost = seen < max(_LOST * sqrt(3 * noise.variance), _SMALLEST * rows / len(moments.shares))
    # The three sums count at the ends and between them.
    low, high = clipped.ends[:, arm] / rows
    weights = np.array([low, (low + high) / 2, high])
    squares = np.array([low**2, low * high, high**2])
    value = models.found.levels[arm] + side.shared + float(weights @ sums)
    used = max(1 - len(moments.overall) / size, _LEFT)
    product = side.product + clipped.missed[arm] + expected_shared(side.shared)
    low, high = map(float, study.outcome_range)
    unit = _unit(models)
    weights = unit * weights
    squares = unit**2 / used * squares
    bias = high - low if lost else unit * (side.bias + float(clipped.lost[arm]))
    more = float(covariates[0][arm]) + side.sampling * unit**2
    error = Uncertainty(
        noise=weighted_sum(np.abs(weights), [noise] * 3),
        variance=float(squares @ sums) + more,
        variance_cap=float(squares.max()) * size + more,
        variance_noise=weighted_sum(np.abs(squares), [noise] * 3),
        extra=product * unit**2 + float(covariates[1][arm]),
        bias=bias,
    )
    middle = (low + high) / 2 + scale.place.centre * (high - low) / 2
    estimate = min(max(middle + unit * float(value), low), high)
    return AdjustedMean(estimate, error, size, rows * sqrt(moments.share_error))


def adjusted_arms(session: BaseSession, question: Question) -> ArmsResult:
    """Return the adjusted private means of all arms; n is public and nothing else is."""

    def facts(means: Sequence[AdjustedMean], shared: Shared) -> Facts:
        low, high = map(float, session.study.outcome_range)
        found = []
        for label, one in zip(session.study.treatment_labels, means, strict=True):
            known = with_rare_events(one.error, (low, high), (one.size,))
            mean = Linear(one.estimate, known, (low, high))
            found.append(Effect(label, mean, question.level, size=one.size, size_sd=one.size_sd))
        return Facts(means=tuple(found), shared=shared)

    return _answered(ArmsResult, session, question, facts, said={"question": "arms"})


def measured(session: BaseSession, question: Question) -> MeasureResult:
    """Return the private measure of what both arms' mean outcomes would be if everyone were in them."""

    # Both errors are taken for independent, which for a ratio near one is too much.
    def facts(means: Sequence[AdjustedMean], _shared: Shared) -> Facts:
        control, treated = means
        low, high = map(float, session.study.outcome_range)
        values = treated.estimate, control.estimate
        errors, sizes = (treated.error, control.error), (treated.size, control.size)
        return Facts(
            measure=question.measure,
            numbers=IndependentArmMeans(values, errors, (low, high), sizes),
            details={"mean_treated": values[0], "mean_control": values[1]},
        )

    return _answered(MeasureResult, session, question, facts)


Answer = TypeVar("Answer", ArmsResult, MeasureResult)


def _answered(
    kind: type[Answer],
    session: BaseSession,
    question: Question,
    facts: Callable[[Sequence[AdjustedMean], Shared], Facts],
    said: Mapping[str, Any] | None = None,
) -> Answer:
    """Return the answer that the released means of all arms are the facts of; refused where they are not affordable."""
    require_covariates(session.study, "doubly_robust")
    features, design = arm_design(session, question, question.settings or DoublyRobust())
    if not arms_affordable(design):
        raise unaffordable(design, means=True)
    question = replace(question, mechanism=design.mechanism)
    chain = chain_of(session, design, means=True)
    plan = chain.plan()
    records = Records(session.batches, features)

    def compute(gate: Gate) -> Facts:
        found = facts(*release_means(gate, plan, records, chain))
        public = {"rows": design.rows, "features": design.features, "mechanism": design.drawn}
        details = {"adjusted": True} | public | found.pop("details", {})
        return Facts(adjusted_said(session, features, chain), details=details, **found)

    drawn = mechanisms_of(design)
    return answer_request(kind, session, question, plan, compute, pages=_PAGES, mechanisms=drawn, said=said)
