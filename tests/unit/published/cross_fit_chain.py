"""The chain of cross-fitting on a few records, with a gate that notes what it is asked to release."""

from fractions import Fraction
from itertools import product

import counterveil as cv
from counterveil.data import Table
from counterveil.data.features import feature_map
from counterveil.numerics.public_choices import two_parts
from counterveil.privacy import Estimand
from counterveil.published.doubly_robust import CrossFit, cross_fit_plan, release
from counterveil.results.question import Question
from counterveil.session import Released, ReleasedVector
from counterveil.statistics.moments.orthogonal import Design

# Outcomes vary about alike in both halves: where one seems to have lost its variance, residuals are not clipped.
STUDY = cv.Study("t", "y", (-1, 1), {"x": cv.Range(-1, 1), "b": cv.Binary()}, treated=1, control=0)
REST = [(0.1, 0, 0, -0.5), (0.9, 1, 1, 0.6), (-0.6, 0, 0, 0.1), (0.4, 1, 1, -0.2), (-0.2, 0, 1, 0.9)]
REST = [*REST, (0.7, 1, 0, -0.8), (-1.0, 1, 0, -0.4)]
PLACE = 2
RECORDS = list(product((-1.0, 0.3, 1.0), (0, 1), (0, 1), (-1.0, 1.0)))


class NotingGate:
    """Notes what it is asked to release, adds no noise, and answers what is `fixed` in place of what it is given.

    Neighbours are compared given the same outputs, as the proof does.
    """

    def __init__(self, plan, fixed):
        self.plan, self.fixed, self.values, self.sensitivity = plan, fixed, {}, {}

    def release_vector(self, name, values, sensitivity):
        values = values() if callable(values) else values
        self.values[name], self.sensitivity[name] = [float(value) for value in values], float(sensitivity)
        return ReleasedVector(self.fixed.get(name, tuple(values)), 1e-4)

    release_cells = release_vector

    def release(self, name, value, sensitivity):
        self.release_vector(name, [value], sensitivity)
        return Released(value, self.plan.noise(name, sensitivity))


def question(estimand, budget=None):
    budget = budget or cv.Budget(2)
    words = {
        "level": 0.95,
        "mechanism": None,
        "request_id": None,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
    }
    return Question.ask(method="published.cross_fit_proved", protects="record", estimand=estimand, **words)


def handed_over(record, estimand, fixed, budget=None, penalty=0.1):
    """Return the gate after the estimator's own chain on REST with this record among them."""
    rows = [*REST[:PLACE], record, *REST[PLACE:]]
    x, b, t, y = zip(*rows, strict=True)
    table = Table.attach({"x": list(x), "b": list(b), "t": list(t), "y": list(y)}, STUDY)
    asked = question(estimand, budget)
    plan = cross_fit_plan(asked, False)
    half = Design(len(rows) // 2, 2, asked.budget, asked.mechanism)
    gate = NotingGate(plan, fixed)
    design = CrossFit(feature_map(STUDY, 1), half, plan, penalty, None)
    release(gate, table, design, Estimand(estimand))
    return gate


def known_outputs(estimand, budget=None, penalty=0.1):
    """Return what the chain releases without noise for the first record: outputs to hold fixed."""
    values = handed_over(RECORDS[0], estimand, {}, budget, penalty).values
    return {name: tuple(map(Fraction, own)) for name, own in values.items()}


def own_half():
    """Return the half, 1 or 2, that the changing record is in."""
    rows = len(REST) + 1
    return 1 if PLACE in two_parts(rows, rows // 2)[0] else 2
