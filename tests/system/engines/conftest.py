"""A nasty table, the studies it is read under, and the engines that must agree on it."""

import math
import os
import shutil
import sys
from dataclasses import fields
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

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
    strata_of_table,
)

ROWS = 600
LOW, HIGH = 0.1, 0.7
CUTS = (Fraction(1, 5), Fraction(3, 10), Fraction(1, 2), Fraction(69, 100))
OUTCOMES = [
    LOW, HIGH, -0.0, 0.0, math.inf, -math.inf, math.nextafter(HIGH, 0), math.nextafter(LOW, 1), 1e300, 5e-324,
    -5e-324, 0.4, 0.1 + 0.2, 1 / 3,
]  # fmt: skip
EDGES = [float(cut) for cut in CUTS]
NUMBERS = OUTCOMES + EDGES + [math.nextafter(edge, way) for edge in EDGES for way in (0, 1)]
TEXTS = ["a", "it's", "back\\slash", 'quo"te', "ü", "1.0", "01", " 1"]
SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "arm": pa.string(),
        "y": pa.float64(),
        "x": pa.float64(),
        "narrow": pa.float32(),
        "whole": pa.int64(),
        "money": pa.decimal128(12, 3),
        "yes": pa.bool_(),
        "Word": pa.string(),
        "level": pa.float64(),
        "code": pa.int32(),
        "price": pa.decimal128(6, 2),
    }
)
GAPPY = ("arm", "y", "x", "narrow", "whole", "money", "yes", "Word", "level", "code", "price")


def nasty_table(gaps: bool) -> pa.Table:
    """Return every kind of column with every kind of value in it, and gaps on request."""
    rng = np.random.default_rng(5)

    def some(values):
        return [values[place] for place in rng.integers(0, len(values), ROWS)]

    columns = {
        "id": (rng.permutation(ROWS) * 7 - 2000).tolist(),
        "arm": some(["new", "old", "old"]),
        "y": [value if rng.random() < 0.6 else rng.normal(0.4, 0.3) for value in some(OUTCOMES)],
        "x": [value if rng.random() < 0.6 else rng.normal(0.4, 0.3) for value in some(NUMBERS)],
        "narrow": some([0.0, -0.0, 0.1, 0.5, 0.7, math.inf, -3.5]),
        "whole": some([-(2**63), 2**63 - 1, 2**53 + 1, -1, 0, 1, 50]),
        "money": some([Decimal(text) for text in ("-0.001", "0.000", "0.300", "123456789.125", "0.100")]),
        "yes": some([True, False]),
        "Word": some(TEXTS),
        "level": some([0.0, -0.0, 0.5, 1e15]),
        "code": some([-1, 0, 7]),
        "price": some([Decimal("1.00"), Decimal("0.50"), Decimal("-2.00")]),
    }
    if gaps:
        for name in GAPPY:
            for row in rng.choice(ROWS, 25, replace=False):
                columns[name][row] = None
        for name in ("y", "x", "level"):
            for row in rng.choice(ROWS, 25, replace=False):
                columns[name][row] = math.nan
        for row in rng.choice(ROWS, 25, replace=False):
            columns["Word"][row] = "NA" if row % 2 else "  "
    arrays = [pa.array(columns[field.name], field.type) for field in SCHEMA]
    return pa.table(arrays, schema=SCHEMA)


DOMAINS = {
    "x": Range("1/10", "7/10").cut(*CUTS),
    "narrow": Range(-1, 1).cut("1/10", "1/2"),
    "whole": Range(-(10**18), 10**18).cut(0, 1, 2**53 + 1),
    "money": Range(0, 1000).cut("3/10"),
    "yes": Binary(),
    "Word": Categories(["a", "it's", "back\\slash", 'quo"te', "ü", 1]),
    "level": Categories([0, "0.5", 1e15]),
    "code": Categories([-1, 0, 7]),
    "price": Categories([1, 0.5, -2]),
}
FILLS = {
    "arm": Fill("old"),
    "y": Fill("1/3"),
    "x": Fill(0.3),
    "narrow": Fill(0.5),
    "whole": Fill(1),
    "money": Fill("3/10"),
    "yes": Fill(1),
    "Word": Fill("ü"),
    "level": Fill(1e15),
    "code": Fill(7),
    "price": Fill(0.5),
}
NAMES = {
    "all": None,
    "two": ("Word", "x"),
    "exact": ("money", "price", "whole"),
    "floats": ("level", "narrow", "yes"),
    "one": ("code",),
    "none": (),
}


def study(missing):
    rules = {"fill": FILLS, "drop": Drop(), "none": None}[missing]
    control = "old" if missing == "fill" else None
    return Study(
        Treatment("arm", treated="new", control=control), Outcome("y", (LOW, HIGH)), DOMAINS, missing=rules
    )


def bits(strata):
    """Return everything in strata, to the bit."""
    found = {}
    for field in fields(strata):
        value = getattr(strata, field.name)
        found[field.name] = (value.dtype.str, value.tobytes()) if isinstance(value, np.ndarray) else value
    return found


class Case:
    """One way of reading the nasty table, and what numpy makes of it."""

    def __init__(self, missing, names):
        self.missing = missing
        self.study = study(missing)
        self.layout = Layout.of(self.study, NAMES[names])
        self.rows = nasty_table(gaps=missing != "none")

    def expected(self, prefix=False, by_id=False):
        rows = self.rows.sort_by("id") if by_id else self.rows
        return bits(strata_of_table(Table.attach(rows, self.study), self.layout, prefix))


@pytest.fixture
def case(request):
    return Case(*request.param)


@pytest.fixture(scope="session")
def make_case():
    return Case


@pytest.fixture(scope="session")
def to_bits():
    return bits


@pytest.fixture(scope="session")
def spark():
    """A local Spark session; skips with a reason where there is none."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed (counterveil[spark])")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, which is not installed")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        # Small queries: planning them again and compiling them twice would take most of the time.
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    }
    # The executors' Python is this one, which has the package.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = sql.SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
