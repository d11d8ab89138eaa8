"""One effect for everybody in the clothes of a function, and the rule and the test that decide between the two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from counterveil.data import Study
from counterveil.inference.uncertainty import pointwise
from counterveil.numerics.bases import constant_basis
from counterveil.privacy.caveats import Caveat
from counterveil.results.cate_model import CateModel
from counterveil.results.result import Result

Floats = NDArray[np.float64]
# Directions of less variance than this part of the largest are noise of rounding.
_NEGLIGIBLE = 1e-10
# Under this name a model keeps the p-value of the test that effects do not differ.
P_VALUE = "heterogeneity_p"
# Before anything is spent, in parts of the outcome's range: the standard deviation that effects are supposed to have
# between people, and that of outcomes given treatment and covariates.
PLAUSIBLE, TYPICAL_SD = 1 / 16, 1 / 6


def pays(noise: float, functions: int, rows: int) -> bool:
    """Return whether a function is expected to be closer to effects of plausible difference than one number is.

    `noise` is that of its effects. Sampling is that of its weights but the first, which one number has too.
    """
    sampling = 2 * TYPICAL_SD * sqrt((functions - 1) / rows)
    return hypot(noise, sampling) <= PLAUSIBLE


def one_effect_model(study: Study, level: float, result: Result) -> CateModel:
    """Return a released average effect as a model; its interval is the result's at the asked level."""
    sd = result.uncertainty.half_width(level) / pointwise(level)
    noise = min(float(result.std_error.noise), sd)
    return CateModel(
        study=study,
        method=result.method,
        basis=constant_basis(),
        weights=np.array([result.estimate]),
        covariance=np.array([[sd**2]]),
        noise_covariance=np.array([[noise**2]]),
        level=level,
        guarantee=result.guarantee,
        spent=result.spent,
        releases=result.releases,
        not_covered=(Caveat.NOT_FOR_PEOPLE, *result.not_covered),
        heterogeneous=False,
        details=result.details,
        diagnostics=result.diagnostics,
        interval_of=result.interval_of,
        condition=result.condition,
        assumes=result.assumes,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Unshrunk:
    """Weights of an effect as measured, without a prior, and their covariance; their functions have these orders.

    The first is that of the constant, whose order is 0. `mean` are the mean features of the study's people, from
    public or released numbers.
    """

    weights: Floats
    covariance: Floats
    orders: Floats
    mean: Floats

    def differing(self) -> float:
        """Return the p-value of the hypothesis that effects do not differ: Wald's tests, and Bonferroni's bound.

        One is about the functions of first order, as if there were no others, the other about all of them.
        """
        information = _inverse(self.covariance)
        score = information @ self.weights
        kept = [np.flatnonzero(self.orders <= order) for order in dict.fromkeys((1.0, self.orders.max()))]
        found = []
        for own in kept:
            covariance = _inverse(information[np.ix_(own, own)])
            weights = (covariance @ score[own])[1:]
            z = float(weights @ _inverse(covariance[1:, 1:]) @ weights)
            found.append(float(chdtrc(len(weights), max(z, 0.0))) if len(weights) else 1.0)
        return min(1.0, len(found) * min(found))


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse of a symmetric matrix, zero in directions that rounding made."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > _NEGLIGIBLE * max(float(values.max(initial=0.0)), 0.0)
    return np.asarray((vectors[:, kept] / values[kept]) @ vectors[:, kept].T)


def decided(model: CateModel, measured: Unshrunk, automatic: bool) -> CateModel:
    """Return the function, or where `automatic` the average effect if noise and sampling explain how effects differ.

    Sampling and noise are both in the covariance that the test uses, at one minus the level of the intervals.
    """
    p = measured.differing()
    model = replace(model, details=model.details | {P_VALUE: p})
    if not automatic or p <= 1 - model.level:
        return model
    mean = measured.mean
    return replace(
        model,
        method=f"average of a function by {model.method}",
        basis=constant_basis(),
        weights=np.array([mean @ model.weights]),
        covariance=np.array([[mean @ model.covariance @ mean]]),
        noise_covariance=np.array([[mean @ model.noise_covariance @ mean]]),
        not_covered=(Caveat.NOT_FOR_PEOPLE, *model.not_covered),
        heterogeneous=False,
        higher=None,
        shrinkage=None if model.shrinkage is None else np.array([mean @ model.shrinkage]),
    )
