"""How much of the outcomes' dependence on covariates is taken out of the variance, decided from public numbers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.numerics.products import sums
from counterveil.privacy import Estimand
from counterveil.results.question import Question
from counterveil.settings import Matching
from counterveil.settings.methods import AUTO, BY_ARM
from counterveil.statistics.linear.budget import TYPICAL_SD, effect_plan
from counterveil.statistics.linear.kernels.balancing import ArmRows, arm_rows
from counterveil.statistics.linear.kernels.residual_variance import (
    MOST_REACH,
    ResidualVariance,
    Spectrum,
    residual_variance,
)
from counterveil.statistics.linear.kernels.weight_features import FeatureShares
from counterveil.statistics.linear.matching_design import Scored
from counterveil.statistics.linear.weighting_design import Weighted, shared_features

PAGE = "statistics/linear/kernels/residual_variance.proof.md"
# What an interval built on one variance for each arm does not cover.
# How strongly slopes may be fitted: not at all, or as in ridge regression with ever less penalty. The
# features have a total variance of one, so with p of them directions of strength p go half.
_GROWTH = 1.5
_STRENGTHS = [3 * _GROWTH**step for step in range(26)]
# Features whose variances, in order, grow by less than this factor from one to the next are taken together.
_ALIKE = 1.25
# The least that is left of any feature, and the least closeness of a fit beside the closest.
_LEAST_LEFT, _LEAST_CLOSE = 1e-6, 1e-4
# The part of the way to the strength at which the bias no longer fits; the loading falls a little unevenly.
_SAFE = 0.98
# Rows that a part of an arm has at least.
_LEAST_ROWS = 40
# A guess of how much of the outcomes' variance follows the features; it only steers the choice.
_EXPLAINED = 0.5
# The share of the budget at which the choices are compared.
_SHARE = Fraction(1, 4)


def chosen_residual_variance(
    found: Weighted, treated: NDArray[np.bool_], question: Question, parts: int = 1
) -> ResidualVariance:
    """Return the form of the variance that is expected to give the shortest interval.

    Fitting slopes removes from the variance what covariates explain, and costs degrees of freedom. Only as
    much is removed as still covers the bias that the remaining imbalance causes in expectation. With several
    `parts` each arm is cut by the size of its weights, and every part has a variance and a line of its own.
    """
    shape = fitting_shape(found)
    spectra = tuple(
        Spectrum.of(found.features, found.weights, rows, shape, held)
        for arm, whole in zip((treated, ~treated), found.arms, strict=True)
        for rows, held in _cut(arm, found.weights, parts, whole)
    )
    noise = sqrt(effect_plan(question, _SHARE).noise("variance", Fraction(1)).variance)
    squares = sum(spectrum.weight for spectrum in spectra)

    def loading(strength: float) -> float:
        return sum(spectrum.loading(strength) for spectrum in spectra)

    def expected(strength: float) -> float:
        typical = float(TYPICAL_SD) ** 2 * squares * _part(loading(strength), squares)
        return typical + noise * max(spectrum.largest_move(strength) for spectrum in spectra)

    def fits(strength: float) -> bool:
        exact = max(spectrum.reach(strength) for spectrum in spectra) <= MOST_REACH
        enough = exact and min(spectrum.freedom(strength) for spectrum in spectra) >= 1
        return enough and loading(strength) >= found.imbalance**2

    # Loading and freedom fall with the strength, and reach grows: where one does not fit, no stronger one does.
    place = (
        bisect_left(_STRENGTHS, True, key=lambda strength: not fits(strength)) if fits(_STRENGTHS[0]) else 0
    )
    allowed = _STRENGTHS[:place]
    if 0 < place < len(_STRENGTHS):
        # Loadings are nearly a power of the strength: one more step ends where the bias just fits.
        near, far = (loading(strength) for strength in _STRENGTHS[place - 1 : place + 1])
        between = allowed[-1] * _growth(found.imbalance**2 / near, far / near)
        allowed += [between] if fits(between) else []
    # More removed is better, until degrees of freedom run out.
    while len(allowed) > 1 and expected(allowed[-2]) < expected(allowed[-1]):
        allowed.pop()
    return residual_variance(found.features, spectra, min((0.0, *allowed[-1:]), key=expected))


def _cut(
    arm: NDArray[np.bool_], weights: NDArray[np.float64], parts: int, whole: ArmRows
) -> Iterator[tuple[NDArray[np.bool_], ArmRows | None]]:
    """Yield the arm's rows in parts by the size of their weights, half of them, half of the rest, and so on.

    So weights differ least within parts where they are largest. Small arms are cut into fewer parts. With each
    part come the sums over its rows, where they are known.
    """
    rows = np.flatnonzero(arm)
    cuts = [len(rows) - (len(rows) >> step) for step in range(1, parts) if len(rows) >> step >= _LEAST_ROWS]
    if not cuts:
        yield arm, whole
        return
    order = rows[np.argsort(np.abs(weights[rows]), kind="stable")]
    for part in np.split(order, cuts):
        inside = np.zeros(len(arm), np.bool_)
        inside[part] = True
        yield inside, None


def fitting_shape(found: Weighted) -> NDArray[np.float64]:
    """Return (p,) how closely to fit each feature, so that what is left of it is in proportion to its imbalance.

    If features had nothing to do with each other, a ridge of strength d_j would leave 1/(1 + d_j c_j) of the variance
    c_j of feature j. The weights treat features of the same variance alike, so that these share one d.
    """
    treated, control = found.arms
    variances = np.diagonal(treated.products + control.products) / len(found.features)
    order = np.argsort(variances)
    jumps = variances[order[1:]] > _ALIKE * variances[order[:-1]]
    group = np.empty(len(order), np.intp)
    group[order] = np.concatenate([[0], np.cumsum(jumps)])
    squares = float(found.weights @ found.weights)
    left = np.bincount(group, found.gaps) / (squares * np.bincount(group, variances))
    close = np.maximum(1 / np.clip(left, _LEAST_LEFT, 1.0) - 1, 0.0)[group] / variances
    close = np.maximum(close, _LEAST_CLOSE * close.max()) if close.any() else np.ones_like(close)
    return np.asarray(close / float(close @ variances))


def _growth(left: float, least: float) -> float:
    """Return by how much to grow so that the loading falls to `left` of it, where a step makes it fall to `least`."""
    if not 0.0 < least < left < 1.0:
        return 1.0
    return float(_GROWTH ** (_SAFE * log(left) / log(least)))


def expected_part(form: ResidualVariance, weights: NDArray[np.float64]) -> float:
    """Return how much of the outcomes' variance the form is expected to hold, as a part of it."""
    return _part(form.loading, float(weights @ weights))


