"""Equal rows are read alike in every container, and a cell of one person changes nobody else's row."""

import csv
import datetime
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.thinned import ALL, thinned_rows

import counterveil as cv
from counterveil.data import Table, batches, rows_of_source
from counterveil.data.table import joined_tables
from counterveil.errors import CounterveilError

FILL = cv.Fill
STUDY = cv.Study(
    cv.Treatment("arm", control=0),
    cv.Outcome("y", (0, 9)),
    {"age": cv.Range(0, 9), "site": cv.Categories(["1", "b", "rest"], other="rest")},
    people=cv.People(
        "id", rules={"y": "last", "age": "first", "site": "last", "arm": "first"}, order="visit"
    ),
    missing={"y": FILL(0), "age": FILL(1), "site": FILL("b"), "arm": FILL(0)},
)
# Orders of three rows a person: with ends and gaps, and beyond the whole numbers of doubles.
ORDERS = {
    "infinite": [[1.0, np.inf, None], [None, np.inf, -np.inf], [2.5, None, None], [np.inf, 0.0, np.inf]],
    "whole": [[2**60, 2**60 + 1, 1], [3, 2, 10], [2**53 + 1, 2**53, 2**53], [-1, 0, 2**62]],
}


def rows(order):
    """Return the cells of eleven people with three rows each, in an order that is none of theirs; 7 is watched."""
    rng = np.random.default_rng(5)
    people = [each for each in range(1, 12) for _ in range(3)]
    visits = [visit for each in range(11) for visit in ORDERS[order][each % 4]]
    cells = {
        "id": people,
        "arm": [each % 2 for each in people],
        "y": [float(each) for each in rng.integers(0, 10, 33)],
        "age": [int(each) for each in rng.integers(0, 10, 33)],
        "site": [["1", "b", "c"][each] for each in rng.integers(0, 3, 33)],
        "visit": visits,
    }
    mixed = rng.permutation(33).tolist()
    return {name: [values[place] for place in mixed] for name, values in cells.items()}


def _csv(cells, path):
    with (path / "rows.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(cells)
        lines.writerows(zip(*cells.values(), strict=True))
    return path / "rows.csv"


def _parquet(cells, path):
    pq.write_table(pa.table(cells), path / "rows.parquet")
    return path / "rows.parquet"


CONTAINERS = {
    "lists": lambda cells, _: cells,
    "numpy": lambda cells, _: {name: np.array(values) for name, values in cells.items()},
    "objects": lambda cells, _: {name: np.array(values, dtype=object) for name, values in cells.items()},
    "pandas": lambda cells, _: pd.DataFrame(cells),
    "pandas objects": lambda cells, _: pd.DataFrame(cells, dtype=object),
    "pandas nullable": lambda cells, _: pd.DataFrame(cells).convert_dtypes(),
    "pandas categories": lambda cells, _: pd.DataFrame(cells).astype(
        dict.fromkeys(("id", "site", "visit"), "category")
    ),
    "polars": lambda cells, _: pl.DataFrame(cells),
    "pyarrow": lambda cells, _: pa.table(cells),
    "csv": _csv,
    "parquet": _parquet,
    "duckdb": lambda cells, _: duckdb.from_arrow(pa.table(cells)),
}
# What says that a container cannot hold such cells together.
UNABLE = (
    TypeError,
    ValueError,
    OverflowError,
    pa.ArrowException,
    pl.exceptions.PolarsError,
    pl.exceptions.PanicException,
)
STREAMED = ("csv", "parquet", "duckdb")
CELLS = [
    None, np.nan, pd.NA, pd.NaT, np.inf, -np.inf, "inf", "late", "", " ", "NaN", "2", "1e400", True, False,
    2**53 + 1, 2**63, -(2**63), 10**30, 10**400, 0.1, -0.0, Decimal("0.1"), Decimal("sNaN"), Fraction(1, 3),
    datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1), np.datetime64("2024-01-01"), b"7", 1j, np.float32(0.1),
]  # fmt: skip


def reduced(source):
    """Return one tuple a person, in their order."""
    table = source if isinstance(source, Table) else Table.attach(source, STUDY)
    return list(
        zip(table.arm.tolist(), table.outcome.tolist(), *map(list, table.covariates.values()), strict=True)
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", CONTAINERS)
def test_equal_rows_are_one_table(order, name, tmp_path, monkeypatch):
    cells = rows(order)
    assert reduced(CONTAINERS[name](cells, tmp_path)) == reduced(cells)
    if name in STREAMED:
        monkeypatch.setattr(batches, "STREAM_FROM", 0)
        monkeypatch.setattr(batches, "BATCH", 4)
        streamed = rows_of_source(CONTAINERS[name](cells, tmp_path), STUDY)
        assert reduced(joined_tables(list(streamed.batches()))) == reduced(cells)


PLACES = [(column, name) for name in CONTAINERS for column in ("visit", "y", "age", "site", "arm")]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("column", "name"), thinned_rows(PLACES, *PLACES[::10], *PLACES[1::8]))
def test_a_cell_of_one_person_changes_nobody_else(column, name, tmp_path):
    """In every container that can hold it; what is refused tells no more than that."""
    # The order decides which row counts; other columns meet one of them.
    for order in ORDERS if column == "visit" else ["infinite"]:
        cells = rows(order)
        wanted, place, seen = reduced(cells), cells["id"].index(7), 0
        # A file is written and read for each of them.
        for cell in CELLS if ALL or name != "csv" else CELLS[::4]:
            changed = cells | {column: list(cells[column])}
            changed[column][place] = cell
            try:
                source = CONTAINERS[name](changed, tmp_path)
            except UNABLE:
                continue
            try:
                found = reduced(source)
            except CounterveilError:
                continue
            seen += 1
            assert found[:6] + found[7:] == wanted[:6] + wanted[7:], (order, cell)
        assert seen >= 3


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_person_is_one_in_every_spelling(name, tmp_path):
    for order in ORDERS:
        cells = rows(order)
        place = cells["id"].index(7)
        for cell in (
            "7",
            "7.0",
            " 007",
            "+7",
            "7e0",
            "70E-1",
            " 0.7e+1",
            7.0,
            Decimal("7.00"),
            np.float32(7),
        ):
            changed = cells | {"id": list(cells["id"])}
            changed["id"][place] = cell
            try:
                source = CONTAINERS[name](changed, tmp_path)
            except UNABLE:
                continue
            assert reduced(source) == reduced(cells), cell


@pytest.mark.parametrize("cell", [None, 0.5, np.inf, 2.0**53, -(2.0**60), ""])
def test_a_float_that_may_be_several_people_is_nobody(cell):
    cells = rows("whole")
    cells["id"][3] = cell
    for make in (CONTAINERS["lists"], CONTAINERS["pandas"]):
        with pytest.raises(CounterveilError, match="CV-D019"):
            reduced(make(cells, None))
