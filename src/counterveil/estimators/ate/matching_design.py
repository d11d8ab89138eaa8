"""What covariates and treatments alone decide about matching: scores, limits, coefficients.

Where only outcomes are private all of this is public and free, whatever it reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from counterveil.data import Table
from counterveil.estimators.ate.covariates import Features, covariate_features
from counterveil.estimators.ate.matching_settings import ADAPTIVE, MatchingSettings
from counterveil.kernels.matching import Matching, SortedArms
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
# Limits that are compared together, and how many rows of matchings (8 MB for each arm).
_TOGETHER, _AT_ONCE = 2, 1 << 20


@dataclass(frozen=True, slots=True)
class Scored:
    """A table's features, and for every row its arm and its propensity score."""

    features: Features
    treated: NDArray[np.bool_]
    score: Floats
    _sorted: list[SortedArms] = field(default_factory=list, compare=False, repr=False)

    @property
    def by_score(self) -> SortedArms:
        """The rows sorted by score, within each arm; sorted when first asked for."""
        if not self._sorted:
            self._sorted.append(SortedArms(self.treated, self.score))
        return self._sorted[0]

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
    return Matched(design.by_score.match(neighbours, *limits, estimand=estimand), limits)


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
    return _best_match(design, settings, estimand, noise_variance)


def _best_match(design: Scored, settings: MatchingSettings, estimand: str, noise_variance: float) -> Matched:
    """Return the matching of least supposed error among those of a ladder of limits."""
    expected = expected_errors(design, estimand, noise_variance)
    limits = _ladder(design, settings, estimand)
    at_once = max(1, min(_TOGETHER, _AT_ONCE // len(design.score)))
    equal = sum(1 / arm for arm in design.arms)
    best, least = None, math.inf
    for start in range(0, len(limits), at_once):
        # Below the most uses without a limit, some unit is used as often as the limit allows, and no weights
        # have less variance than equal ones: where that alone is too much, it is so for all higher limits.
        largest = limits[start] / settings.neighbours / len(design.score)
        if noise_variance * largest**2 + RESIDUAL**2 * equal > least:
            break
        group = [(limit, limit) for limit in limits[start : start + at_once]]
        tried = [match(design, settings.neighbours, both, estimand) for both in group]
        for matched, error in zip(tried, expected(tried), strict=True):
            if best is None or error < least:
                best, least = matched, error
    assert best is not None  # the ladder has a step
    return best


def expected_errors(
    design: Scored, estimand: str, noise_variance: float
) -> Callable[[Sequence[Matched]], list[float]]:
    """Return the function that gives matchings' supposed squared errors, as parts of the range squared.

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
    room = np.empty((0, len(treated)))

    def expected(tried: Sequence[Matched]) -> list[float]:
        nonlocal room
        found = [matched.matching for matched in tried]
        if len(room) < 2 * len(found):
            room = np.empty((2 * len(found), len(treated)))  # kept: memory afresh for each call costs more
        # One row a matching and arm: coefficients of treated rows are never negative, those of others never positive.
        by_arm = room[: 2 * len(found)]
        for place, m in enumerate(found):
            np.maximum(m.coefficients, 0.0, out=by_arm[2 * place])
            np.subtract(by_arm[2 * place], m.coefficients, out=by_arm[2 * place + 1])
        gaps = (((sums(values, by_arm) - target) / scale) ** 2).mean(axis=1)
        score_gaps = (sums(logit[:, None], by_arm)[:, 0] - logit_target) ** 2 / (logit_spread**2 or 1.0)
        biases = SIGNAL**2 * ((1 - SCORE_SHARE) * gaps + SCORE_SHARE * score_gaps).reshape(-1, 2).sum(axis=1)
        return [
            float(bias) + RESIDUAL**2 * float(m.coefficients @ m.coefficients) + noise_variance * m.largest**2
            for bias, m in zip(biases, found, strict=True)
        ]

    return expected


def _ladder(design: Scored, settings: MatchingSettings, estimand: str) -> list[int]:
    """Return the limits to compare, ascending from the least that can serve everyone to the most that is ever used.

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
    return sorted({int(step) for step in steps})
