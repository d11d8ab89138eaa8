"""Every source makes the same of the same cell: a number in its domain, a missing value, or a refusal by its code."""

import csv
import warnings
from decimal import Decimal
from fractions import Fraction
from itertools import permutations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cells import (
    FLOATS,
    LABEL_TEXTS,
    MISSING,
    NUMBER_TEXTS,
    NUMBERS,
    OBJECTS,
    TEXT,
    WORDS,
    columns,
    counted,
    counted_label,
    counted_number,
    expected_number,
    found_covariate,
    found_number,
    many,
    outcomes,
)
from tests.thinned import thinned

from counterveil.data import Categories, Outcome, Study, Treatment
from counterveil.errors import StudyError


def write_csv(rows, folder):
    path = folder / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow(rows)
        writer.writerows(zip(*rows.values(), strict=True))
    return path


def write_parquet(rows, folder):
    path = folder / "rows.parquet"
    pq.write_table(pa.table(rows), path)
    return path


def large(rows):
    return pa.table({name: pa.array(cells).cast(pa.large_string()) for name, cells in rows.items()})


TEXT_SOURCES = {
    "list": lambda rows, folder: rows,
    "tuple": lambda rows, folder: {name: tuple(cells) for name, cells in rows.items()},
    "array of objects": lambda rows, folder: {n: np.array(c, dtype=object) for n, c in rows.items()},
    "array of texts": lambda rows, folder: {n: np.array(c) for n, c in rows.items()},
    "array of variable texts": lambda rows, folder: {
        n: np.array(c, dtype=np.dtypes.StringDType()) for n, c in rows.items()
    },
    "pandas": lambda rows, folder: pd.DataFrame(rows),
    "pandas objects": lambda rows, folder: pd.DataFrame(rows, dtype=object),
    "pandas string": lambda rows, folder: pd.DataFrame(rows).astype("string"),
    "pandas category": lambda rows, folder: pd.DataFrame(rows).astype("category"),
    "pandas arrow": lambda rows, folder: pd.DataFrame(rows).astype(pd.ArrowDtype(pa.string())),
    "polars": lambda rows, folder: pl.DataFrame(rows),
    "polars lazy": lambda rows, folder: pl.LazyFrame(rows),
    "polars categorical": lambda rows, folder: pl.DataFrame(rows).cast(pl.Categorical),
    "pyarrow": lambda rows, folder: pa.table(rows),
    "pyarrow large": lambda rows, folder: large(rows),
    "pyarrow dictionary": lambda rows, folder: pa.table(
        {name: pa.array(cells).dictionary_encode() for name, cells in rows.items()}
    ),
    "csv": write_csv,
    "parquet": write_parquet,
    "duckdb": lambda rows, folder: duckdb.from_arrow(pa.table(rows)),
}


def as_text(rows):
    return {name: [str(cell) for cell in cells] for name, cells in rows.items()}


@pytest.mark.parametrize("source", thinned(TEXT_SOURCES, *list(TEXT_SOURCES)[::2], "csv", "parquet"))
def test_texts_where_numbers_are_needed(source, tmp_path):
    rows = TEXT_SOURCES[source](as_text(many(NUMBER_TEXTS, "1")), tmp_path)
    expected = [expected_number(outcome) for outcome in NUMBER_TEXTS.values()]
    assert dict(zip(NUMBER_TEXTS, outcomes(rows, NUMBERS, "y", len(NUMBER_TEXTS)), strict=True)) == dict(
        zip(NUMBER_TEXTS, expected, strict=True)
    )
    found = outcomes(rows, NUMBERS, "x", len(NUMBER_TEXTS))
    assert dict(zip(NUMBER_TEXTS, found, strict=True)) == NUMBER_TEXTS


@pytest.mark.parametrize("source", thinned(TEXT_SOURCES, *list(TEXT_SOURCES)[::2], "csv", "parquet"))
def test_texts_where_labels_are_needed(source, tmp_path):
    rows = TEXT_SOURCES[source](as_text(many(LABEL_TEXTS, "1")), tmp_path)
    found = outcomes(rows, WORDS, "x", len(LABEL_TEXTS))
    assert dict(zip(LABEL_TEXTS, found, strict=True)) == LABEL_TEXTS


