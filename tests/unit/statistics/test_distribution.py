"""A replaced row moves the counts of outcomes by the claimed amounts, with and without weights."""

from fractions import Fraction

import numpy as np
import pytest
from tests.unit.statistics.moments.fixed_outputs import FixedGate, largest_changes

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.numerics.products import linear_form
from counterveil.privacy import Budget
from counterveil.session import Kind, Plan
from counterveil.statistics.distribution import (
    NAME,
    CountCells,
    HistogramRelease,
    even_edges,
    histogram_plan,
    released_on,
    weighed_counts,
)
from counterveil.statistics.pairs.effect import ladder, released_propensities
from counterveil.statistics.time_tables import WeightedRows

STUDY = cv.Study("arm", "y", (0, 4), control=0, randomised=True)
EDGES = even_edges(STUDY, 4)
RECORDS = [(arm, y) for arm in (0, 1) for y in (0, 1, 2.5, 4)]


def release(mechanism):
    budget, kind = (Budget(1), Kind.CELLS) if mechanism == "laplace" else (Budget(1, "1e-6"), Kind.VECTOR)
    return HistogramRelease(Plan.split(budget, {NAME: Fraction(1)}, mechanism, {NAME: kind}), EDGES)


def counted(rows):
    columns = dict(zip(("arm", "y"), map(list, zip(*rows, strict=True)), strict=True))
    return Table.attach(columns, STUDY).run(CountCells.of(STUDY, EDGES))[0]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_all_small_data_sets(mechanism):
    made = release(mechanism)

    def run(rows):
        gate = FixedGate(made.plan, {})
        known = {"totals": (6.0,), "design": (1.0, 1.0)}
        made.histograms(gate, lambda: counted([*rows, (0, 1), (0, 1), (1, 3), (1, 3)]), **known)
        return gate

    change, claimed = largest_changes(run, RECORDS, 2)[NAME]
    assert change <= claimed * (1 + Fraction(1, 10**12))
    assert float(change) == pytest.approx(float(claimed), rel=1e-9)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_cells_of_a_found_place_move_no_more(mechanism):
    budget = Budget(1) if mechanism == "laplace" else Budget(1, "1e-6")
    made = released_on(STUDY, histogram_plan(budget, mechanism, "found"), "found", 500)
    # Released counts put most people near 1: cells lie there.
    answers = {"centre": [0, 9, 9] + [0] * 29, "spread": [12, 6, 0, 0, 0, 0, 0, 0]}

    def run(rows):
        arm, y = map(list, zip(*rows, (0, 1), (0, 1), (1, 3), (1, 3), strict=True))
        table, gate = Table.attach({"arm": arm, "y": y}, STUDY), FixedGate(made.plan, answers)
        placed = made.placed(gate, table)
        assert (placed.edges[0], placed.edges[-1]) == (0, 4)
        assert placed.edges[-2] < 1
        counts = table.run(CountCells.of(STUDY, placed.edges))[0]
        placed.histograms(gate, lambda: counts, totals=(6.0,), design=(1.0, 1.0))
        return gate

    found = largest_changes(run, [*RECORDS, (0, 0.2), (1, 0.25)], 2)
    assert set(found) == {"centre", "spread", NAME}
    for change, claimed in found.values():
        assert float(change) == pytest.approx(float(claimed), rel=1e-9)
        assert change <= claimed * (1 + Fraction(1, 10**12))


def test_public_weights_move_no_more():
    own = WeightedRows(np.arange(3), linear_form(np.array([0.5, 0.2, 0.3])))
    made = release("laplace")

    def run(cells):
        gate = FixedGate(made.plan, {})
        tables = [*own.table(np.array(cells), 4), *([Fraction(0)] * 4)]
        made.histograms(gate, lambda: tables, totals=(2.0, 1.0), design=(1.0, 1.0))
        return gate

    change, claimed = largest_changes(run, range(4), 3)[NAME]
    assert claimed * Fraction(9, 10) < change <= claimed


def test_weights_of_released_propensities_move_no_more():
    # Rows hold a public covariate; treatments and outcomes of two of them change. Propensities are fixed, as released.
    study = cv.Study("arm", "y", (0, 4), {"x": cv.Range(0, 1)}, control=0)
    plan = Plan.split(
        Budget(1),
        {"propensities": Fraction(1, 3), NAME: Fraction(2, 3)},
        "laplace",
        {"propensities": Kind.VECTOR, NAME: Kind.CELLS},
    )
    made, x = HistogramRelease(plan, EDGES), [0.0, 1.0, *np.linspace(0.1, 0.9, 18)]
    rest = [(0, 1), (1, 3), (0, 2)] * 6

    def run(rows):
        arm, y = map(list, zip(*rows, *rest, strict=True))
        table = Table.attach({"arm": arm, "y": y, "x": x}, study)
        (public, *_), gate = ladder(table), FixedGate(plan, {"propensities": [2, 1]})
        treated, _ = released_propensities(gate, "propensities", public, table.arm == 1)
        own = (1 - treated, treated)
        largest = max(float((1 / one).max()) for one in own)
        counts = weighed_counts(table, EDGES, own, largest)
        made.histograms(gate, lambda: counts, totals=(), design=(1.0, 1.0))
        return gate

    found = largest_changes(run, RECORDS, 2)
    for change, claimed in found.values():
        assert claimed * Fraction(7, 10) < change <= claimed * (1 + Fraction(1, 10**12))


def test_cells_hold_their_upper_end():
    beyond = 1 + 4 / OUTCOME_STEPS
    assert counted([(0, 0), (0, 1), (0, beyond), (1, 2), (1, 4), (1, 9)]).tolist() == [2, 1, 0, 0, 0, 1, 0, 2]
