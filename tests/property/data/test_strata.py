"""Strata: the same bits from numpy and from an engine, and what they say by brute force."""

import math
from dataclasses import fields
from fractions import Fraction

import duckdb
import numpy as np
import polars as pl
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.thinned import examples

from counterveil.data import (
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
    strata_of_source,
    strata_of_table,
)
from counterveil.data.domains import to_steps
from counterveil.data.engines import double

CUTS = ("1/10", "1/3", 2)
DOMAINS = {"x": Range("-1/3", 7).cut(*CUTS), "b": Binary(), "c": Categories(["u", 1, "w x"])}
FILLED = Study(
    Treatment("arm", treated="new"),
    Outcome("y", (-2.5, "10/3")),
    DOMAINS,
    missing={"y": Fill(0), "x": Fill(1), "b": Fill(1), "c": Fill(1)},
)
DROPPED = Study(Treatment("arm", treated="new"), Outcome("y", (-2.5, "10/3")), DOMAINS, missing=Drop())
KINDS = {"arm": pl.String, "y": pl.Float64, "x": pl.Float64, "b": pl.Boolean, "c": pl.String}

edges = [float(Fraction(cut)) for cut in CUTS]
near = st.sampled_from(
    [near for edge in edges for near in (edge, math.nextafter(edge, 0), math.nextafter(edge, 9))]
)
numbers = st.one_of(near, st.floats(-5, 9), st.floats(), st.none())
row = st.fixed_dictionaries(
    {
        "y": numbers,
        "x": numbers,
        "b": st.none() | st.booleans(),
        "c": st.sampled_from(["u", "w x", "1", "1.0", "TRUE", "", "NA", None]),
    }
)
FULL = {"y": 0.5, "x": 1.0, "b": True, "c": "u"}


@st.composite
def rows(draw):
    people = [FULL] * 4 + draw(st.lists(row, max_size=30))
    arms = ["new", "old", "new", "old"]
    arms += [draw(st.sampled_from(["new", "old"])) for _ in people[4:]]
    return [{"arm": arm} | person for arm, person in zip(arms, people, strict=True)]


def bits(strata):
    values = {field.name: getattr(strata, field.name) for field in fields(strata)}
    return {
        name: value.tobytes() if isinstance(value, np.ndarray) else value for name, value in values.items()
    }


def by_hand(table, layout):
    """Return count, sum, square and prefix of each occupied stratum and arm, row by row."""
    (x, b, c), treated = (table.covariates[name] for name in ("x", "b", "c")), table.treated
    strata = {}
    for place in range(table.rows):
        bins = sum(Fraction(x[place]) >= cut for cut in DOMAINS["x"].cuts)
        cell = int((bins * 2 + b[place]) * 3 + c[place])
        strata.setdefault(cell, ([], []))[int(treated[place])].append(int(table.outcome[place]))
    found = {}
    for cell, arms in sorted(strata.items()):
        for own, other in (arms, arms[::-1]):
            cut = len(other) % len(own) if own else 0
            squares = float(sum(step**2 for step in own))
            found.setdefault(cell, []).append((len(own), sum(own), squares, sum(own[:cut])))
    return found


@settings(max_examples=examples(12, 40), phases=[Phase.generate])
@given(rows(), st.sampled_from([FILLED, DROPPED]), st.sampled_from([None, ("c",), ("x", "b"), ()]))
def test_an_engine_and_numpy_give_the_same_strata(people, study, names):
    columns = {name: [person[name] for person in people] for name in KINDS}
    frame = pl.DataFrame(columns, schema=KINDS)
    layout = Layout.of(study, names)
    table = Table.attach(columns, study)
    found = strata_of_table(table, layout, True)
    relation = duckdb.from_arrow(frame.to_arrow())
    assert bits(strata_of_source(relation, study, layout)) == bits(strata_of_table(table, layout))
    if names is None:
        control = zip(
            found.control, found.control_sum, found.control_square, found.control_prefix, strict=True
        )
        treated = zip(
            found.treated, found.treated_sum, found.treated_square, found.treated_prefix, strict=True
        )
        cells = zip(found.place.tolist(), control, treated, strict=True)
        assert {place: [old, new] for place, old, new in cells} == by_hand(table, layout)


@settings(max_examples=200)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_constants_arrive_exactly(value):
    text = double(value).replace(" AS DOUBLE", "")
    assert not any(mark in text for mark in ".eE")
    # The same products of integers and powers of two, in Python's doubles.
    assert eval(text.replace("CAST", "float")) == value


bounds = st.tuples(st.fractions(-1000, 1000), st.fractions(-1000, 1000)).filter(
    lambda pair: pair[0] < pair[1]
)


@settings(max_examples=examples(12, 40), phases=[Phase.generate])
@given(bounds, st.lists(st.floats(allow_nan=False), min_size=1, max_size=40), st.booleans())
def test_steps_are_those_of_the_table(pair, values, tight):
    low, high = pair
    if tight:
        # A range of a few doubles, where the rounding of its bounds is not small.
        high = low + abs(low or 1) / 2**50
    study = Study("t", Outcome("y", (low, high)))
    bound = study.outcome_bounds
    inside = [float(low + (high - low) * Fraction(place, 7)) for place in range(8)]
    y = np.array([*values, *inside, 0.0, 0.0])
    t = np.arange(len(y)) % 2
    expected = to_steps(y, bound)
    found = strata_of_source(pl.DataFrame({"t": t, "y": y}), study, Layout.of(study))
    assert found.treated_sum.tolist() == [expected[t == 1].sum()]
    assert found.control_sum.tolist() == [expected[t == 0].sum()]
