"""Lengths that are expected from public numbers do not grow with epsilon or delta, but for richer features."""

from itertools import product
from math import sqrt

import numpy as np
import pytest
from scipy.special import expit
from tests.plain_questions import question
from tests.unit.rows.exact_gate import public_rows

import counterveil as cv
from counterveil.data import Table
from counterveil.estimators.linear.budget_split import TYPICAL_SD, chosen_share, effect_plan
from counterveil.estimators.linear.weighting import weighted_effect
from counterveil.estimators.pairs.budget import choices, chosen
from counterveil.privacy import Budget
from counterveil.questions.auto import expected_widths
from counterveil.rows.linear.weighted_outcomes import linear_bounds
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.session import BaseSession

EPSILONS, DELTAS = ("1", "2", "8"), ("0", "1e-9", "1e-6")
STUDY = cv.Study(
    cv.Treatment("t", control=0), cv.Outcome("y", (-1, 2)), {"a": cv.Range(-1, 1), "b": cv.Range(-1, 1)}
)
# What is solved for numerically, such as weights, agrees to the first. The others are how much longer than the shortest
# an interval of richer features may be.
NEAR, FIFTH, QUARTER = 1 + 1e-3, 1.2, 1.25


def people(n=1200):
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (n, 2))
    t = rng.random(n) < expit(x[:, 0])
    return {"t": t.astype(int), "y": 0.4 + 0.1 * t + 0.2 * x[:, 0], "a": x[:, 0], "b": x[:, 1]}


TABLE = Table.attach(people(), STUDY)


def asked(level, method, budget):
    return question(level, method, epsilon=budget.epsilon, delta=budget.delta)


def of_outcomes(budget):
    pure = asked("outcome", "weighting", budget).in_pure_noise()
    effect = weighted_effect(public_rows(TABLE), pure)
    bounds = linear_bounds(public_rows(TABLE), linear_form(effect.coefficients), effect.variance_form())
    share = chosen_share(bounds, pure, effect.expected_part)
    sampling = (
        effect.expected_part * float(TYPICAL_SD * bounds.width) ** 2 * float(bounds.squares * bounds.factor)
    )
    return sqrt(sampling + effect_plan(pure, share).noise("effect", bounds.estimate).variance)


def of_pairs(budget):
    return sqrt(min(choice.length for choice in choices(TABLE, budget)))


def of_records(budget):
    with BaseSession(TABLE, STUDY, budget=budget, noise=cv.SeededNoise(1)) as session:
        return expected_widths(session, asked("record", "auto", budget)).get("doubly_robust", np.inf)


def of_chosen_pairs(budget):
    return sqrt(chosen(TABLE, budget).length)


CASES = {"outcome": (of_outcomes, NEAR), "shortest pairs": (of_pairs, NEAR), "records": (of_records, QUARTER)}
CASES["pairs"] = of_chosen_pairs, FIFTH


@pytest.mark.parametrize(("expected", "slack"), CASES.values(), ids=CASES)
def test_no_expected_length_grows_with_epsilon_or_delta(expected, slack):
    lengths = np.array([[expected(Budget(*budget)) for budget in product([e], DELTAS)] for e in EPSILONS])
    assert (lengths[1:] <= slack * lengths[:-1]).all()
    assert (lengths[:, 1:] <= slack * lengths[:, :-1]).all()
    assert lengths[-1, -1] < lengths[0, 0]
