"""Every method of the paper's figures by its name: answers at the queries for each epsilon, and without noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from counterveil.errors import ParameterError
from counterveil.numerics.arrays import Floats
from counterveil.reproduce.papers.cate.comparisons import (
    boosted,
    constant_answers,
    difference_answers,
    not_private,
    our_answers,
)
from counterveil.reproduce.papers.cate.dp_cate import FINITE, KERNEL, Fit, finite_effects, published_fit
from counterveil.reproduce.papers.cate.studies import Instance, anonymised, study_of
from counterveil.reproduce.rivals.mondrian import K

DELTA = "1e-5"
FOREST, NETWORK, LINEAR = FINITE
LITERAL, ALPHA = KERNEL
OURS, OURS_OUTCOME = "ours, record", "ours, outcome"
CONSTANT, DIFFERENCE, ZERO, WITHOUT = "constant effect", "difference in means", "zero", "without privacy"
BOOSTED = "DP-EBM"
# Learners of the paper, without noise, after k-anonymisation of the covariates.
ANONYMOUS = {"k-anonymous forest": FOREST, "k-anonymous network": NETWORK}
# Ours has no form without noise; at this epsilon what is left is sampling error and bias.
HARDLY_NOISY = 1000.0


@dataclass(frozen=True, eq=False)
class Answered:
    """What a method answers without noise, or with hardly any (NaN where it has no such form), and at each epsilon."""

    without: Floats
    answers: dict[float, Floats]


def answered(study: str, method: str, learner: str, seed: int, epsilons: Sequence[float]) -> Answered:
    """Return the answers of a method on a study of the paper; both are drawn from the seed."""
    people = study_of(study, seed)
    if method in FINITE or method in KERNEL:
        fit = _fit(study, method, learner, seed)
        return Answered(fit.effects, {epsilon: fit.answers(epsilon) for epsilon in epsilons})
    free = _without_noise(people, method, seed)
    if method in ANONYMOUS or method in (ZERO, WITHOUT):
        return Answered(free, dict.fromkeys(epsilons, free))
    return Answered(free, {epsilon: _private(people, method, epsilon, seed) for epsilon in epsilons})


@lru_cache(maxsize=64)
def _fit(study: str, method: str, learner: str, seed: int) -> Fit:
    """Return the fit of a published form, which several figures show."""
    return published_fit(study_of(study, seed), method, seed, DELTA, learner)


def _without_noise(people: Instance, method: str, seed: int) -> Floats:
    count = len(people.queries)
    if method in ANONYMOUS:
        return finite_effects(anonymised(people, K), ANONYMOUS[method])
    if method == ZERO:
        return np.zeros(count)
    if method == DIFFERENCE:
        treated, y = people.table.treated, people.outcomes
        return np.full(count, y[treated].mean() - y[~treated].mean())
    if method == BOOSTED:
        return np.full(count, np.nan)
    return not_private(people) if method == WITHOUT else _private(people, method, HARDLY_NOISY, seed)


def _private(people: Instance, method: str, epsilon: float, seed: int) -> Floats:
    """Return the private answers, not numbers where the method refuses so few rows for the budget."""
    try:
        return _asked(people, method, epsilon, seed)
    except ParameterError:
        return np.full(len(people.queries), np.nan)


def _asked(people: Instance, method: str, epsilon: float, seed: int) -> Floats:
    if method == CONSTANT:
        return constant_answers(people, epsilon, seed, DELTA)
    if method == DIFFERENCE:
        return difference_answers(people, epsilon, seed)
    if method == BOOSTED:
        return boosted(people, epsilon, seed, float(DELTA))
    protects = "record" if method == OURS else "outcome"
    return our_answers(people, epsilon, seed, protects=protects, delta=DELTA)
