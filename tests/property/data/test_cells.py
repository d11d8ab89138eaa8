"""Cells: whatever text or number it is, every reader makes the same of it, and never a NaN."""

import math
from decimal import Decimal
from fractions import Fraction

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.thinned import examples

from counterveil.data import Fill, Range, Study
from counterveil.data.cells import double_of, from_cells, is_nothing, says_nothing
from counterveil.data.domains import gaps, numbers
from counterveil.data.sources import read
from counterveil.data.sources.relations import is_blank, number_from_text
from counterveil.errors import DataError

STUDY = Study("t", "y", (0, 1), {"x": Range(0, 1)}, control=0, missing={"y": Fill(0)})
# Texts that are nearly numerals, words or blanks.
PIECES = [
    "nan", "NaN", "inf", "Infinity", "true", "FALSE", "na", "null", "+", "-", ".", "e", "E", "0", "1", "9" * 30, "_",
    " ", "\t", "\n", "\x0b", "\x0c", "\r", "\x1f", "\x85", "\u00a0", "\u2003", "\uff11", "\u0661", "\u0130", "\u017f",
    "\u212a", "(", ")", "x", ",", "\u2212", "i", "n", "f", "\u00e9",
]  # fmt: skip
nearly = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
texts = st.one_of(
    nearly, st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=6)
)
objects = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.decimals(), st.fractions(), texts,
    st.floats(width=32).map(np.float32), st.floats(width=16).map(np.float16), st.just(Decimal("sNaN")),
    st.integers(-(10**400), 10**400), st.integers(300, 5000).map(lambda power: Fraction(10) ** power),
)  # fmt: skip


@settings(max_examples=300)
@given(st.lists(objects, min_size=1, max_size=8))
def test_no_cell_becomes_a_nan(cells):
    column = from_cells(cells, "x")
    hole = gaps(column, None)
    for cell in cells:
        found = None if is_nothing(cell) else double_of(cell)
        assert found is None or not math.isnan(found)
    if any(isinstance(cell, str) and not says_nothing(cell) and double_of(cell) is None for cell in cells):
        with pytest.raises(DataError, match="CV-D002"):
            numbers(column, hole, 0.5, "x")
        return
    found = numbers(column, hole, 0.5, "x")
    assert not np.isnan(found).any()
    assert (found[hole] == 0.5).all()


@settings(max_examples=examples(20, 60))
@given(st.lists(texts, min_size=20, max_size=40))
def test_the_engine_reads_a_text_as_python_does(cells):
    with duckdb.connect() as connection:
        relation = connection.from_arrow(pa.table({"a": cells}))
        found = relation.project(f"{number_from_text('a')}, {is_blank('a')}").fetchall()
    for cell, (number, blank) in zip(cells, found, strict=True):
        assert number == double_of(cell), ascii(cell)
        assert blank == says_nothing(cell), ascii(cell)
        assert not (blank and number is not None)


@settings(max_examples=60)
@given(st.lists(st.floats(), min_size=1, max_size=20))
def test_a_column_of_floats_is_read_as_its_cells(values):
    rows = {"t": [1.0] * len(values), "y": values, "x": values}
    columns = [read(source, STUDY.columns, frozenset("yx"))["x"] for source in (rows, pl.DataFrame(rows))]
    holes = [gaps(column, None) for column in columns]
    np.testing.assert_array_equal(*holes)
    first, second = (numbers(column, hole, 0.5, "x") for column, hole in zip(columns, holes, strict=True))
    assert first.tobytes() == second.tobytes()
