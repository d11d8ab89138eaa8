"""Every release about pairs of treatment and outcome under the auditor, on its worst neighbours.

The estimator's own code hands the vectors over; the weakened copy draws a third of every noise and must be caught.
"""

import numpy as np
import pytest
from tests.statistical.released_alone import ReleasedAlone, check
from tests.thinned import thinned

import counterveil as cv
from counterveil.data import Table
from counterveil.numerics.bases import Axis
from counterveil.privacy import Budget, Estimand
from counterveil.statistics.linear.functions import series_basis
from counterveil.statistics.outcome_place import WHOLE, Spread, find_place
from counterveil.statistics.pairs.effect import (
    ARM_SCORES,
    WHOLE_SCORES,
    Fit,
    Functions,
    Models,
    Target,
    arm_sums,
    best_scores,
    function_sensitivity,
    function_sums,
    ladder,
    pair_sensitivity,
    pair_sums,
)

STUDY = cv.Study("t", "y", (-1, 1), {"x": cv.Range(-1, 1)}, treated=1, control=0, randomised=False)
X = np.linspace(-1, 1, 20)
SPREAD = Spread(WHOLE, 0.4, np.array([0.1, 0.4, 1.1]), np.array([0.3, 0.5, 0.2]))


def table(pair):
    """Return twenty rows of which the last, the longest, has this treatment and outcome."""
    t, y = np.arange(20) % 2, np.zeros(20)
    t[-1], y[-1] = pair
    return Table.attach({"x": X, "t": t, "y": y}, STUDY)


def models(gate, made, _pure):
    rows = ladder(made)[0]
    gate.release_vector("models", pair_sums(rows, made.treated, made.outcome, WHOLE), pair_sensitivity(rows))


def sums_of(made, form, arms):
    rows = ladder(made)[0]
    n, p = rows.z.shape
    fit = Fit(np.zeros(p), np.eye(p) / 100, np.zeros(p), np.eye(p) / 100, 1.0)
    known = Models(np.full(n, 0.5), np.full(n, 0.1), np.full(n, -0.1), fit, (fit, fit), 0.4)
    whole = Target.of(Estimand.ATE, known.propensity)
    targets = [whole.of_arm(arm) for arm in (0, 1)] if arms else [whole]
    scores = [best_scores(rows, known, SPREAD, target, 1e6) for target in targets]
    return [value for one in scores for value in one.sums(made.treated, made.outcome, form)]


def score(gate, made, _pure):
    gate.release_cells("score", sums_of(made, WHOLE_SCORES, arms=False), WHOLE_SCORES[1])


def arm_scores(gate, made, _pure):
    gate.release_cells("score", sums_of(made, ARM_SCORES, arms=True), ARM_SCORES[1])


def functions(gate, made, _pure):
    own = Functions.of(made, series_basis((Axis("x", "legendre", 1, -1.0, 2.0),), 1, False))
    rows, (whole, n) = own.rows, (ladder(made)[0], made.rows)
    fit = Fit(np.zeros(2), np.eye(2) / 100, np.zeros(2), np.eye(2) / 100, 1.0)
    known = Models(np.full(n, 0.5), np.full(n, 0.1), np.full(n, -0.1), fit, (fit, fit), 0.4)
    found = best_scores(whole, known, SPREAD, Target.of(Estimand.ATE, known.propensity), 1e6)
    gate.release_vector(
        "models", function_sums(rows, found, made.treated, made.outcome), function_sensitivity(rows)
    )


def arm_models(gate, made, _pure):
    rows, arm = ladder(made)[0], made.arm + (np.arange(20) % 3 == 0)
    gate.release_vector("models", arm_sums(rows, arm, 3, made.outcome, WHOLE), pair_sensitivity(rows))


def centre(gate, made, _pure):
    find_place(gate, made)


# What is released, and the pairs that move it furthest.
CASES = {
    "models": (models, ((1, 1.0), (1, -1.0)), False),
    "several arms": (arm_models, ((1, 1.0), (0, 1.0)), False),
    "score": (score, ((1, 1.0), (1, -1.0)), True),
    "arms": (arm_scores, ((1, 1.0), (0, 1.0)), True),
    "functions": (functions, ((1, 1.0), (1, -1.0)), False),
    "centre": (centre, ((1, 0.9), (0, -0.9)), True),
}


def released(name, claim, at_once=False):
    run, pairs, counts = CASES[name]
    name = {"arms": "score", "functions": "models", "several arms": "models"}.get(name, name)
    return ReleasedAlone(name, run, tuple(map(table, pairs)), claim, counts=counts, at_once=at_once)


@pytest.mark.parametrize("name", thinned(CASES, "score"))
def test_keeps_its_claim_and_a_third_of_the_noise_does_not(name):
    check(released(name, Budget(2)), 800, 1)


def test_the_vector_keeps_an_approximate_claim():
    check(released("models", Budget(2, "1e-3")), 1400, 2)


@pytest.mark.parametrize("name", list(CASES))
def test_no_release_breaks_its_claim_over_many_samples(name):
    check(released(name, Budget("0.5"), at_once=True), 30_000, 3)
