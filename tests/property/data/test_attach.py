"""Tables: the same bits from every source, of whatever cell, in fixed point, and one row changes one entry."""

import itertools
import math
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.thinned import examples

from counterveil.data import (
    OUTCOME_STEPS,
    Binary,
    Categories,
    Fill,
    Outcome,
    Range,
    Study,
    Table,
    Treatment,
    rows_of_source,
)
from counterveil.data.cells import double_of, from_cells, is_nothing, says_nothing
from counterveil.data.domains import clamp, gaps, numbers, to_steps
from counterveil.data.sources import read
from counterveil.data.sources.relations import is_blank, number_from_text
from counterveil.errors import DataError

STUDY = Study(
    treatment=Treatment("arm", treated="new"),
    outcome=Outcome("y", (-2.5, "10/3")),
    covariates={"x": Range("1/3", 7), "k": Range(-50, 50), "b": Binary(), "c": Categories(["u", "v", "w x"])},
    missing={"y": Fill(0), "x": Fill(1), "b": Fill(1), "c": Fill("v")},
)
KINDS = {"arm": pl.String, "y": pl.Float64, "x": pl.Float64, "k": pl.Int64, "b": pl.Boolean, "c": pl.String}
doubles = st.one_of(st.floats(-5, 9), st.floats(allow_nan=False, allow_infinity=True))
row = st.fixed_dictionaries(
    {
        "y": st.none() | doubles,
        "x": st.none() | doubles,
        "k": st.integers(-(2**63), 2**63 - 1),
        "b": st.none() | st.booleans(),
        "c": st.none() | st.sampled_from(["u", "v", "w x"]),
    }
)


@st.composite
def rows(draw):
    people = draw(st.lists(row, min_size=4, max_size=12))
    arms = ["new", "old", "new", "old"]
    arms += draw(
        st.lists(st.sampled_from(["new", "old"]), min_size=len(people) - 4, max_size=len(people) - 4)
    )
    return [{"arm": arm} | person for arm, person in zip(arms, people, strict=True)]


def bits(table):
    arrays = (table.treated, table.outcome, *table.covariates.values())
    return [(array.dtype.str, array.tobytes()) for array in arrays]


def columns(people):
    return {name: [person[name] for person in people] for name in KINDS}


# Each example writes four files, so a failure is shown as found and not shrunk.
@settings(max_examples=examples(6, 20), phases=[Phase.generate])
@given(rows())
def test_every_source_gives_the_same_bits(people):
    lists = columns(people)
    frame = pl.DataFrame(lists, schema=KINDS)
    pandas = pd.DataFrame(lists)
    nullable = pandas.astype({"b": "boolean", "y": "Float64", "c": "category", "arm": "category"})
    arrow = frame.to_arrow()
    expected = bits(Table.attach(lists, STUDY))
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        paths = [
            Path(folder) / name for name in ("polars.csv", "pandas.csv.gz", "polars.parquet", "arrow.parquet")
        ]
        frame.write_csv(paths[0])
        pandas.to_csv(paths[1], index=False, sep=";")
        frame.write_parquet(paths[2])
        nullable.to_parquet(paths[3])
        relation = connection.from_arrow(arrow)
        sources = [frame, frame.lazy(), pandas, nullable, arrow, relation, *paths]
        sources.append(frame.with_columns(pl.col("c", "arm").cast(pl.Categorical), pl.col("b").cast(pl.Int8)))
        arrays = {name: np.array(values, dtype=object) for name, values in lists.items()}
        for source in itertools.chain(sources, [arrays]):
            assert bits(Table.attach(source, STUDY)) == expected, type(source)
        for source in (relation, *paths[:2]):
            assert bits(rows_of_source(source, STUDY)) == expected, type(source)


