"""Strata: the numbers themselves, by hand and by brute force; refusals as when attaching."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from counterveil.data import (
    OUTCOME_STEPS,
    Binary,
    Categories,
    Drop,
    Fill,
    Layout,
    Outcome,
    Range,
    Study,
    Table,
    Treatment,
    check_columns,
    engines,
    strata_of_source,
    strata_of_table,
)
from counterveil.data import strata as counting
from counterveil.errors import DataError, StudyError

STUDY = Study("t", Outcome("y", (0, 1)), {"age": Range(18, 90).cut(30, 60), "sex": Binary("f", "m")})
ROWS = pa.table(
    {
        "t": [0, 1, 0, 1, 0, 1, 0, 0, 1],
        "y": [0.0, 0.25, 0.5, 1.0, 0.5, 0.5, 2.0, 0.25, -1.0],
        "age": [20, 29.999, 30, 59, 60, 95, 60, 61, 30],
        "sex": ["f", "f", "m", "m", "f", "f", "f", "f", "m"],
    }
)
Q = OUTCOME_STEPS // 4


def parquet(rows, folder):
    pyarrow.parquet.write_table(rows, folder / "rows.parquet")
    return folder / "rows.parquet"


def csv(rows, folder):
    pyarrow.csv.write_csv(rows, folder / "rows.csv")
    return folder / "rows.csv"


def arrow(rows, folder):
    return rows


def relation(rows, folder):
    return duckdb.connect().register("people", rows).table("people")


SOURCES = pytest.mark.parametrize("source", [parquet, csv, arrow, relation], ids=lambda f: f.__name__)


def as_lists(strata):
    names = ("place", "treated", "control", "treated_sum", "control_sum")
    return {name: getattr(strata, name).tolist() for name in names}


@SOURCES
def test_the_numbers(source, tmp_path):
    expected = {
        "place": [1, 2, 5],  # young women, middle-aged men, old women
        "treated": [1, 2, 1],
        "control": [1, 1, 3],
        "treated_sum": [Q, 4 * Q, 2 * Q],
        "control_sum": [0, 2 * Q, 7 * Q],
    }
    layout = Layout.of(STUDY)
    for strata in (
        strata_of_source(source(ROWS, tmp_path), STUDY, layout),
        strata_of_table(Table.attach(ROWS, STUDY), layout, prefix=True),
    ):
        assert as_lists(strata) == expected
        assert strata.public == 6
        assert strata.rows == 9
        assert strata.control_square.tolist() == [0, 4 * Q**2, (4 + 16 + 1) * Q**2]
        assert strata.treated_square.tolist() == [Q**2, 16 * Q**2, 4 * Q**2]
        assert strata.place.dtype == strata.treated.dtype == np.int64
    # Sizes modulo the other arm's: 1 mod 1, 1 mod 2, 3 mod 1; and 1 mod 1, 2 mod 1, 1 mod 3.
    assert strata.treated_prefix.tolist() == [0, 4 * Q, 0]
    assert strata.control_prefix.tolist() == [0, 0, 2 * Q]


def test_squares_are_the_doubles_nearest_to_exact_sums():
    rng = np.random.default_rng(3)
    rows = {"t": rng.integers(0, 2, 5000), "y": rng.random(5000)}
    table = Table.attach(rows, Study("t", Outcome("y", (0, 1))))
    exact = sum(int(step) ** 2 for step in table.outcome[table.treated])
    assert exact > 2**53
    for strata in (
        strata_of_table(table, Layout.of(table.study)),
        strata_of_source(pd.DataFrame(rows), table.study, Layout.of(table.study)),
    ):
        assert strata.treated_square.tolist() == [float(exact)]


@SOURCES
def test_a_covariate_outside_the_layout_can_still_leave_out_rows(source, tmp_path):
    known = dict(STUDY.covariates) | {"word": Categories(["a", "b"]), "bmi": Range(0, 9)}
    study = Study("t", Outcome("y", (0, 1)), known, missing={"word": Drop(), "bmi": Drop()})
    rows = ROWS.append_column("word", pa.array(["a", "b", "NA", "a", "b", "b", "a", "", "b"]))
    rows = rows.append_column("bmi", pa.array([1.0, 2, 3, 4, 5, 6, None, 8, 9]))
    layout = Layout.of(study, ("sex",))
    expected = strata_of_table(Table.attach(rows, study), layout, True)
    assert expected.rows == 6
    assert as_lists(strata_of_source(source(rows, tmp_path), study, layout)) == as_lists(expected)


NAN = float("nan")
GOOD = {"t": [0, 1, 0, 1, 0], "y": [0.5] * 5, "age": [20.0, 40, 70, 20, 20], "sex": ["f", "m", "f", "m", "f"]}
BROKEN = {
    "CV-D001": {"age": None},
    "CV-D002": {"y": ["0.5", "x", "1", "1", "1"]},
    "CV-D003": {"age": [20.0, None, 70, 20, 20]},
    "CV-D004": {"t": [1, 1, 1, 1, 1]},
    "CV-D005": {"t": [0, 1, 2, 1, 0]},
    "CV-D006": {"sex": ["f", "m", "x", "m", "f"]},
    "CV-D007": {"sex": ["f", "m", "x", "m", "f"]},
    "CV-D009": {"t": [0, 1, 0, 0, 0]},
    "CV-D013": {"age": pa.array([0, 1, 2, 3, 4], pa.date32())},
}
MORE_BROKEN = {
    "CV-D002": [{"age": ["20", "forty", "70", "20", "20"]}, {"age": ["1_x", "4", "70", "20", "20"]}],
    "CV-D003": [
        {"y": [0.5, NAN, 0.5, 0.5, 0.5]},
        {"t": [0, 1, None, 1, 0]},
        {"sex": ["f", "m", None, "m", "f"]},
        {"sex": ["f", "m", " ", "m", "f"]},
        {"age": [NAN] * 5},
        {"y": ["", "0.5", "0.5", "x", "0.5"]},
    ],
    "CV-D004": [{"t": [0, 0, 0, 0, 0]}, {"t": ["a", "a", "a", "a", "a"]}],
    "CV-D005": [{"t": ["a", "b", "a", "b", "a"]}, {"t": [2, 3, 2, 3, 2]}],
    "CV-D009": [{"t": [1, 1, 0, 1, 1]}],
}
FLAWS = list(BROKEN.items())
FLAWS += [(code, flaw) for code, flaws in MORE_BROKEN.items() for flaw in flaws]


# Typed columns are read alike, whatever holds them; a file of text is read slowly.
@pytest.mark.parametrize(
    ("source", "code", "flaw"),
    [
        pytest.param(source, *flaw, marks=pytest.mark.slow if place >= default else ())
        for source, default in ((parquet, len(FLAWS)), (csv, len(BROKEN)), (arrow, 0), (relation, 0))
        for place, flaw in enumerate(FLAWS)
    ],
)
def test_refusals_are_those_of_attaching(source, code, flaw, tmp_path):
    if code == "CV-D013" and source is csv:
        pytest.skip("a CSV file has no dates, only text")
    sex = Categories(["f", "m"]) if code == "CV-D006" else Binary("f", "m")
    study = Study("t", Outcome("y", (0, 1)), {"age": Range(18, 90).cut(30, 60), "sex": sex})
    columns = {name: cells for name, cells in (GOOD | flaw).items() if cells is not None}
    made = source(pa.table(columns), tmp_path)
    for call in (lambda: Table.attach(made, study), lambda: strata_of_source(made, study, Layout.of(study))):
        with pytest.raises(DataError, match=code):
            call()
    if code in ("CV-D001", "CV-D013"):
        with pytest.raises(DataError, match=code):
            check_columns(made, study)


@SOURCES
def test_dropped_rows_are_not_looked_at(source, tmp_path):
    study = Study("t", Outcome("y", (0, 1)), dict(STUDY.covariates), missing=Drop())
    flaw = {"sex": ["f", "m", "f", "m", "x"], "age": [20.0, 40, 70, 20, None], "y": [0.5, 0.5, 0.5, 0.5, 0.1]}
    made = source(pa.table(GOOD | flaw), tmp_path)
    assert strata_of_source(made, study, Layout.of(study)).rows == 4
    nothing = source(pa.table(GOOD | {"age": pa.array([None] * 5, pa.float64())}), tmp_path)
    with pytest.raises(DataError, match="CV-D008"):
        strata_of_source(nothing, study, Layout.of(study))


@pytest.mark.parametrize("constant", [False, True])
def test_the_bounds_in_a_parquet_header_do_not_hide_nan(tmp_path, constant):
    # Its writer leaves NaN out of the least and the largest value; an engine may believe them.
    y, x = [0.5, NAN, 0.25, 0.75], [0.1, 0.2, NAN, 0.4]
    if constant:
        y, x = [0.5, NAN, 0.5, 0.5], [0.4, 0.4, NAN, 0.4]
    rows = pa.table({"t": [0, 1] * 50, "y": y * 25, "x": x * 25})
    labels = {"x": Categories([0.1, 0.2, 0.4])}
    for covariates in ({"x": Range(0, 1).cut("3/10")}, labels):
        for rule in (Drop(), {"y": Fill(1), "x": Fill(0.4)}, None):
            study = Study("t", Outcome("y", (0, 1)), covariates, missing=rule)
            layout = Layout.of(study)
            if rule is None:
                with pytest.raises(DataError, match="CV-D003"):
                    strata_of_source(parquet(rows, tmp_path), study, layout)
                continue
            expected = as_lists(strata_of_table(Table.attach(rows, study), layout, True))
            assert as_lists(strata_of_source(parquet(rows, tmp_path), study, layout)) == expected


def test_labels_without_end_are_refused_without_fetching_them(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "MOST_GROUPS", 20)
    rows = {"t": np.arange(1000) % 2, "y": np.zeros(1000), "c": [f"label {k}" for k in range(1000)]}

    def code(covariate, **changes):
        study = Study("t", Outcome("y", (0, 1)), {"c": covariate})
        with pytest.raises(DataError) as caught:
            strata_of_source(relation(pa.table(rows | changes), tmp_path), study, Layout.of(study))
        return caught.value.code

    assert code(Categories(["a", "b"])) == "CV-D006"
    assert code(Binary("a", "b")) == "CV-D007"
    few = Categories(range(5))
    spelled = [f"{k % 5}.{'0' * (k // 5)}" for k in range(1000)]
    assert code(few, c=spelled) == "CV-D080"
    assert code(few, c=spelled, t=np.arange(1000)) == "CV-D005"
    monkeypatch.setattr(counting, "MOST_GROUPS", 20)
    # From the numbers of rows and of declared strata, whatever the rows hold.
    many = Categories([f"label {k}" for k in range(11)])
    assert code(many) == "CV-D055"
    assert code(many, c=["label 0"] * 1000) == "CV-D055"


def test_columns_are_checked_without_reading_rows(tmp_path):
    class Rows(dict):
        def __getitem__(self, key):
            raise AssertionError("read")

    check_columns(Rows(ROWS.to_pydict()), STUDY)
    lazy = pl.LazyFrame(ROWS.to_pydict()).with_columns(
        pl.col("age").map_batches(lambda _: 1 / 0, return_dtype=pl.Float64)
    )
    check_columns(lazy, STUDY)
    check_columns(parquet(ROWS, tmp_path), STUDY)
    check_columns(csv(ROWS, tmp_path), STUDY)
    for source in ({"t": []}, pl.LazyFrame({"t": []}), tmp_path / "none.csv"):
        with pytest.raises(DataError):
            check_columns(source, STUDY)
    dates = pl.DataFrame(ROWS.to_pydict()).with_columns(age=pl.date(2000, 1, 1))
    with pytest.raises(DataError, match="CV-D013"):
        check_columns(dates, STUDY)


def test_names_that_differ_in_case_only():
    rows = pd.DataFrame(ROWS.to_pydict())
    rows["T"], rows["AGE"] = 7, "x"
    found = strata_of_source(rows, STUDY, Layout.of(STUDY))
    assert as_lists(found) == as_lists(strata_of_source(ROWS, STUDY, Layout.of(STUDY)))


def test_several_arms_are_not_compared():
    study = Study(Treatment("t", arms=(0, 1, 2), reference=0), Outcome("y", (0, 1)))
    table = Table.attach({"t": [0, 1, 2] * 2, "y": [0.5] * 6}, study)
    for call in (
        lambda: strata_of_table(table, Layout.of(study)),
        lambda: strata_of_source(ROWS, study, Layout.of(study)),
    ):
        with pytest.raises(StudyError, match="CV-S075"):
            call()
