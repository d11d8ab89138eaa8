"""Tables: the same bits from every source, and one row changes one entry."""

import itertools
import tempfile
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.thinned import examples

from counterveil.data import Binary, Categories, Fill, Range, Study, Table, rows_of_source

STUDY = Study(
    treatment="arm",
    outcome="y",
    outcome_range=(-2.5, "10/3"),
    covariates={"x": Range("1/3", 7), "k": Range(-50, 50), "b": Binary(), "c": Categories(["u", "v", "w x"])},
    treated="new",
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