def _part(loading: float, squares: float) -> float:
    return 1 - _EXPLAINED + _EXPLAINED * loading / squares


# How the variance of a matched effect is estimated: around lines in the covariates, or by pairs of rows.


# What a mean outcome is supposed to follow when the bias that matches leave is allowed for. Squares are not
# among it: what outcomes owe to them stays in the variance whole.
_SHARES = FeatureShares(0.7, 0.0, 0.05)
# Into how many parts each arm is cut by the size of coefficients, for outcomes may vary more where they are large.
_PARTS = 4
# Sums of products of covariates take this many multiplications at most; beyond it they take longer than matching.
_MOST_WORK = 1 << 23


def variance_by_arm(
    table: Table,
    design: Scored,
    settings: Matching,
    coefficients: NDArray[np.float64],
    question: Question,
) -> ResidualVariance | None:
    """Return the variance from residual variances in parts of each arm, or None where it comes from pairs of rows.

    Reads public columns only.
    """
    rows, columns = design.features.values.shape
    small = rows * columns**2 <= _MOST_WORK
    if not (settings.variance_by == BY_ARM or (settings.variance_by == AUTO and small)):
        return None
    found = left_by_matches(table, design, coefficients, question.estimand)
    return chosen_residual_variance(found, design.treated, question, _PARTS) if len(found.gaps) else None


def left_by_matches(
    table: Table, design: Scored, coefficients: NDArray[np.float64], estimand: Estimand
) -> Weighted:
    """Return the coefficients of a matched effect with the imbalance that they leave in covariates and score.

    Features are as many as vary over the rows, which may be none.
    """
    features, _ = shared_features(table, design.score, _SHARES)
    by_arm = np.stack([np.maximum(coefficients, 0.0), np.maximum(-coefficients, 0.0)])
    arms = arm_rows(features, design.treated)
    return Weighted.of(features, arms, coefficients, sums(features, by_arm), estimand)