@pytest.mark.parametrize("source", ["pandas string", "polars", "pyarrow", "csv", "parquet", "duckdb"])
def test_an_engine_counts_texts_as_they_are_read(source, tmp_path):
    usable = {cell: outcome for cell, outcome in NUMBER_TEXTS.items() if outcome != TEXT}
    cells, count = ["1", *usable], len(usable) + 1
    rows = {"t": ["0"] * count + ["1"] * count, "y": cells * 2, "k": [str(k) for k in range(count)] * 2}
    steps = {fill: [expected_number(fill if o == MISSING else o) for o in usable.values()] for fill in (0, 5)}
    for fill, expected in steps.items():
        found = counted(TEXT_SOURCES[source](rows, tmp_path), count, fill)
        assert dict(zip(usable, found[1:], strict=True)) == dict(zip(usable, expected, strict=True))


@pytest.mark.parametrize(
    "cell", ["\u00a0nan", "nan(123)", "1_000", "\uff11\uff12", "+-1", "\u0130nf", "fal\u017fe"]
)
def test_an_engine_refuses_what_is_refused(cell):
    rows = duckdb.from_arrow(pa.table(as_text(columns(cell, "y", "1"))))
    assert counted_number(rows) == TEXT


def test_an_engine_counts_labels_as_they_are_read():
    for cell, outcome in LABEL_TEXTS.items():
        rows = duckdb.from_arrow(pa.table(as_text(columns(cell, "x", "1"))))
        assert counted_label(rows) == outcome, cell


def boxed(cells):
    found = np.empty(len(cells), dtype=object)
    found[:] = cells
    return found


OBJECT_SOURCES = {
    "list": lambda rows: rows,
    "array of objects": lambda rows: {name: boxed(cells) for name, cells in rows.items()},
    "masked": lambda rows: {name: np.ma.MaskedArray(boxed(cells)) for name, cells in rows.items()},
    "series": lambda rows: {name: pd.Series(boxed(cells), dtype=object) for name, cells in rows.items()},
    "pandas": lambda rows: pd.DataFrame({n: pd.Series(boxed(c), dtype=object) for n, c in rows.items()}),
    "polars": lambda rows: pl.DataFrame(
        [pl.Series(name, cells, dtype=pl.Object) for name, cells in rows.items()]
    ),
}


@pytest.mark.parametrize("source", OBJECT_SOURCES)
def test_objects(source):
    made = OBJECT_SOURCES[source]
    for cell, number, label in OBJECTS:
        assert found_number(made(columns(cell, "y", 1))) == expected_number(number), repr(cell)
        assert found_covariate(made(columns(cell, "x", 1)), NUMBERS) == number, repr(cell)
        assert found_covariate(made(columns(cell, "x", 1)), WORDS) == label, repr(cell)


FLOAT_SOURCES = {
    "list": lambda rows, folder: {name: cells.tolist() for name, cells in rows.items()},
    "array": lambda rows, folder: rows,
    "long": lambda rows, folder: {name: cells.astype(np.longdouble) for name, cells in rows.items()},
    "big-endian": lambda rows, folder: {name: cells.astype(">f8") for name, cells in rows.items()},
    "pandas": lambda rows, folder: pd.DataFrame(rows),
    "pandas long": lambda rows, folder: pd.DataFrame({n: c.astype(np.longdouble) for n, c in rows.items()}),
    "pandas nullable": lambda rows, folder: pd.DataFrame(rows).astype("Float64"),
    "pandas arrow": lambda rows, folder: pd.DataFrame(rows).astype(pd.ArrowDtype(pa.float64())),
    "polars": lambda rows, folder: pl.DataFrame(rows),
    "pyarrow": lambda rows, folder: pa.table(rows),
    "csv": lambda rows, folder: write_csv({name: cells.tolist() for name, cells in rows.items()}, folder),
    "parquet": write_parquet,
    "duckdb": lambda rows, folder: duckdb.from_arrow(pa.table(rows)),
}


