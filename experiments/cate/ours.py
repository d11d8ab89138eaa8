"""Our answers, through the front door."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import counterveil as cv
from counterveil.questions.cate.cate import cate
from experiments.cate.instances import Instance

Floats = NDArray[np.float64]

FUNCTIONS = ("auto", "t_learner", "r_learner", "random_features")
AT_QUERIES = ("bins", "fold_aggregation")
# Where only outcomes are private: the automatic choice, and functions whatever it would choose.
OUTCOMES = {"outcomes: auto": "auto", "outcomes: series": "series"}
OUTCOME_CONSTANT = "outcomes: constant private ATE"
_KAPPA = 0.25


def our_answers(study: Instance, method: str, epsilon: float, seed: int) -> Floats:
    """Return the effects that a proved method gives at the queries."""
    found = cate(
        study.table,
        study.study,
        protects="outcome" if method in OUTCOMES else "record",
        epsilon=epsilon,
        method=OUTCOMES.get(method, method),
        queries=list(study.queries.rows),
        noise=cv.SeededNoise(seed),
    )
    return np.asarray(found.effect())


def outcome_constant(study: Instance, epsilon: float, seed: int) -> Floats:
    """Return the average effect for everybody, only outcomes being private."""
    result = cv.ate(study.table, study.study, protects="outcome", epsilon=epsilon, noise=cv.SeededNoise(seed))
    return np.full(len(study.queries), result.estimate)


def constant_answers(study: Instance, epsilon: float, seed: int) -> Floats:
    """Return the private average effect for everybody."""
    result = cv.ate(
        study.table,
        study.study,
        protects="record",
        epsilon=epsilon,
        delta=min(1e-6, 1 / (10 * study.table.rows)),
        method="doubly_robust",
        # Where adjusting is not affordable, arms are compared as they are.
        settings=cv.settings.DoublyRobust(unaffordable="contrast", kappa=_KAPPA),
        noise=cv.SeededNoise(seed),
    )
    return np.full(len(study.queries), result.estimate)
