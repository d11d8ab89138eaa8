"""Our answers under the names of the tables."""

from __future__ import annotations

import numpy as np

import counterveil as cv
from counterveil.numerics.arrays import Floats
from counterveil_lab.reproduce.papers.cate.methods import our_answers
from counterveil_lab.reproduce.papers.cate.studies import Instance

FUNCTIONS = ("auto", "t_learner", "r_learner")
# Where only outcomes are private: the automatic choice, and functions whatever it would choose.
OUTCOMES = {"outcomes: auto": "auto", "outcomes: series": "series"}
OUTCOME_CONSTANT = "outcomes: constant private ATE"


def named_answers(study: Instance, method: str, epsilon: float, seed: int) -> Floats:
    """Return the effects at the queries by a method of the tables."""
    protects = "outcome" if method in OUTCOMES else "record"
    return our_answers(study, epsilon, seed, protects=protects, method=OUTCOMES.get(method, method))


def outcome_constant(study: Instance, epsilon: float, seed: int) -> Floats:
    """Return the average effect for everybody, only outcomes being private."""
    result = cv.ate(study.table, study.study, protects="outcome", epsilon=epsilon, noise=cv.SeededNoise(seed))
    return np.full(len(study.queries), result.estimate)