@settings(max_examples=examples(20, 60))
@given(rows(), row, st.data())
def test_changing_one_row_changes_one_entry(people, other, data):
    place = data.draw(st.integers(0, len(people) - 1))
    changed = [*people]
    changed[place] = {"arm": people[place]["arm"]} | other
    one, two = (Table.attach(columns(version), STUDY) for version in (people, changed))
    pairs = [(one.treated, two.treated), (one.outcome, two.outcome)]
    pairs += [(one.covariates[name], two.covariates[name]) for name in STUDY.covariates]
    for left, right in pairs:
        assert set(np.flatnonzero(left != right)) <= {place}


@settings(max_examples=examples(20, 40))
@given(rows(), st.randoms(use_true_random=False))
def test_reordering_rows_reorders_entries(people, random):
    order = list(range(len(people)))
    random.shuffle(order)
    one = Table.attach(columns(people), STUDY)
    two = Table.attach(columns([people[place] for place in order]), STUDY)
    np.testing.assert_array_equal(one.outcome[order], two.outcome)
    np.testing.assert_array_equal(one.treated[order], two.treated)
    for name in STUDY.covariates:
        np.testing.assert_array_equal(one.covariates[name][order], two.covariates[name])


CELLS_STUDY = Study(
    Treatment("t", control=0), Outcome("y", (0, 1)), {"x": Range(0, 1)}, missing={"y": Fill(0)}
)
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
    hole = gaps(column)
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
    columns = [
        read(source, CELLS_STUDY.columns, frozenset("yx"))["x"] for source in (rows, pl.DataFrame(rows))
    ]
    holes = [gaps(column) for column in columns]
    np.testing.assert_array_equal(*holes)
    first, second = (numbers(column, hole, 0.5, "x") for column, hole in zip(columns, holes, strict=True))
    assert first.tobytes() == second.tobytes()


anything = st.floats(allow_nan=False, allow_infinity=True)
fixed_numbers = st.floats(min_value=-1e300, max_value=1e300, allow_subnormal=False)


@st.composite
def ranges(draw):
    low = draw(fixed_numbers)
    width = draw(st.floats(min_value=1e-3, max_value=1e6))
    high = low + width * max(1.0, abs(low))
    return Range(low, high if abs(high) <= 1e300 else 1e300) if low < 1e299 else Range(0, low)


def near(bounds):
    """Values around and inside the bounds, where the edges are."""
    low, high = float(bounds.lo), float(bounds.hi)
    edges = [np.nextafter(low, -np.inf), low, np.nextafter(low, np.inf), np.nextafter(high, -np.inf), high]
    inside = st.floats(min_value=0, max_value=1).map(lambda share: low + share * (high - low))
    return st.one_of(anything, inside, st.sampled_from([*edges, np.nextafter(high, np.inf)]))


@given(st.data(), ranges())
def test_steps_are_in_range_monotone_and_stable(data, bounds):
    values = np.sort(np.array(data.draw(st.lists(near(bounds), min_size=1, max_size=50))))
    steps = to_steps(values, bounds)
    assert steps.dtype == np.int64
    assert steps.min() >= 0
    assert steps.max() <= OUTCOME_STEPS
    assert np.all(np.diff(steps) >= 0)
    np.testing.assert_array_equal(
        to_steps(np.clip(values, float(bounds.lo), float(bounds.hi)), bounds), steps
    )
    assert np.all(steps[values >= float(bounds.hi)] == OUTCOME_STEPS)
    assert np.all(steps[values <= float(bounds.lo)] == 0)


@given(st.data(), ranges())
def test_clamping_stays_inside_the_exact_bounds_and_is_idempotent(data, bounds):
    values = np.array(data.draw(st.lists(near(bounds), min_size=1, max_size=20)))
    clamped = clamp(values, bounds)
    low, high = bounds.floats()
    assert clamped.min() >= low
    assert clamped.max() <= high
    assert clamp(clamped, bounds).tobytes() == clamped.tobytes()
    inside = (values >= low) & (values <= high)
    np.testing.assert_array_equal(clamped[inside], values[inside])
