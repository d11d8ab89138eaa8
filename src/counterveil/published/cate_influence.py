"""The published scale: the largest influence function of a record, found by many searches and by sampling.

What is maximised is |rho (phi - g)|, over E[lambda] in the proofs (Lemma 2 and (49)) and not in the main text
(11). It is linear in the outcome, so that only the two ends of its range count. The search is the published one,
L-BFGS-B in the box of features, from its centre; that alone finds too little where learners are piecewise
constant, so it is also started from the best of many random points and corners, which count by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from counterveil.privacy import Budget
from counterveil.published.cate_learners import Function
from counterveil.published.cate_losses import FeatureBox, Nuisances, loss_at

Floats = NDArray[np.float64]

_SEED = 0
_STEP = 1e-6
_MOST_STEPS = 25


@dataclass(frozen=True, slots=True)
class Search:
    """How hard the supremum is looked for: searches beside the one from the centre, and random points."""

    starts: int = 8
    points: int = 20_000


@dataclass(frozen=True, slots=True)
class Supremum:
    """The largest value found, and what the published single search from the centre finds."""

    value: float
    single: float


def largest_influence(
    nuisances: Nuisances,
    effect: Function,
    learner: str,
    box: FeatureBox,
    outcome_range: tuple[float, float],
    search: Search,
) -> Supremum:
    """Return the supremum of |rho (phi - g)| over the box, both treatments and the range of the outcome."""

    def influence(points: Floats) -> Floats:
        fitted, sizes = effect(points), []
        for treated in (False, True):
            loss = loss_at(nuisances, learner, points, np.full(len(points), treated))
            sizes += [np.abs(loss.rho * (loss.phi(end) - fitted)) for end in outcome_range]
        return np.asarray(np.max(sizes, axis=0), dtype=np.float64)

    drawn = [box.draw(search.points // 2, _SEED, corners) for corners in (False, True)]
    points = np.unique(np.vstack(drawn), axis=0)
    sampled = influence(points)
    best = points[np.argsort(sampled)[::-1][: search.starts // 2]]
    others = box.draw(search.starts - len(best), _SEED + 1)
    single = _climb(influence, _centre(box), box.free)
    found = [_climb(influence, start, box.free) for start in (*best, *others)]
    return Supremum(max([single, float(sampled.max()), *found]), single)


def published_factor(budget: Budget, rows: int) -> float:
    """Return 5 sqrt(2 ln n ln(2/delta)) / (epsilon n), by which the supremum is multiplied."""
    epsilon, delta = float(budget.epsilon), float(budget.delta)
    return 5 * sqrt(2 * log(rows) * log(2 / delta)) / (epsilon * rows)


def _centre(box: FeatureBox) -> Floats:
    """Return the middle of the box, with the first of a set of labels."""
    return np.where(box.free, 0.5, box.draw(1, _SEED)[0])


def _climb(influence: Function, start: Floats, free: NDArray[np.bool_]) -> float:
    """Return the largest value on the way of one search; features that are not free stay."""
    places = np.flatnonzero(free)
    best = float(influence(start[None])[0])
    if not len(places):
        return best

    def falling(values: Floats) -> tuple[float, Floats]:
        nonlocal best
        points = np.tile(start, (len(places) + 1, 1))
        points[:, places] = values
        # Forward differences, backward at the upper end, all in one prediction.
        steps = np.where(values + _STEP <= 1, _STEP, -_STEP)
        points[np.arange(1, len(points)), places] += steps
        found = influence(points)
        best = max(best, float(found[0]))
        return -float(found[0]), -(found[1:] - found[0]) / steps

    minimize(
        falling,
        start[places],
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * len(places),
        options={"maxiter": _MOST_STEPS},
    )
    return best
