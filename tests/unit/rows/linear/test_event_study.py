"""Brute force for comparisons by period: one person moves them within their bounds, with the weights of a change."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from tests.contract.recording import record
from tests.plain_questions import question
from tests.unit.rows.exact_gate import public_rows
from tools.loose_study import study_of

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.estimators.linear.event_study import periods_plan
from counterveil.estimators.linear.public_comparison import comparison
from counterveil.rows.linear.moved_rows import last_changes
from counterveil.rows.public import private_table

PERIODS = ("a", "b", "y")
TREATED = (1, 1, 0, 0)


def study(**more):
    return study_of("t", "y", (-1, 1), control=0, before=("a", "b"), **more)


def periods_table(rows, told=None):
    columns = dict(zip(PERIODS, zip(*rows, strict=True), strict=True))
    return Table.attach({"t": list(TREATED)} | {k: list(v) for k, v in columns.items()}, told or study())


def periods_question(method="difference_in_means", epsilon=1):
    return question("outcome", method, epsilon=epsilon, estimand="ATT")


@pytest.mark.parametrize("change", [None, (-1, 1)])
def test_no_person_moves_more_than_the_claim(monkeypatch, change):
    told = study(change_range=change)
    rest = ((0, 1, -1), (-1, 1, 1), (1, 0, 0))
    given, bounds = {}, None
    for first in product((-1, 0, 1), repeat=3):
        passed = record(monkeypatch)
        rows = periods_table((first, *rest), told)
        data = {"t": list(TREATED)} | {
            name: [row[k] for row in (first, *rest)] for k, name in enumerate(PERIODS)
        }
        cv.event_study(data, told, protects="outcome", epsilon=100, noise=cv.SeededNoise(0))
        monkeypatch.undo()
        given[first] = {name: float(one.exact[0]) for name, one in passed.items()}
        bounds = {name: float(one.sensitivity) for name, one in passed.items()}
        assert rows.rows == 4
    names = {"period 0", "period 1", "period 2"} if change is None else {"period 0", "period 2"}
    assert {name for name in bounds if name.startswith("period")} == names
    for name, bound in bounds.items():
        all_values = [one[name] for one in given.values()]
        moved = max(all_values) - min(all_values)
        assert moved <= bound * (1 + 1e-9)
        if name.startswith("period"):
            # Two in either arm, and a range of 2 for measurements and for declared changes.
            assert bound == pytest.approx(1.0)
            assert moved == pytest.approx(bound, rel=1e-6)


def test_weights_are_those_of_the_last_change():
    rng = np.random.default_rng(1)
    n = 300
    told = cv.Study(
        cv.Treatment("t", control=0), cv.Change("y", (-4, 4), before=("a", "b")), {"x": cv.Range(0, 1)}
    )
    x = rng.uniform(0, 1, n)
    data = {"t": (rng.uniform(size=n) < 0.3 + 0.4 * x).astype(int), "x": x}
    data |= {name: x + rng.normal(0, 0.5, n) for name in PERIODS}
    rows = last_changes(public_rows(Table.attach(data, told)), 1)
    made = comparison(rows, periods_question("weighting", epsilon=10**12))
    units = made.outcomes.form.units / 2.0**made.outcomes.form.bits
    assert units[made.rows.treated].sum() == pytest.approx(1, abs=1e-6)
    assert units[~made.rows.treated].sum() == pytest.approx(-1, abs=1e-6)
    found = cv.event_study(data, told, protects="outcome", epsilon=1e12, noise=cv.SeededNoise(0))
    measures = private_table(made.rows).measures
    change = (measures[2] - measures[1]) * 8 / OUTCOME_STEPS
    assert found.effect("y").estimate == pytest.approx(float(units @ change), abs=1e-3)


def test_the_budget_is_split_over_all_periods():
    plan = periods_plan(periods_question(epsilon=4), 5, 2, Fraction(1, 5), by_change=False)
    parts = dict(plan.amounts)
    assert sum(parts.values()) <= 4
    assert parts["period 2"] == parts["period 4"] == pytest.approx(4 * 0.8 / 5)
    assert "variance 2" not in parts
    assert "period 2" not in dict(
        periods_plan(periods_question(), 5, 2, Fraction(1, 5), by_change=True).amounts
    )
