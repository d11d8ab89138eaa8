"""A replaced row moves what is released of tables of times by the claimed amounts, in both forms and both norms."""

from fractions import Fraction

import numpy as np
import pytest
from tests.unit.estimators.moments.fixed_outputs import FixedGate, largest_changes

import counterveil as cv
from counterveil.data import Layout, Table
from counterveil.data.layout import MergedLayout
from counterveil.estimators.arm_weights import WeightedArm
from counterveil.estimators.time_tables import expected_variance, table_release
from counterveil.numerics.running_sums import FLAT, SUMS, Form
from counterveil.privacy import Budget
from counterveil.rows.linear.weighted_sum import linear_form
from counterveil.rows.time_tables import NAME, TableEntries, TimeTables, tables_of

STUDY = cv.Study(cv.Treatment("arm", control=0), outcome=cv.TimeToEvent("days", "died", grid=[1, 2, 3]))
# Every arm, cell and event; 9 lies beyond the horizon.
RECORDS = [
    (arm, day, died)
    for arm in (0, 1)
    for day, died in ((1, 1), (2, 1), (3, 1), (1, 0), (1.6, 0), (2, 0), (9, 0))
]
REST = [(0, 1, 1), (0, 9, 0), (1, 2, 0), (1, 3, 1)]
BUDGETS = {"laplace": Budget(1), "gaussian": Budget(1, "1e-6")}


def counted(rows, study=STUDY):
    columns = dict(zip(("arm", "days", "died"), map(list, zip(*rows, strict=True)), strict=True))
    event = study.event
    passed = TableEntries(MergedLayout.of(Layout.of(study, ()), 1), event.cells, 1, event.kinds)
    return tables_of(Table.attach(columns, study).run(passed), 2)


@pytest.mark.parametrize("causes", [None, ["relapse", "death"]])
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("form", [FLAT, SUMS])
def test_all_small_data_sets(form, mechanism, causes):
    study = cv.Study(
        cv.Treatment("arm", control=0),
        outcome=cv.TimeToEvent("days", "died", grid=[1, 2, 3], causes=causes),
    )
    kinds = study.event.kinds
    release = table_release([mechanism], BUDGETS[mechanism], 3, form, causes=kinds)

    def run(rows):
        gate = FixedGate(release.plan, {})
        release.tables.release(gate, counted([*rows, *REST], study))
        return gate

    records = RECORDS if causes is None else [*RECORDS, *((1, day, 2) for day in (1, 2, 3))]
    change, claimed = largest_changes(run, records, 1)[NAME]
    assert change <= claimed * (1 + Fraction(1, 10**12))
    assert float(change) == pytest.approx(float(claimed), rel=1e-9)


def test_pieces_add_up_to_the_whole():
    rows = [*RECORDS, *REST]
    columns = dict(zip(("arm", "days", "died"), map(list, zip(*rows, strict=True)), strict=True))
    table = Table.attach(columns, STUDY)
    passed = TableEntries(MergedLayout.of(Layout.of(STUDY, ()), 1), STUDY.event.cells, 1)
    pieces = [passed(table.take(slice(start, start + 5)))[0] for start in range(0, len(rows), 5)]
    assert (sum(pieces) == passed(table)[0]).all()


def test_the_form_and_noise_of_least_expected_error_are_taken():
    def chosen(cells, delta):
        kinds = ("gaussian", "laplace") if delta else ("laplace",)
        return table_release(kinds, Budget(1, delta), cells, "auto")

    assert (chosen(12, 0).form.kind, chosen(12, 0).plan.mechanism) == (FLAT, "laplace")
    assert chosen(200, "1e-6").form.kind == SUMS
    for cells in (5, 50):
        best = chosen(cells, "1e-6")
        others = [
            table_release([kind], Budget(1, "1e-6"), cells, form) for kind in BUDGETS for form in (FLAT, SUMS)
        ]
        assert expected_variance(best) == min(map(expected_variance, others))


def test_the_noise_of_each_number_is_what_the_result_says():
    release = table_release(["laplace"], Budget(2), 12, FLAT)
    assert release.noise_sd == pytest.approx(2 / 2 * 2**0.5)
    assert TimeTables(Form(FLAT, 12)).l1 == 2


@pytest.mark.parametrize("form", [FLAT, SUMS])
def test_public_weights_move_no_more(form):
    release = table_release(["laplace"], Budget(1), STUDY.event.cells, form)
    # The first row is of another arm.
    own = WeightedArm(np.arange(1, 4), linear_form(np.array([0.5, 0.2, 0.3])), 0.0)
    assert own.total == pytest.approx(2.0)
    assert own.design == pytest.approx((0.25 + 0.04 + 0.09) / 0.5)

    def run(rows):
        gate = FixedGate(release.plan, {})
        release.tables.release(gate, [own.weights.sums(np.array([0, *rows]), STUDY.event.entries)])
        return gate

    change, claimed = largest_changes(run, range(STUDY.event.entries), 3)[NAME]
    assert change <= claimed
    assert change > claimed * Fraction(9, 10)


def test_imbalance_beyond_chance_makes_variances_larger():
    form = linear_form(np.array([0.5, 0.2, 0.3]))
    squares = 0.25 + 0.04 + 0.09
    plain = squares / 0.5
    for off, grown in ((squares / 2, 1.0), (squares, 1.0), (4 * squares, 2.0)):
        assert WeightedArm(np.arange(3), form, off).design == pytest.approx(grown * plain)


def test_parts_of_cells_add_up_to_cells():
    rows = [(0, 0.2, 1), (0, 0.9, 1), (1, 1.1, 0), (1, 2.99, 1), (1, 3, 0)]
    columns = dict(zip(("arm", "days", "died"), map(list, zip(*rows, strict=True)), strict=True))
    table = Table.attach(columns, STUDY)
    counted_by = {
        parts: tables_of(
            table.run(TableEntries(MergedLayout.of(Layout.of(STUDY, ()), 1), STUDY.event.cells, parts)), 2
        )
        for parts in (1, 4)
    }
    fine, whole = (np.array(counted_by[parts], dtype=float) for parts in (4, 1))
    events = [fine[:, start : start + 4].sum(axis=1) for start in range(0, 12, 4)]
    assert (np.stack(events, axis=1) == whole[:, :3]).all()
    assert fine[0, 0] == fine[0, 3] == 1
    # Censored at 1.1, in the second of sixteen parts: of a cell 3/32 at its end; of the first quarter, 3/8.
    assert (whole[1, 4:6] == [29 / 32, 3 / 32]).all()
    assert (fine[1, 16:18] == [5 / 8, 3 / 8]).all()
    # Exposure is the same in whole cells and in their parts.
    exposed = [np.arange(one.shape[1] // 2) @ one[1, one.shape[1] // 2 : -1] for one in (whole, fine)]
    assert 4 * exposed[0] == exposed[1]
