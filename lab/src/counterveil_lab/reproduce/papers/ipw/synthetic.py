"""The paper's synthetic studies: 50 normal covariates divided by the largest length of a row, a linear outcome.

The paper divides by the sample's own largest length and gives no bounds of outcomes or propensities; here as there the
length is read off the rows, the largest outcome as well, and propensities are supposed to be between 0.1 and 0.9.
These are experiments, not private releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

import counterveil as cv
from counterveil.numerics.arrays import Floats
from counterveil.privacy import Estimand
from counterveil.published import weighting as published
from counterveil.published.matching import fit_without_intercept
from counterveil_lab.reproduce.papers.ipw.forms import (
    DELTA,
    PARTLY,
    PENALTY,
    PLAIN,
    RELEASED,
    weight_noise,
)
from counterveil_lab.reproduce.rivals.ours import KAPPA

COVARIATES, WEIGHTED = 50, 1000
WEIGHTING, AUTO = "ours, ipw", "ours, auto"
# Nearly every covariate of such a study, and twice the spread of outcomes: public round figures for our forms.
_REACH, _SPREAD = 0.5, 5


@dataclass(frozen=True)
class Study:
    """Rows of one trial: the first `fitted` for the propensity model, the others to be weighted."""

    x: Floats
    treated: NDArray[np.bool_]
    y: Floats
    fitted: int
    effect: float

    @cached_property
    def weights(self) -> Floats:
        """Weights of the propensity model without noise."""
        return fit_without_intercept(self.x[: self.fitted], self.treated[: self.fitted], PENALTY)

    def weighted(self, weights: Floats) -> float:
        """Return the weighted contrast of the other rows under these weights of the model."""
        x, t, y = self.x[self.fitted :], self.treated[self.fitted :], self.y[self.fitted :]
        return published.weighted_sum(x @ weights, t, y, Estimand.ATE)


def drawn(seed: int, fitted: int, effect: float) -> Study:
    """Return one trial's rows."""
    generator = np.random.default_rng([4, seed])
    a, b = generator.normal(size=(2, COVARIATES))
    x = generator.normal(scale=3, size=(fitted + WEIGHTED, COVARIATES))
    for part in (slice(fitted), slice(fitted, None)):
        x[part] /= np.linalg.norm(x[part], axis=1).max()
    treated = generator.uniform(size=len(x)) < expit(x @ a)
    y = x @ b + effect * treated + generator.normal(scale=0.1, size=len(x))
    return Study(x, treated, y, fitted, effect)


def bias_of(study: Study, epsilon: float) -> tuple[float, float]:
    """Return the bias g of equation 8 as printed, and as its proof derives it.

    Printed, the exponent changes its sign with the arm. The proof takes E exp(z.x) = E exp(-z.x) = exp(s^2 |x|^2 / 2)
    for both arms, which is what noise that is symmetric gives.
    """
    x, t, y = study.x[study.fitted :], study.treated[study.fitted :], study.y[study.fitted :]
    sign = np.where(t, -1.0, 1.0)
    alpha = -sign * y * np.exp(sign * (x @ study.weights))
    exponent = weight_noise(epsilon, study.fitted) ** 2 * np.square(x).sum(axis=1) / 2
    printed = float(np.mean(alpha * np.expm1(sign * exponent)))
    return printed, float(np.mean(alpha * np.expm1(exponent)))


def simulated_bias(study: Study, epsilon: float, draws: int, seed: int) -> float:
    """Return the mean change of the weighted contrast over draws of the noise and their mirror images."""
    generator = np.random.default_rng([5, seed])
    noise = generator.normal(scale=weight_noise(epsilon, study.fitted), size=(draws, COVARIATES))
    values = [study.weighted(study.weights + sign * z) for z in noise for sign in (1, -1)]
    return float(np.mean(values)) - study.weighted(study.weights)


def estimates(study: Study, epsilon: float, seed: int) -> dict[str, float]:
    """Return one release of the published form and of ours on a trial."""
    generator = np.random.default_rng([6, seed])
    noisy = study.weights + generator.normal(scale=weight_noise(epsilon, study.fitted), size=COVARIATES)
    partly = study.weighted(noisy)
    largest = float(np.abs(study.y[study.fitted :]).max())
    bound = 2 * largest / WEIGHTED * max(1 / published.LOWEST, 1 / (1 - published.HIGHEST))
    sigma = sqrt(2 * log(1.25 / float(DELTA))) * bound / epsilon
    return {
        PLAIN: study.weighted(study.weights),
        PARTLY: partly,
        RELEASED: partly + float(generator.normal(scale=sigma)),
        **_ours(study, epsilon, seed),
    }


def _ours(study: Study, epsilon: float, seed: int) -> dict[str, float]:
    names = [f"x{place}" for place in range(COVARIATES)]
    domains = dict.fromkeys(names, cv.Range(-_REACH, _REACH))
    declared = cv.Study("t", "y", (-_SPREAD, _SPREAD), domains, control=0, randomised=False)
    frame = dict(zip(names, study.x.T, strict=True)) | {"t": study.treated.astype(np.int64), "y": study.y}
    paid: dict[str, Any] = {"epsilon": epsilon, "delta": DELTA, "noise": cv.SeededNoise(seed)}
    weighted = cv.published.ipw_proved(frame, declared, **paid)
    paid["noise"] = cv.SeededNoise(seed)
    chosen = cv.ate(frame, declared, protects="record", settings=cv.settings.Auto(kappa=KAPPA), **paid)
    return {WEIGHTING: weighted.estimate, AUTO: chosen.estimate}
