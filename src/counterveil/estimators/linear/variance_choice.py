"""Chooses the form of an effect's released variance that is expected to give the shortest interval.

The variance is V = sum over groups of (S / df) Q, with Q the least sum of squared residuals around a line in
public features plus a ridge penalty (strength s) on its slopes, S the sum of squared weights and df the
degrees of freedom (`rows/linear/residual_variance.py`). Lines take from V what covariates explain, at the
price of degrees of freedom. With loading(s) what a V with lines of strength s holds of a mean outcome of
variance one (`spectrum.py`), the strongest lines are taken for which

    loading(s) >= imbalance^2,

imbalance being the root mean square bias of the weights for such a mean outcome. So V, and the interval,
still cover in expectation the bias that the imbalance of the weights causes. Among the allowed strengths the
one is taken for which

    (1/6)^2 sum c_i^2 (part of variance left) + sd of the noise * (largest move of V by one outcome)

is least, in parts of the squared range; 1/6 is a typical standard deviation of outcomes (`TYPICAL_SD`).

In: features, weights, treatments and the budget, all public. Out: the form of V, whose sensitivity is proved
in `rows/linear/residual_variance.proof.md`. The constants steer how long intervals are; privacy does not
depend on them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from fractions import Fraction
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray

from counterveil.estimators.linear.budget_split import TYPICAL_SD, effect_plan
from counterveil.estimators.linear.spectrum import Spectrum, residual_variance
from counterveil.estimators.linear.weighting_design import Weighted
from counterveil.numerics.arm_rows import ArmRows
from counterveil.results.question import Question
from counterveil.rows.linear.ranged_fit import MOST_WEIGHTED_SQUARES
from counterveil.rows.linear.residual_variance import ResidualVariance

# The page that proves the bound of what is chosen here.
PAGE = "rows/linear/residual_variance.proof.md"
# How strongly slopes may be fitted: not at all, or as in ridge regression with ever less penalty. The
# features have a total variance of one, so with p of them directions of strength p go half.
_GROWTH = 1.5
_STRENGTHS = [3 * _GROWTH**step for step in range(26)]
# Features whose variances, in order, grow by less than this factor from one to the next are taken together.
_ALIKE = 1.25
# The least that is left of any feature, and the least closeness of a fit beside the closest.
_LEAST_LEFT = 1e-6
_LEAST_CLOSE = 1e-4
# The part of the way to the strength at which the bias no longer fits; the loading falls a little unevenly.
_SAFE = 0.98
# Rows that a part of an arm has at least.
_LEAST_ROWS = 40
# A guess of how much of the outcomes' variance follows the features; it only steers the choice.
_EXPLAINED = 0.5
# The share of the budget at which the choices are compared.
_SHARE = Fraction(1, 4)


def chosen_residual_variance(
    design: Weighted, treated: NDArray[np.bool_], question: Question, parts_count: int = 1
) -> ResidualVariance:
    """Return the form of the variance that is expected to give the shortest interval.

    Fitting slopes removes from the variance what covariates explain, and costs degrees of freedom. Only as
    much is removed as still covers the bias that the remaining imbalance causes in expectation. With several
    parts, each arm is cut by the size of its weights, and every part has a variance and a line of its own.
    """
    shape = fitting_shape(design)
    spectra = tuple(
        Spectrum.of(design.features, design.weights, inside=rows, shape=shape, held=held)
        for arm, arm_rows in zip((treated, ~treated), design.arms, strict=True)
        for rows, held in _cut(arm, design.weights, parts_count, arm_rows)
    )
    noise = sqrt(effect_plan(question, _SHARE).noise("variance", Fraction(1)).variance)
    squares = sum(spectrum.weight for spectrum in spectra)

    def loading(strength: float) -> float:
        return sum(spectrum.loading(strength) for spectrum in spectra)

    def expected(strength: float) -> float:
        typical = float(TYPICAL_SD) ** 2 * squares * _part_left(loading(strength), squares)
        return typical + noise * max(spectrum.largest_move(strength) for spectrum in spectra)

    def fits(strength: float) -> bool:
        exact = max(spectrum.weighted_squares(strength) for spectrum in spectra) <= MOST_WEIGHTED_SQUARES
        enough = exact and min(spectrum.freedom(strength) for spectrum in spectra) >= 1
        return enough and loading(strength) >= design.imbalance**2

    # Loading and freedom fall with the strength, weighted squares grow: if one does not fit, no stronger one does.
    index = (
        bisect_left(_STRENGTHS, True, key=lambda strength: not fits(strength)) if fits(_STRENGTHS[0]) else 0
    )
    allowed = _STRENGTHS[:index]
    if 0 < index < len(_STRENGTHS):
        # Loadings are nearly a power of the strength: one more step ends where the bias just fits.
        near, far = (loading(strength) for strength in _STRENGTHS[index - 1 : index + 1])
        between = allowed[-1] * _growth(design.imbalance**2 / near, far / near)
        allowed += [between] if fits(between) else []
    # More removed is better, until degrees of freedom run out.
    while len(allowed) > 1 and expected(allowed[-2]) < expected(allowed[-1]):
        allowed.pop()
    return residual_variance(design.features, spectra, min((0.0, *allowed[-1:]), key=expected))


def _cut(
    arm: NDArray[np.bool_], weights: NDArray[np.float64], count: int, everybody: ArmRows
) -> Iterator[tuple[NDArray[np.bool_], ArmRows | None]]:
    """Yield the arm's rows in parts by the size of their weights, half of them, half of the rest, and so on.

    So weights differ least within parts where they are largest. Small arms are cut into fewer parts. With
    each part come the sums over its rows, where they are known.
    """
    rows = np.flatnonzero(arm)
    cuts = [len(rows) - (len(rows) >> step) for step in range(1, count) if len(rows) >> step >= _LEAST_ROWS]
    if not cuts:
        yield arm, everybody
        return
    order = rows[np.argsort(np.abs(weights[rows]), kind="stable")]
    for chunk in np.split(order, cuts):
        inside = np.zeros(len(arm), np.bool_)
        inside[chunk] = True
        yield inside, None


def fitting_shape(design: Weighted) -> NDArray[np.float64]:
    """Return (p,) how closely to fit each feature, so that what is left of it is in proportion to its imbalance.

    If features had nothing to do with each other, a ridge of strength d_j would leave 1/(1 + d_j c_j) of the
    variance c_j of feature j. The weights treat features of the same variance alike, so that these share one
    d.
    """
    treated, control = design.arms
    variances = np.diagonal(treated.products + control.products) / len(design.features)
    order = np.argsort(variances)
    jumps = variances[order[1:]] > _ALIKE * variances[order[:-1]]
    group = np.empty(len(order), np.intp)
    group[order] = np.concatenate([[0], np.cumsum(jumps)])
    squares = float(design.weights @ design.weights)
    imbalance = np.bincount(group, design.gaps) / (squares * np.bincount(group, variances))
    close = np.maximum(1 / np.clip(imbalance, _LEAST_LEFT, 1.0) - 1, 0.0)[group] / variances
    close = np.maximum(close, _LEAST_CLOSE * close.max()) if close.any() else np.ones_like(close)
    return np.asarray(close / float(close @ variances))


def _growth(remaining: float, least: float) -> float:
    """Return the growth after which `remaining` of the loading is left, where one step leaves `least` of it."""
    if not 0.0 < least < remaining < 1.0:
        return 1.0
    return float(_GROWTH ** (_SAFE * log(remaining) / log(least)))


def expected_part(form: ResidualVariance, weights: NDArray[np.float64]) -> float:
    """Return how much of the outcomes' variance the form is expected to hold, as a part of it."""
    return _part_left(form.loading, float(weights @ weights))


def _part_left(loading: float, squares: float) -> float:
    return 1 - _EXPLAINED + _EXPLAINED * loading / squares