@pytest.mark.parametrize("source", FLOAT_SOURCES)
def test_columns_of_floats(source, tmp_path):
    rows = {name: np.array(cells, dtype=np.float64) for name, cells in many(FLOATS, 1).items()}
    read = FLOAT_SOURCES[source](rows, tmp_path)
    assert outcomes(read, NUMBERS, "y", len(FLOATS)) == [expected_number(o) for o in FLOATS.values()]
    for cell, found in zip(FLOATS, outcomes(read, NUMBERS, "x", len(FLOATS)), strict=True):
        # The covariate itself is not rounded to steps.
        assert found == FLOATS[cell] or 0 < abs(cell) < 1e-200, cell


@pytest.mark.parametrize("width", [np.float16, np.float32, np.float64, np.longdouble])
def test_narrow_and_wide_nan_and_infinity(width):
    for cell, outcome in ((np.nan, "CV-D003"), (np.inf, 1000.0), (-np.inf, -1000.0), (1.5, 1.5)):
        rows = columns(1, "x", 1) | {"x": np.array([1, 1, 1, 1, cell], dtype=width)}
        assert found_covariate(rows, NUMBERS) == outcome
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            frame = pd.DataFrame({name: pd.Series(values) for name, values in rows.items()})
        assert found_covariate(frame, NUMBERS) == outcome


def test_numbers_that_share_a_double_are_one_label():
    """A gap in one row turns the whole numbers of others into doubles: none of them may then mean another label."""
    for label in (2**53, -(2**53), 10**400, 1e300):
        with pytest.raises(StudyError, match="CV-S007"):
            Categories([label, 0])
    with pytest.raises(StudyError, match="CV-S006"):
        Categories([str(2**53 + 1), str(2**53), 0])
    study = Study(Treatment("t", control=0), Outcome("y", (0, 1)), {"x": Categories([str(2**53 + 1), 0])})
    rows = {"t": [1, 0, 1, 0], "y": [0.5] * 4}
    for cell in (2.0**53, 2**53 + 1, 2**53, str(2**53), "9007199254740993.0"):
        for x in (np.array([0, 0, 0, cell]), [0, 0, 0, cell], pd.Series([0, 0, 0, cell], dtype=object)):
            assert found_covariate(rows | {"x": x}, study) == 0
    assert found_covariate(rows | {"x": [0, 0, 0, 2**53 + 2]}, study) == "CV-D006"


@pytest.mark.parametrize("label", ["", " ", "NA", "n/a", "#N/A", "NaN", "-nan", "null", "1.#IND"])
def test_a_text_that_stands_for_a_gap_is_no_label(label):
    for declare in (
        lambda: Categories([label, "x"]),
        lambda: Study(Treatment("t", treated=label, control="x"), Outcome("y", (0, 1))),
        lambda: Study("t", Outcome("y", (0, 1)), where=f'c == "{label}"'),
    ):
        with pytest.raises(StudyError, match="CV-S161"):
            declare()


@pytest.mark.parametrize("label", ["inf", "-Infinity", " INF ", "1e400"])
def test_a_text_that_reads_as_infinity_is_no_label(label):
    with pytest.raises(StudyError, match="CV-S160"):
        Categories([label, "x"])


@pytest.mark.parametrize(
    "pair",
    [
        ("1", 1),
        ("1", "01"),
        ("TRUE", 1),
        ("yes", "t"),
        ("no", 0),
        ("F", "false"),
        ("0x10", 16),
        ("0.10", 0.1),
    ],
)
def test_two_labels_that_one_cell_could_mean_are_not_declared_together(pair):
    with pytest.raises(StudyError, match="CV-S006"):
        Categories([*pair, "x"])


def test_what_a_cell_means_does_not_depend_on_the_cells_before_it():
    study = Study(Treatment("t", control=0), Outcome("y", (0, 1)), {"x": Categories([0.1, 0])})
    # Each means its nearest double; they are not equal, and not of one hash.
    for pair in permutations([0.1, Decimal("0.1"), Decimal.from_float(0.1), "0.10", Fraction(1, 10)], 2):
        assert found_covariate({"t": [1, 0, 1, 0], "y": [0.5] * 4, "x": [0, 0, *pair]}, study) == 0
