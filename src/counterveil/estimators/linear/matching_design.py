"""Scores, limits on the reuse of matches, and coefficients of a matched effect, from public columns.

    effect = sum_i c_i y_i,    c_i = +-(e_i + K_i) / m,

e_i being 1 for the m matched units whose effect is asked for (all for the ATE) and 0 for others, and K_i how
often row i serves as a match of such a unit, each time with the weight 1 / (neighbours of that unit); the
sign is + for the treated and - for controls, and the effect is in units of the outcome y. One outcome, which
lies in a range of width B, has the coefficient c_i and no other, so that it moves the effect by at most B max
|c_i| (proof: `rows/linear/linear_estimate.proof.md`). The noise is scaled to that number. A limit on how
often a row serves therefore trades noise, which it lowers, against bias, since units must then take farther
matches. Of the limits that are compared, the one is taken whose supposed squared error, in parts of B^2,

    sd^2 sum over arms of (0.7 mean_j (gap_j^2 / var_j) + 0.3 gap_score^2 / var_score)
        + sd^2 sum_i c_i^2 + noise max_i c_i^2

is least: squared bias, sampling variance, and variance of the noise. gap_j is the weighted mean of feature j
in the arm less its mean over those whose effect is asked for, gap_score the same for the logit of the
propensity score, and var_j and var_score are their variances over all rows. sd is the standard deviation
supposed of the mean outcome and of outcomes around it, in parts of B, and noise the variance of the noise at
sensitivity one. 0.3 (`SCORE_SHARE`) is the part of the mean outcome's variance that is supposed to follow the
score.

The limit "adaptive" is instead that of PrivATE (Yuan et al., "PrivATE: Differentially Private Average
Treatment Effect Estimation for Observational Data"), equations 9 and 10; see `published_limits`.

In: covariates and treatments, which are public where outcomes alone are private, so that nothing here is paid
for out of the privacy budget. Out: a `Matched`. The constants steer the choice of a limit; privacy does not
depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from counterveil.data.features import Features, covariate_features
from counterveil.numerics.arrays import Floats
from counterveil.numerics.matching import MatchedUnits, SortedArms, adaptive_limit, arm_limits
from counterveil.numerics.products import sums
from counterveil.numerics.propensity import fit_propensity
from counterveil.rows.public import PublicRows
from counterveil.settings import Matching as MatchingSettings
from counterveil.settings.methods import ADAPTIVE, NUMBERS

# How often a treated and a control unit may be used; None is without limit.
Limits = tuple[int | None, int | None]

# How much of the mean's variance is supposed to follow the score.
SCORE_SHARE = 0.3
# Scores nearer to 0 or 1 than this count as that near.
_LEAST_SCORE = 1e-6
# How many limits are compared; fewer where each takes long.
_TRIES = 12
_FEW_TRIES = 6
_MANY_ROWS = 50_000
# Limits that are compared together, and how many rows of matchings (32 MB for each arm).
_TOGETHER = 4
_AT_ONCE = 1 << 22
# Numbers of features that are picked at once.
_PICKED = 1 << 15


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

    matching: MatchedUnits
    limits: Limits


def scored(rows: PublicRows) -> Scored:
    """Return the propensity scores of rows: declared, or by penalised logistic regression on all covariates."""
    features = covariate_features(rows)
    score = rows.score
    if score is None:
        score = fit_propensity(features.values, rows.treated, 1 / rows.rows).scores
    return Scored(features, rows.treated, score)


def match(design: Scored, neighbours: int, limits: Limits, estimand: str) -> Matched:
    """Return the matching under given limits, rows being served in their order."""
    return Matched(design.by_score.match(neighbours, *limits, estimand=estimand), limits)


def published_limits(design: Scored, settings: MatchingSettings, epsilon: float, *, feasible: bool) -> Limits:
    """Return the limits of PrivATE (Yuan et al., label level, equations 9 and 10) for both arms.

    With n the rows of the larger arm and M the most often that a unit is used without a limit, over the
    number N of neighbours, the smaller arm has the limit

        k = min(max(round(sqrt(epsilon c n M / 2)), 1), M),

    which trades the paper's supposed variance of the noise, 2 k^2 B^2 / epsilon^2, against its supposed
    squared bias, (c B n M / k)^2; c is the paper's error coefficient (`settings.c`). The larger arm has k
    times the ratio of the sizes, at least 1. Both are multiplied by N, which makes them uses of one row. A
    whole number in `settings.limit` stands in for k. `feasible` raises k until all of the larger arm can be
    matched.
    """
    treated, control = design.arms
    small, large = sorted((treated, control))
    if settings.limit is None or isinstance(settings.limit, str):
        most = design.by_score.most_uses(settings.neighbours, "ATE") / settings.neighbours
        k = adaptive_limit(epsilon, settings.c, large, most)
    else:
        k = settings.limit
    if feasible:
        k = max(k, math.ceil(large / small))
    k_treated, k_control = arm_limits(k, treated, control)
    return k_treated * settings.neighbours, k_control * settings.neighbours


def chosen_match(
    design: Scored,
    settings: MatchingSettings,
    estimand: str,
    epsilon: float,
    noise_variance: float,
    sd: float = NUMBERS,
) -> Matched:
    """Return the matching under the limit that the settings ask for.

    `noise_variance` is that of the noise at sensitivity one, `sd` the standard deviation assumed of outcomes.
    """
    if settings.limit is None:
        return match(design, settings.neighbours, (None, None), estimand)
    if settings.limit == ADAPTIVE or isinstance(settings.limit, int):
        feasible = settings.limit == ADAPTIVE
        limits = published_limits(design, settings, epsilon, feasible=feasible)
        return match(design, settings.neighbours, limits, estimand)
    return _best_match(design, settings, estimand=estimand, noise_variance=noise_variance, sd=sd)


def _best_match(
    design: Scored, settings: MatchingSettings, estimand: str, noise_variance: float, sd: float
) -> Matched:
    """Return the matching of least supposed error among those of the compared limits."""
    expected = expected_errors(design, estimand, noise_variance, sd)
    limits = _compared_limits(design, settings, estimand)
    at_once = max(1, min(_TOGETHER, _AT_ONCE // len(design.score)))
    treated, control = design.arms
    served = {"ATE": treated + control, "ATT": treated, "ATC": control}[estimand]
    equal = sd**2 * (1 / treated + 1 / control)
    best = None
    least = math.inf

    def hopeless(limit: int) -> bool:
        # Everyone finds a match. Below the most uses without a limit some unit is used as often as the limit
        # allows (and of the average effect once more, for itself), and no weights have less variance than equal
        # ones: where that alone is too much, it is so for all higher limits.
        largest = ((estimand == "ATE") + limit / settings.neighbours) / served
        return noise_variance * largest**2 + equal > least

    for start in range(0, len(limits), at_once):
        group = [limit for limit in limits[start : start + at_once] if not hopeless(limit)]
        if not group:
            break
        tried = [match(design, settings.neighbours, (limit, limit), estimand) for limit in group]
        for matched, error in zip(tried, expected(tried), strict=True):
            if best is None or error < least:
                best = matched
                least = error
    assert best is not None  # there is at least one limit
    return best


def expected_errors(
    design: Scored, estimand: str, noise_variance: float, sd: float = NUMBERS
) -> Callable[[Sequence[Matched]], list[float]]:
    """Return the function that gives matchings' supposed squared errors, as parts of the range squared.

    It adds the noise, the variance of outcomes around their mean, and the squared bias left by covariates
    (0.7 of it) and score (0.3) whose weighted means differ between an arm and those whose effect is
    estimated. `sd` is assumed of the mean outcome over the covariates, and of outcomes around it.
    """
    gaps = _Gaps(design, estimand)

    def expected(tried: Sequence[Matched]) -> list[float]:
        matchings = [matched.matching for matched in tried]
        biases = sd**2 * gaps.of(matchings)
        return [
            float(bias) + sd**2 * float(m.coefficients @ m.coefficients) + noise_variance * m.largest**2
            for bias, m in zip(biases, matchings, strict=True)
        ]

    return expected


class _Gaps:
    """Squared distances of weighted means from their targets, for one group of matchings after another."""

    def __init__(self, design: Scored, estimand: str) -> None:
        self.values = design.features.values
        treated = design.treated
        inside = np.clip(design.score, _LEAST_SCORE, 1 - _LEAST_SCORE)
        logit = np.log(inside / (1 - inside))
        whose = {"ATE": np.ones(len(treated)), "ATT": treated * 1.0, "ATC": ~treated * 1.0}[estimand]
        self.logit = logit[:, None]
        self.logit_target = float(whose @ logit / whose.sum())
        self.logit_variance = float(logit.var()) or 1.0
        # Features have mean zero.
        width = self.values.shape[1]
        self.target = np.zeros(width) if estimand == "ATE" else whose @ self.values / whose.sum()
        squares = np.einsum("ij,ij->j", self.values, self.values) / len(self.values)
        self.variance = np.where(squares > 0, squares, 1.0)
        few = 2 * np.count_nonzero(treated) < len(treated)
        # The smaller arm's rows are picked, those of the larger one are read with all others.
        self.smaller = bool(few)
        self.rows = np.flatnonzero(treated == few)
        # The weights of an arm that were seen last, and their distance.
        self.last: dict[bool, tuple[Floats, float]] = {}

    def of(self, matching: Sequence[MatchedUnits]) -> Floats:
        """Return for every matching the sum over both arms."""
        # Coefficients of treated rows are never negative, those of others never positive.
        by_arm = {
            arm: [np.maximum(m.coefficients * (2 * arm - 1), 0.0) for m in matching] for arm in (True, False)
        }
        return self._of_arm(True, by_arm[True]) + self._of_arm(False, by_arm[False])

    def _of_arm(self, arm: bool, weights: list[Floats]) -> Floats:
        """Return one distance for each; another limit often leaves the weights of an arm as they are."""
        before = [self.last[arm][0] if arm in self.last else None, *weights[:-1]]
        same = [
            old is not None and np.array_equal(candidate, old)
            for candidate, old in zip(weights, before, strict=True)
        ]
        fresh = [candidate for candidate, old in zip(weights, same, strict=True) if not old]
        distances = iter(self._distances(arm, np.stack(fresh)) if fresh else ())
        answer = np.empty(len(weights))
        for index, old in enumerate(same):
            answer[index] = self.last[arm][1] if old else next(distances)
            self.last[arm] = (weights[index], float(answer[index]))
        return answer

    def _distances(self, arm: bool, weights: Floats) -> Floats:
        """Return the distances of an arm's weights (k, n)."""
        if arm is self.smaller:
            means = np.zeros((len(weights), self.values.shape[1]))
            step = _PICKED // self.values.shape[1] + 1
            for first in range(0, len(self.rows), step):
                rows = self.rows[first : first + step]
                means += sums(self.values[rows], weights[:, rows])
        else:
            means = sums(self.values, weights)
        gaps = ((means - self.target) ** 2 / self.variance).mean(axis=1)
        score_gaps = (sums(self.logit, weights)[:, 0] - self.logit_target) ** 2 / self.logit_variance
        return np.asarray((1 - SCORE_SHARE) * gaps + SCORE_SHARE * score_gaps)


def _compared_limits(design: Scored, settings: MatchingSettings, estimand: str) -> list[int]:
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
    most = max(least, design.by_score.most_uses(settings.neighbours, estimand))
    tries = _TRIES if len(design.score) <= _MANY_ROWS else _FEW_TRIES
    steps = np.geomspace(least, most, tries).round().astype(int)
    return sorted({int(step) for step in steps})
