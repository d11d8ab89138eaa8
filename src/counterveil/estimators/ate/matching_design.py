"""What covariates and treatments alone decide about matching: scores, limits, coefficients.

Where only outcomes are private all of this is public and free, whatever it reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.estimators.ate.covariates import Features, covariate_features
from counterveil.estimators.ate.matching_settings import ADAPTIVE, MatchingSettings
from counterveil.kernels.matching import Matching, matching_coefficients
from counterveil.kernels.matching_limit import adaptive_limit, arm_limits
from counterveil.kernels.propensity import fit_propensity
from counterveil.kernels.thin_products import sums

Floats = NDArray[np.float64]
# How often a treated and a control unit may be used; None is without limit.
Limits = tuple[int | None, int | None]

# What is supposed of outcomes when limits are compared, as parts of their range: the spread of their mean
# over the covariates, and the spread around that mean.
SIGNAL, RESIDUAL = 1 / 16, 1 / 16
# How much of the mean's variance is supposed to follow the score.
SCORE_SHARE = 0.3
# Scores nearer to 0 or 1 than this count as that near.
_LEAST_SCORE = 1e-6
# How many limits are compared; fewer where each takes long.
_TRIES, _FEW_TRIES, _MANY_ROWS = 12, 6, 50_000


@dataclass(frozen=True, slots=True)
class Scored:
    """A table's features, and for every row its arm and its propensity score."""

    features: Features
    treated: NDArray[np.bool_]
    score: Floats

    @property
    def arms(self) -> tuple[int, int]:
        """Number of treated and of control rows."""
        treated = int(np.count_nonzero(self.treated))
        return treated, len(self.treated) - treated


@dataclass(frozen=True, slots=True)
class Matched:
    """A matching and the limits under which it was made."""

    matching: Matching
    limits: Limits


def scored(table: Table, penalty: float | None) -> Scored:
    """Return the propensity scores of a table by penalised logistic regression on all covariates."""
    features = covariate_features(table)
    fit = fit_propensity(features.values, table.treated, 1 / table.rows if penalty is None else penalty)
    return Scored(features, table.treated, fit.scores)


def match(design: Scored, neighbours: int, limits: Limits, estimand: str) -> Matched:
    """Return the matching under given limits, rows being served in their order."""
    found = matching_coefficients(design.treated, design.score, neighbours, *limits, estimand=estimand)
    return Matched(found, limits)


def published_limits(design: Scored, settings: MatchingSettings, epsilon: float, *, feasible: bool) -> Limits:
    """Return the limits of equations 9 and 10 (or of a fixed number in their place) for both arms.

    `feasible` raises the smaller arm's limit until all of the larger arm can be matched.
    """
    treated, control = design.arms
    small, large = sorted((treated, control))
    if settings.limit is None or isinstance(settings.limit, str):
        free = match(design, settings.neighbours, (None, None), "ATE")
        most = int(free.matching.uses.max()) / settings.neighbours
        k = adaptive_limit(epsilon, settings.c, large, most)
    else:
        k = settings.limit
    if feasible:
        k = max(k, math.ceil(large / small))
    k_treated, k_control = arm_limits(k, treated, control)
    return k_treated * settings.neighbours, k_control * settings.neighbours


def chosen_match(
    design: Scored, settings: MatchingSettings, estimand: str, epsilon: float, noise_variance: float
) -> Matched:
    """Return the matching under the limit that the settings ask for.

    `noise_variance` is that of the noise at sensitivity one.
    """
    if settings.limit is None:
        return match(design, settings.neighbours, (None, None), estimand)
    if settings.limit == ADAPTIVE or isinstance(settings.limit, int):
        feasible = settings.limit == ADAPTIVE
        limits = published_limits(design, settings, epsilon, feasible=feasible)
        return match(design, settings.neighbours, limits, estimand)
    expected = expected_error(design, estimand, noise_variance)
    tried = (
        match(design, settings.neighbours, limits, estimand) for limits in _ladder(design, settings, estimand)
    )
    return min(tried, key=expected)


def expected_error(design: Scored, estimand: str, noise_variance: float) -> Callable[[Matched], float]:
    """Return the function that gives a matching's supposed squared error, as a part of the range squared.

    It adds the noise, the variance of outcomes around their mean, and the squared bias left by covariates
    (and score) whose weighted means differ between an arm and those whose effect is estimated.
    """
    values, treated = design.features.values, design.treated
    inside = np.clip(design.score, _LEAST_SCORE, 1 - _LEAST_SCORE)
    logit = np.log(inside / (1 - inside))
    whose = {"ATE": np.ones(len(treated)), "ATT": treated * 1.0, "ATC": ~treated * 1.0}[estimand]
    # Features have mean zero.
    spread, logit_spread = np.sqrt(np.einsum("ij,ij->j", values, values) / len(values)), float(logit.std())
    scale = np.where(spread > 0, spread, 1.0)
    target, logit_target = whose @ values / whose.sum(), float(whose @ logit / whose.sum())

    def expected(matched: Matched) -> float:
        c = matched.matching.coefficients
        by_arm = np.stack([np.where(treated, c, 0.0), np.where(treated, 0.0, -c)])
        gap = 2 * float((((sums(values, by_arm) - target) / scale) ** 2).mean())
        score_gap = float(((by_arm @ logit - logit_target) ** 2).sum()) / (logit_spread**2 or 1.0)
        bias = SIGNAL**2 * ((1 - SCORE_SHARE) * gap + SCORE_SHARE * score_gap)
        return bias + RESIDUAL**2 * float(c @ c) + noise_variance * matched.matching.largest**2

    return expected


def _ladder(design: Scored, settings: MatchingSettings, estimand: str) -> list[Limits]:
    """Return the limits to compare, from the least that can serve everyone to the most that is ever used.

    Both arms have the same one: the noise follows the largest coefficient, whichever arm it is in.
    """
    treated, control = design.arms
    demand = {
        "ATE": max(treated / control, control / treated),
        "ATT": treated / control,
        "ATC": control / treated,
    }
    least = max(1, math.ceil(settings.neighbours * demand[estimand]))
    free = match(design, settings.neighbours, (None, None), estimand)
    most = max(least, int(free.matching.uses.max()))
    tries = _TRIES if len(design.score) <= _MANY_ROWS else _FEW_TRIES
    steps = np.geomspace(least, most, tries).round().astype(int)
    return [(step, step) for step in sorted({int(step) for step in steps})]
