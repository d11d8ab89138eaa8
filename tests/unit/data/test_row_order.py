"""Single matching takes rows in a public order or not at all, also where rows are chosen or computed first."""

from dataclasses import fields
from datetime import date, timedelta
from itertools import permutations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import counterveil as cv
from counterveil.data import Layout, Table, strata_of_source, strata_of_table
from counterveil.errors import CounterveilError

ibis = pytest.importorskip("ibis", reason="ibis is not installed (counterveil[ibis])")

# Six rows of one stratum, of which the condition leaves five: one arm is matched in part, by the order.
ROWS = pd.DataFrame(
    {
        "t": [1, 0, 0, 0, 1, 1],
        "y": [0.1, 0.5, 0.9, 0.2, 0.7, 0.4],
        "y0": [0.3, 0.1, 0.2, 0.4, 0.6, 0.9],
        "w": [1, 1, 1, 1, 1, 0],
        "town": ["a", "b", "a", "c", "b", "c"],
        "big": np.array([3, 1, 2, 5, 4, 0]) + 2**60,
        "text": ["1.0", "01", "1", " 1", "1.00", "x"],
        "day": [date(2024, 1, 1) + timedelta(days) for days in (5, 2, 9, 7, 3, 1)],
        "tie": [1, 2, 3, 1, 4, 5],
        "gap": [1, 2, None, 4, 5, 6],
        "half": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
    }
).astype({"gap": "Int64"})
STUDIES = {
    "where": {"where": "w == 1"},
    "before": {"before": "y0", "before_range": (0, 1)},
    "cluster": {"cluster": "town"},
}


def study(kind):
    return cv.Study("t", "y", (0, 1), control=0, randomised=True, **STUDIES.get(kind, {}))


@pytest.fixture(scope="module")
def table():
    """A function that returns rows as they lie in a database."""
    connection = ibis.duckdb.connect()

    def lying(rows):
        connection.con.register("rows", pa.Table.from_pandas(rows, preserve_index=False))
        connection.con.execute("CREATE OR REPLACE TABLE people AS SELECT * FROM rows")
        return connection.table("people")

    return lying


def bits(strata):
    found = (getattr(strata, field.name) for field in fields(strata))
    return [each.tobytes() if isinstance(each, np.ndarray) else each for each in found]


def code(call):
    with pytest.raises(CounterveilError) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize("kind", STUDIES)
def test_the_order_in_which_rows_lie_changes_nothing(kind, table):
    """All orders of five rows, or of four of them, by keys of every type."""
    declared = study(kind)
    # Unequal arms, so that the order decides: one of those left out by the condition, or one more.
    rows, moved = (ROWS, 5) if kind == "where" else (ROWS.iloc[:5], 4)
    layout, connection = Layout.of(declared), duckdb.connect()
    wanted = {
        order: bits(strata_of_table(Table.attach(rows.sort_values(order), declared), layout, True))
        for order in ("big", "text", "day")
    }
    assert len(set(map(str, wanted.values()))) > 1
    for number, places in enumerate(permutations(range(moved))):
        lying = rows.iloc[[*places, *range(moved, len(rows))]]
        order = ("big", "text", "day")[number % 3]
        # An Ibis table becomes such a relation; some orders of it will do.
        relation = connection.from_arrow(pa.Table.from_pandas(lying, preserve_index=False))
        for source in (relation, *([table(lying)] if number % 16 == 0 else [])):
            assert bits(strata_of_source(source, declared, layout, True, order)) == wanted[order]


@pytest.mark.parametrize("kind", STUDIES)
def test_what_defines_no_order_is_refused(kind, table):
    declared = study(kind)
    layout, there = Layout.of(declared), table(ROWS)
    wrong = {None: "CV-D053", "nosuch": "CV-D001", "y": "CV-D054"} | dict.fromkeys(
        ("tie", "gap", "half"), "CV-D054"
    )
    for order, expected in wrong.items():
        assert code(lambda order=order: strata_of_source(there, declared, layout, True, order)) == expected
    for source in (ROWS, ROWS.to_dict("list")):
        assert (
            code(lambda source=source: strata_of_source(source, declared, layout, True, "big")) == "CV-D054"
        )
    # No order is needed where all are compared with all.
    assert strata_of_source(there, declared, layout).rows == strata_of_source(ROWS, declared, layout).rows


def test_people_come_in_their_own_order(table):
    declared = cv.Study("t", "y", (0, 1), control=0, person="big")
    layout, there = Layout.of(declared), table(ROWS)
    assert bits(strata_of_source(there, declared, layout, True)) == bits(
        strata_of_source(ROWS, declared, layout, True)
    )
    assert code(lambda: strata_of_source(there, declared, layout, True, "day")) == "CV-D054"


SINGLE = {"pairing": "single", "sensitivity": "smooth", "noise": "laplace"}


def many():
    rng = np.random.default_rng(0)
    rows = {"t": (rng.random(60) < 0.4).astype(int), "y": rng.random(60), "w": np.ones(60, int)}
    return pd.DataFrame(rows | {"k": rng.permutation(60)})


def ask(curator, protects="record", **words):
    settings = cv.settings.Stratified(**(SINGLE | words))
    return curator.ate(
        protects=protects, method="stratified", epsilon=5, delta="1e-6" if protects == "record" else 0,
        settings=settings,
    )  # fmt: skip


@pytest.mark.parametrize("where", [None, "w == 1"])
def test_answers_do_not_follow_the_order_in_which_rows_lie(where, table):
    """Nothing is spent on a refusal, and rows that an earlier question read into memory make no difference."""
    declared = cv.Study("t", "y", (0, 1), control=0, randomised=True, where=where)
    answers = set()
    for rows in (many(), many().iloc[::-1]):
        curator = cv.Curator(table(rows), declared, budget=cv.Budget(99, "1e-4"), noise=cv.SeededNoise(1))
        for attached in (False, True):
            if attached:
                curator.attach()
            assert code(lambda asked=curator: ask(asked)) == "CV-D053"
            assert curator.account().spent.epsilon == 5 * attached
            answers.add((attached, ask(curator, order="k").estimate))
    assert len(answers) == 2


def test_rows_that_trimming_leaves_have_no_other_order(table):
    known = {"x": cv.Range(0, 1).cut("1/2")}
    declared = cv.Study("t", "y", (0, 1), known, control=0)
    rows = many().assign(x=np.random.default_rng(1).random(60))
    for order in (None, "k"):
        settings = cv.settings.Stratified(pairing="single", sensitivity="smooth", order=order)
        words = {"protects": "outcome", "method": "stratified", "epsilon": 1, "trim": 0.1}
        assert code(lambda s=settings, w=words: cv.ate(table(rows), declared, settings=s, **w)) == "CV-D053"


def test_a_published_form_takes_no_private_order(table):
    declared = cv.Study("t", "y", (0, 1), control=0, randomised=True)
    words = {"epsilon": 1, "delta": "1e-6", "accept": "unproved", "noise": cv.SeededNoise(1)}
    found = cv.published.smooth_matching(many(), declared, **words)
    assert found.estimate is not None
    assert code(lambda: cv.published.smooth_matching(table(many()), declared, **words)) == "CV-D053"
