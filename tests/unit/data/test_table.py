"""Tables: what is read, what is refused, and what a table shows of itself."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from counterveil.data import (
    OUTCOME_STEPS,
    Binary,
    Categories,
    Drop,
    Fill,
    Outcome,
    Range,
    Study,
    Table,
    Treatment,
)
from counterveil.errors import DataError, StudyError

PLAIN = Study("t", Outcome("y", (0, 1)))
NAN = float("nan")


def data(**changes):
    return {"t": [0, 1, 0, 1], "y": [0.0, 0.25, 0.5, 1.0]} | changes


def refused(code, source, study=PLAIN):
    with pytest.raises(DataError) as caught:
        Table.attach(source, study)
    assert caught.value.code == code
    return caught.value


def test_a_small_table():
    study = Study(
        "t", Outcome("y", (0, 1)), {"x": Range(-1, 1), "b": Binary(), "c": Categories(["u", "v", "w"])}
    )
    table = Table.attach(data(x=[-5, 0.5, np.inf, -np.inf], b=[True, False, 1, 0.0], c=list("wuvu")), study)
    assert table.rows == 4
    assert table.treated.tolist() == [False, True, False, True]
    assert table.outcome.tolist() == [0, OUTCOME_STEPS // 4, OUTCOME_STEPS // 2, OUTCOME_STEPS]
    assert table.outcome.dtype == np.int64
    assert table.covariates["x"].tolist() == [-1.0, 0.5, 1.0, -1.0]
    assert table.covariates["b"].tolist() == [1.0, 0.0, 1.0, 0.0]
    assert table.covariates["c"].tolist() == [2.0, 0.0, 1.0, 0.0]
    assert table.outcome_unit == Fraction(1, OUTCOME_STEPS)
    assert table.study is study


@pytest.mark.parametrize("bounds", [(0, 60), (0.1, 0.7), ("1/3", 10), (-1e300, 1e300), (0, 1e-150)])
def test_the_bounds_are_the_first_and_the_last_step(bounds):
    study = Study("t", Outcome("y", bounds))
    low, high = (float(bound) for bound in study.outcome_range)
    table = Table.attach({"t": [0, 1, 0, 1], "y": [low, high, -np.inf, np.inf]}, study)
    assert table.outcome.tolist() == [0, OUTCOME_STEPS, 0, OUTCOME_STEPS]


def test_a_table_shows_no_rows_and_cannot_be_written():
    table = Table.attach(data(), PLAIN)
    assert repr(table) == str(table) == "Table(treatment='t', outcome='y', rows not shown)"
    for array in (table.treated, table.outcome):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_the_source_is_not_changed():
    source = {"t": np.array([0, 1, 0, 1]), "y": np.array([5.0, NAN, -5.0, 0.5])}
    before = {name: array.copy() for name, array in source.items()}
    Table.attach(source, Study("t", Outcome("y", (0, 1)), missing={"y": Fill(0.5)}))
    for name, array in source.items():
        np.testing.assert_array_equal(array, before[name])
        assert array.flags.writeable


@pytest.mark.parametrize(
    ("labels", "treated", "control"),
    [
        ([0, 1, 0, 1], 1, None),
        ([2, 1, 2, 1], 1, None),
        ([False, True, False, True], 1, 0),
        (["0", "1", "0", "1"], 1, None),
        (["0", "1.0", "0.0", "1"], 1, None),
        (["false", "True", "FALSE", "true"], True, None),
        (["no", "yes", "no", "yes"], "yes", None),
        (["no", "yes", "no", "yes"], "yes", "no"),
        ([Decimal("0"), Decimal("1.00"), 0, 1], 1, 0),
        ([0.0, 1.0, 0.0, 1.0], "1", None),
        ([5, 2**53 - 1, 5, 2**53 - 1], 2**53 - 1, None),
        ([str(2**60), str(2**61)] * 2, str(2**61), str(2**60)),
        (["0123", 77, 123.0, "77"], "77", None),
        ([False, "YES", "f", True], "t", "no"),
        (["a", 1, "a", 1], 1, "a"),
    ],
)
def test_labels_mean_what_they_say(labels, treated, control):
    table = Table.attach(
        data(t=labels), Study(Treatment("t", treated=treated, control=control), Outcome("y", (0, 1)))
    )
    assert table.treated.tolist() == [False, True, False, True]


def test_text_labels_are_compared_letter_by_letter():
    study = Study("t", Outcome("y", (0, 1)), {"zip": Categories(["NW1", "NW10"])})
    assert Table.attach(data(zip=["NW1", "NW10"] * 2), study).covariates["zip"].tolist() == [0, 1, 0, 1]
    refused("CV-D006", data(zip=["NW01", "NW10"] * 2), study)
    refused("CV-D006", data(zip=["NW1 ", "NW10"] * 2), study)


LETTERS = Study("t", Outcome("y", (0, 1)), {"c": Categories(["u", "v"])})
REFUSED = {
    "CV-D002": [(data(y=["1", "secret", "0", "1"]), PLAIN)],
    "CV-D004": [(data(t=labels), PLAIN) for labels in ([1, 1, 1, 1], [0, 0, 0, 0], ["a"] * 4, [7] * 4)],
    "CV-D005": [
        (data(t=labels), Study(Treatment("t", treated=treated, control=control), Outcome("y", (0, 1))))
        for labels, treated, control in (
            ([0, 1, 2, 1], 1, None),
            ([0, 1, 2, 1], 1, 0),
            (["N", "Y", "N", "Y"], 1, None),
            (["no", "yes", "maybe", "yes"], "yes", None),
            (["new", "old", "New", "old"], "old", "new"),
            ([0.5, 1.0, 0.25, 1.0], 1, None),
        )
    ],
    "CV-D006": [(data(c=["u", "v", "u", "secret"]), LETTERS)],
    "CV-D007": [
        (data(b=values), Study("t", Outcome("y", (0, 1)), {"b": Binary()}))
        for values in ([0, 1, 2, 1], ["0", "1", "x", "1"], [0.5, 1, 0, 1], ["ja", "nein", "ja", "nein"])
    ],
    "CV-D008": [
        ({"t": [], "y": []}, PLAIN),
        ({"t": np.array([]), "y": np.array([])}, PLAIN),
        (data(y=[NAN] * 4), Study("t", Outcome("y", (0, 1)), missing=Drop())),
    ],
    "CV-D009": [(data(t=labels), PLAIN) for labels in ([0, 0, 0, 1], [1, 1, 0, 1])],
    "CV-D011": [
        (source, PLAIN)
        for source in (
            None,
            5,
            [1, 2],
            np.zeros((2, 2)),
            object(),
            "data.xlsx",
            "data",
            "{'y': [0.5, 'secret']}",
        )
    ],
    "CV-D014": [(data(y=values), PLAIN) for values in ([0.0, 1.0], np.zeros((4, 1)), np.float64(3))],
}


@pytest.mark.parametrize("code", REFUSED)
def test_rows_that_do_not_fit_are_refused_and_not_repeated(code):
    for source, study in REFUSED[code]:
        assert "secret" not in str(refused(code, source, study))


def test_column_not_there():
    error = refused("CV-D001", {"t": [0, 1], "Y": [0, 1]})
    assert error.fix == "did you mean 'Y'?"
    assert "the data has: 'aa', 'bb'" in refused("CV-D001", {"aa": [0], "bb": [1]}).fix


@pytest.mark.parametrize("gap", [None, NAN, np.nan, "", " ", "NA", "NaN", Decimal("NaN")])
@pytest.mark.parametrize("column", ["t", "y", "x", "b", "c"])
def test_missing_needs_a_rule(gap, column):
    full = data(x=[0.5, 0.5, 0.5, 0.5], b=[0, 1, 0, 1], c=["u", "v", "u", "v"])
    covariates = {"x": Range(0, 1), "b": Binary(), "c": Categories(["u", "v"])}
    holed = full | {column: [gap, *full[column][1:]]}
    error = refused("CV-D003", holed, Study("t", Outcome("y", (0, 1)), covariates))
    assert repr(column) in str(error)
    fills = {"t": 0, "y": 0, "x": 0.5, "b": 0, "c": "u"}
    filled = Study(
        Treatment("t", control=0), Outcome("y", (0, 1)), covariates, missing={column: Fill(fills[column])}
    )
    assert same(Table.attach(holed, filled), Table.attach(full, filled))
    longer = {name: [values[0], *values] for name, values in full.items()}
    longer[column][0] = gap
    dropped = Study("t", Outcome("y", (0, 1)), covariates, missing={column: Drop()})
    assert same(Table.attach(longer, dropped), Table.attach(full, dropped))


def same(one, two):
    arrays = [(one.treated, two.treated), (one.outcome, two.outcome)]
    arrays += [(one.covariates[name], two.covariates[name]) for name in one.covariates]
    return all(np.array_equal(left, right) and left.dtype == right.dtype for left, right in arrays)


def test_a_gap_may_stand_for_a_label():
    missing = {"country": Fill("Namibia")}
    study = Study("t", Outcome("y", (0, 1)), {"country": Categories(["Namibia", "ZA"])}, missing=missing)
    for gap in ("NA", None, "N/A"):
        held = Table.attach(data(country=[gap, "ZA", gap, "ZA"]), study).covariates["country"]
        assert held.tolist() == [0, 1, 0, 1]


def test_dropped_rows_are_not_checked_further():
    study = Study("t", Outcome("y", (0, 1)), {"c": Categories(["u", "v"])}, missing={"y": Drop()})
    source = {"t": [0, 1, 0, 1, 9], "y": [0, 1, 0, 1, NAN], "c": ["u", "v", "u", "v", "other"]}
    assert Table.attach(source, study).rows == 4


def test_the_study_comes_second():
    with pytest.raises(StudyError, match="CV-S015"):
        Table.attach(PLAIN, data())


def test_masked_arrays():
    masked = np.ma.MaskedArray([9.0, 0.25, 0.5, 1.0], mask=[True, False, False, False])
    refused("CV-D003", data(y=masked))
    table = Table.attach(data(y=masked), Study("t", Outcome("y", (0, 1)), missing={"y": Fill(0)}))
    assert same(table, Table.attach(data(), table.study))


@pytest.mark.parametrize("odd", [0.5, -0.0, 1.5, -1.0])
def test_what_is_borrowed_equals_what_is_clamped(odd):
    study = Study(Treatment("t", control=0), Outcome("y", (0, 1)), covariates={"x": Range(0, 1)})
    frame = {"t": np.array([0, 1] * 2), "y": np.ones(4), "x": np.array([0.0, odd, 0.25, 1.0])}
    own, copied = (Table.attach(frame, study, borrow).covariates["x"] for borrow in (True, False))
    assert own.tobytes() == copied.tobytes()
    assert np.shares_memory(own, frame["x"]) == (odd == 0.5)
    assert not np.shares_memory(copied, frame["x"])
    assert not own.flags.writeable
    assert frame["x"].flags.writeable
