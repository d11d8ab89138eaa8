"""A replaced row moves counts and sums of outcomes by the claimed amounts; what is read off noisy counts."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from tests.unit.estimators.moments.fixed_outputs import FixedGate, largest_changes
from tests.unit.estimators.moments.small_records import NotingGate
from tests.unit.rows.attached import rows_of

import counterveil as cv
from counterveil.data import OUTCOME_STEPS, Table
from counterveil.data.cells import from_array, from_cells
from counterveil.data.sources import read
from counterveil.estimators.arm_weights import WeightedArm
from counterveil.estimators.distribution import biased
from counterveil.estimators.outcome_grids import HistogramRelease, even_edges, histogram_plan, released_on
from counterveil.estimators.pairs.features import feature_sets
from counterveil.estimators.pairs.models import released_propensities
from counterveil.estimators.ranges_and_labels import range_of
from counterveil.privacy import Budget, Unit
from counterveil.rows.counts import COUNTS_L1, COUNTS_L2, release_counts
from counterveil.rows.earlier_values import bounds, exact_moments, moment_sums
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.outcome_cells import NAME, CellCounts, OutcomeCells, PropensityCellCounts
from counterveil.rows.outcome_numbers import SLOPE_PARTS, Outcomes
from counterveil.rows.public import PublicData
from counterveil.rows.undescribed_columns import (
    CELLS,
    EDGES,
    label_counts,
    range_counts,
    release_labels,
    release_range,
)
from counterveil.session import BaseSession, Gate, Kind, Plan, SeededNoise
from counterveil_lab.audit import Universe, l1, l2, largest_change

STUDY = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 4)), assignment=cv.Trial())
OUTCOME_EDGES = even_edges(STUDY, 4)
RECORDS = [(arm, y) for arm in (0, 1) for y in (0, 1, 2.5, 4)]


def release(mechanism):
    budget, kind = (Budget(1), Kind.CELLS) if mechanism == "laplace" else (Budget(1, "1e-6"), Kind.VECTOR)
    return HistogramRelease(Plan.split(budget, {NAME: Fraction(1)}, mechanism, {NAME: kind}), OUTCOME_EDGES)


def attached(rows):
    columns = dict(zip(("arm", "y"), map(list, zip(*rows, strict=True)), strict=True))
    return Table.attach(columns, STUDY)


def counted(rows):
    return attached(rows).run(OutcomeCells.of(STUDY, OUTCOME_EDGES))[0]


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_all_small_data_sets(mechanism):
    made = release(mechanism)

    def run(rows):
        table = attached([*rows, (0, 1), (0, 1), (1, 3), (1, 3)])
        gate = FixedGate(made.plan, {}, BaseSession(table, STUDY, budget=Budget(1)))
        CellCounts(made.cells(STUDY), made.pure).release(gate)
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
        table = attached([*rows, (0, 1), (0, 1), (1, 3), (1, 3)])
        session = BaseSession(table, STUDY, budget=Budget(1))
        gate = FixedGate(made.plan, answers, session)
        placed = made.placed(gate, PublicData(session, Unit.RECORD))
        # The ends of the range have cells of their own: the first edge is below it.
        assert placed.edges[0] < 0 == placed.edges[1]
        assert placed.edges[-3] < 1 < placed.edges[-2] < placed.edges[-1] == 4
        cells = OutcomeCells.of(STUDY, placed.edges)
        assert (table.outcome == 0).tolist() == (cells.places(table) == 0).tolist()
        assert (table.outcome == OUTCOME_STEPS).tolist() == (
            cells.places(table) == len(placed.edges) - 2
        ).tolist()
        CellCounts(cells, placed.pure).release(gate)
        return gate

    found = largest_changes(run, [*RECORDS, (0, 0.2), (1, 0.25)], 2)
    assert set(found) == {"centre", "spread", NAME}
    for change, claimed in found.values():
        assert float(change) == pytest.approx(float(claimed), rel=1e-9)
        assert change <= claimed * (1 + Fraction(1, 10**12))


def test_public_weights_move_no_more():
    own = WeightedArm(np.arange(3), linear_form(np.array([0.5, 0.2, 0.3])), 0.0)
    made = release("laplace")

    def run(cells):
        gate = FixedGate(made.plan, {})
        release_counts(gate, NAME, own.weights.sums(np.array(cells), 4), made.pure)
        return gate

    change, claimed = largest_changes(run, range(4), 3)[NAME]
    assert claimed * Fraction(9, 10) < change <= claimed


def test_weights_of_released_propensities_move_no_more():
    # Rows hold a public covariate; treatments and outcomes of two of them change. Propensities are fixed, as released.
    study = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 4)), {"x": cv.Range(0, 1)})
    plan = Plan.split(
        Budget(1),
        {"propensities": Fraction(1, 3), NAME: Fraction(2, 3)},
        "laplace",
        {"propensities": Kind.VECTOR, NAME: Kind.CELLS},
    )
    made, x = HistogramRelease(plan, OUTCOME_EDGES), [0.0, 1.0, *np.linspace(0.1, 0.9, 18)]
    rest = [(0, 1), (1, 3), (0, 2)] * 6

    def run(rows):
        arm, y = map(list, zip(*rows, *rest, strict=True))
        table = Table.attach({"arm": arm, "y": y, "x": x}, study)
        (public, *_), gate = feature_sets(table), FixedGate(plan, {"propensities": [2, 1]})
        gate.rows = rows_of(table)
        treated, _ = released_propensities(gate, "propensities", public)
        own = (1 - treated, treated)
        largest = max(float((1 / one).max()) for one in own)
        counts = PropensityCellCounts(made.cells(study), made.pure, own, largest)
        release_counts(gate, NAME, counts.sums(table), made.pure)
        return gate

    found = largest_changes(run, RECORDS, 2)
    for change, claimed in found.values():
        assert claimed * Fraction(7, 10) < change <= claimed * (1 + Fraction(1, 10**12))


def test_cells_hold_their_upper_end():
    beyond = 1 + 4 / OUTCOME_STEPS
    assert counted([(0, 0), (0, 1), (0, beyond), (1, 2), (1, 4), (1, 9)]).tolist() == [2, 1, 0, 0, 0, 1, 0, 2]


@pytest.mark.parametrize(("pure", "claimed", "distance"), [(True, COUNTS_L1, l1), (False, COUNTS_L2, l2)])
def test_counts_of_all_small_data_sets(pure, claimed, distance):
    def counts(rows):
        gate = NotingGate()
        release_counts(gate, "counts", [rows.count(cell) for cell in range(4)], pure)
        assert gate.sensitivity["counts"] == claimed
        return tuple(gate.values["counts"])

    universe = Universe((tuple(range(4)),) * 3)
    change = largest_change(counts, universe, claimed=claimed, distance=distance)
    assert not change.violated
    assert change.attained == pytest.approx(1)


STEPS = [0, OUTCOME_STEPS // 2, OUTCOME_STEPS]
REST = (np.array([OUTCOME_STEPS, 5]), np.array([7, 0]))


def moments(x, y):
    return exact_moments(moment_sums(np.append(REST[0], x), np.append(REST[1], y)), len(REST[0]) + 1)


def test_one_row_moves_the_moments_by_their_bounds_at_most():
    found = [moments(x, y) for x, y in product(STEPS, repeat=2)]
    largest = [Fraction(0)] * 4
    for one, other in product(found, repeat=2):
        moved = [abs(a - b) for a, b in zip(one, other, strict=True)]
        assert all(change <= most for change, most in zip(moved, bounds(3), strict=True))
        largest = [max(pair) for pair in zip(largest, moved, strict=True)]
    assert largest == bounds(3)


def test_what_is_compared_stays_in_its_steps_for_every_slope():
    study = cv.Study(
        "t", outcome=cv.Outcomes({"a": (0, 1), "b": (0, 3)}, baseline={"b": "b0"}), assignment=cv.Trial()
    )
    grid = np.array(list(product(STEPS, repeat=2))) / OUTCOME_STEPS
    arm = np.arange(len(grid)) % 2
    table = Table.attach({"t": arm, "a": arm, "b": 3 * grid[:, 0], "b0": 3 * grid[:, 1]}, study)
    ends = ((Fraction(0), Fraction(1)), (Fraction(0), Fraction(3)))
    for slope in range(SLOPE_PARTS + 1):
        listed = Outcomes(("a", "b"), ends, (Fraction(1),) * 2, (None, 1), (0, slope))
        plain, adjusted = listed.numbers(table)
        assert adjusted.min() >= 0
        assert adjusted.max() <= OUTCOME_STEPS
        assert np.array_equal(plain, table.outcome)
        part = slope / SLOPE_PARTS
        wanted = 3 * (grid[:, 0] + part * (1 - grid[:, 1]))
        assert float(listed.widths[1]) == pytest.approx(3 * (1 + part))
        assert adjusted / OUTCOME_STEPS * float(listed.widths[1]) == pytest.approx(wanted, abs=1e-5)


def column(cells):
    return from_cells(list(cells), "x")


def found_range(cells, epsilon=1, seed=0):
    plan = Plan.split(Budget(epsilon), {"x": Fraction(1)}, "laplace", {"x": Kind.CELLS})
    counts = release_range(Gate(plan, SeededNoise(seed)), "x", column(cells))
    return range_of(counts, plan.amount("x", Kind.CELLS))


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (18, 90, (10, 100)),
        (0, 1, (0, 1)),
        (0, 100, (0, 100)),
        (-30, 400, (-50, 500)),
        (-7, -3, (-10, -2)),
        (0.003, 0.04, (0, Fraction(1, 20))),
        (0.015, 0.04, (Fraction(1, 100), Fraction(1, 20))),
        (-90, 0, (-100, 0)),
        (3e9, 9e11, (2 * 10**9, 5 * 10**9)),
    ],
)
def test_ranges_are_round_numbers_around_the_data(low, high, wanted):
    # On a logarithmic scale where one is possible, so that every cell of the grid has many rows.
    spread = np.geomspace(low, high, 4000) if low > 0 else np.linspace(low, high, 4000)
    assert found_range(spread.tolist()) == wanted


def test_few_rows_far_away_do_not_widen_the_range():
    assert found_range([50.0] * 2000 + [1e9]) == (20, 50)


def test_without_numbers_there_is_no_range():
    assert found_range(["x"] * 500) is None
    assert found_range([0.0] * 500) is None
    assert found_range([1.0, 2.0]) is None


def test_every_row_falls_into_one_cell():
    cells = [
        0,
        -0.0,
        1e-9,
        -1e-9,
        1e300,
        -1e300,
        "1",
        "x",
        None,
        "NaN",
        True,
        float("inf"),
        *map(float, EDGES),
    ]
    assert range_counts(column(cells)).sum() == len(cells)
    assert len(range_counts(column(["x"]))) == CELLS
    numbers = from_array(np.array([0.0, np.nan, 7.0]), "x")
    assert np.flatnonzero(range_counts(numbers)).size == 3


def test_one_row_moves_two_counts_by_one():
    values = [None, "a", "b", "1", "1.0", 2.5, -2.5]
    for rows in product(values, repeat=2):
        for other in values:
            one, two = column(rows), column((other, rows[1]))
            moved = np.abs(range_counts(one) - range_counts(two))
            assert moved.sum() <= 2
            assert label_changes(one, two) <= 2


def label_changes(one, two):
    counts = [label_counts(each) for each in (one, two)]
    return sum(abs(counts[0].get(key, 0) - counts[1].get(key, 0)) for key in {**counts[0], **counts[1]})


@pytest.mark.parametrize(
    "held",
    [list, np.array, pd.Series, lambda cells: pd.Series(cells, dtype=object)],
    ids=["list", "numpy", "pandas", "pandas of objects"],
)
def test_one_cell_that_changes_the_type_of_a_column_moves_two_counts_of_labels(held):
    # Beside a gap or a fraction whole numbers are doubles, beside a text they are texts.
    whole = [2**53 + place // 2 for place in range(400)]
    small = [place % 3 for place in range(12)]
    broken = [0.1, 1e-320, 1e16, 0.3, 1e300] * 3
    for cells in (whole, small, broken, [*small, *whole]):
        columns = [
            read({"x": held([cell, *cells[1:]])}, ("x",), frozenset())["x"]
            for cell in (
                cells[0],
                None,
                0.5,
                "x",
                "1e999",
                float("inf"),
                True,
                2**70,
                "0.1000000000000000001",
            )
        ]
        for one, two in combinations(columns, 2):
            assert label_changes(one, two) <= 2
    assert label_counts(from_array(np.array(whole), "x")) == {}
    assert label_counts(column(["9007199254740993", "inf", "Infinity", "1e400", 2**53 - 1])) == {2**53 - 1: 1}


def test_labels_are_numbers_where_they_are_written_so_and_only_those_that_occur():
    assert label_counts(column(["1", "1.0", "a", "a", None, "NA", "x" * 500])) == {1: 2, "a": 2}
    assert label_counts(column(["TRUE", "yes", True, "no", "0x10", "inf"])) == {1: 3, 0: 1, 16: 1}
    assert label_counts(from_array(np.array([1, 1, 2]), "x")) == {1: 2, 2: 1}


def test_released_labels_stand_in_the_order_of_their_noisy_counts():
    plan = Plan.split(Budget(1, "1e-6"), {"x": Fraction(1)}, "laplace", {"x": Kind.LABELS})
    cells = ["c"] * 900 + ["a"] * 300 + ["b"] * 600 + ["rare"]
    pairs = release_labels(Gate(plan, SeededNoise(2)), "x", column(cells))
    assert [label for label, _ in pairs] == ["c", "b", "a"]
    assert all(abs(count - wanted) < 40 for (_, count), wanted in zip(pairs, (900, 600, 300), strict=True))


def test_the_usual_bias_is_in_what_is_not_taken_off_for_covariates():
    assert [biased(one) for one in (0.0, 0.5, 1.0)] == [1.0, 1.0, 1.6]
