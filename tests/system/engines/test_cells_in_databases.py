"""Databases make the same of a cell as every other source does: a number, a missing value, or a refusal."""

from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.cells import (
    FLOATS,
    HIGH,
    LABEL_TEXTS,
    LABELS,
    LOW,
    MISSING,
    OTHER,
    counted,
    counted_label,
    expected_number,
)
from tests.system.engines.databases import Postgres, make
from tests.thinned import thinned

from counterveil.data import Categories, Fill, Layout, Outcome, Study, Treatment, strata_of_source
from counterveil.errors import DataError

TYPED = {
    "floats": (pa.float64(), FLOATS),
    "narrow": (
        pa.float32(),
        {1.5: 1.5, float("inf"): HIGH, float("-inf"): LOW, float("nan"): MISSING, 1e30: HIGH},
    ),
    "whole": (pa.int64(), {1: 1, -(2**63): LOW, 2**63 - 1: HIGH, None: MISSING}),
    "money": (pa.decimal128(12, 3), {Decimal("2.500"): 2.5, Decimal("123456789.125"): HIGH, None: MISSING}),
    "truth": (pa.bool_(), {True: 1, False: 0, None: MISSING}),
}


def each_its_stratum(cells, kind):
    """Return a row in either arm for each cell, the cell's place being its stratum."""
    count = len(cells)
    places = pa.array([*range(count)] * 2, pa.int64())
    arms = pa.array([0] * count + [1] * count, pa.int64())
    return pa.table({"t": arms, "y": pa.array([*cells] * 2, kind), "k": places})


def expected(outcomes, fill):
    return [expected_number(fill if outcome == MISSING else outcome) for outcome in outcomes]


# One test an engine. Spark is left to `make test-all` here: with it each process of the tests would start one.
@pytest.mark.parametrize(
    "kind", thinned(["duckdb", "postgres", "spark", "sqlite", "polars"], "duckdb", "postgres")
)
def test_cells_are_read_as_everywhere(kind, request, tmp_path):
    database = make(kind, request, tmp_path)
    for name, (form, cells) in TYPED.items():
        table = database.table(f"cells_{name}", each_its_stratum(cells, form))
        for fill in (0, 5):
            assert counted(table, len(cells), fill) == expected(cells.values(), fill), name
    labels(database, 3 if kind == "spark" else None)
    text = database.table("cells_text", each_its_stratum(["1", "NAN"], pa.string()))
    if kind in ("postgres", "spark"):
        # By the column's type, whatever its cells are.
        with pytest.raises(DataError, match="CV-D052"):
            counted(text, 2, 0)
    if isinstance(database, Postgres):
        unbounded(database)


def labels(database, most):
    """Check labels that are told apart in one query, and refused ones one by one, at most so many."""
    usable = [cell for cell, outcome in LABEL_TEXTS.items() if outcome != OTHER]
    places = Counter(1 if LABEL_TEXTS[cell] == MISSING else LABEL_TEXTS[cell] for cell in usable)
    count = len(usable)
    rows = pa.table(
        {"t": pa.array([0] * count + [1] * count, pa.int64()), "y": [0.5] * 2 * count, "x": usable * 2}
    )
    study = Study(
        Treatment("t", control=0),
        Outcome("y", (LOW, HIGH)),
        {"x": Categories(LABELS)},
        missing={"x": Fill("x")},
    )
    strata = strata_of_source(database.table("cells_labels", rows), study, Layout.of(study))
    assert dict(zip(strata.place.tolist(), strata.treated.tolist(), strict=True)) == places
    refused = [cell for cell, outcome in LABEL_TEXTS.items() if outcome == OTHER][:most]
    for place, cell in enumerate(refused):
        rows = pa.table({"t": pa.array([1, 0, 1, 0, 1], pa.int64()), "y": [0.5] * 5, "x": ["1"] * 4 + [cell]})
        assert counted_label(database.table(f"cells_label_{place}", rows)) == OTHER, cell


def unbounded(database):
    """Check numbers of PostgreSQL that no double holds, and that its own cast to one refuses."""
    cells = {
        "NaN": MISSING, "Infinity": HIGH, "-Infinity": LOW, "1e400": HIGH, "-1e400": LOW, "1e-400": 0, "-1e-400": 0,
        "2.5": 2.5, "1e308": HIGH, "1e-320": 0, "0": 0, "999.5": 999.5,
    }  # fmt: skip
    with database.connection.con.cursor() as cursor:
        cursor.execute(
            "DROP TABLE IF EXISTS unbounded; CREATE TABLE unbounded (t bigint, y numeric, k bigint)"
        )
        for place, cell in enumerate(cells):
            cursor.execute(f"INSERT INTO unbounded VALUES (0, '{cell}', {place}), (1, '{cell}', {place})")
    database.connection.con.commit()
    table = database.connection.table("unbounded")
    for fill in (0, 5):
        assert counted(table, len(cells), fill) == expected(cells.values(), fill)
    # Labels are compared exactly.
    study = Study(Treatment("t", control=0), Outcome("k", (LOW, HIGH)), {"y": Categories([2.5, 0, 999.5])})
    with pytest.raises(DataError, match="CV-D003"):
        strata_of_source(table, study, Layout.of(study))
