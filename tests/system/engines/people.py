"""Visits of people with ids of every type, studies of them, and what must be the same wherever they lie."""

import gc
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import counterveil as cv
from counterveil.data import Table, rows_of_source
from counterveil.data.spark import SparkRows
from counterveil.data.table import Survey
from counterveil.errors import CounterveilError

PEOPLE = 150
DROP, FILL = cv.drafting.Drop(), cv.drafting.Fill(4)
KNOWN = {"age": cv.Range(0, 9), "site": cv.Categories(["a", "b"])}


def visits(seed=0):
    """Return rows of people, one person's far apart, with ids of every type, ties in their order, and gaps."""
    rng = np.random.default_rng(seed)
    who = rng.permutation(np.repeat(np.arange(PEOPLE), rng.integers(1, 9, PEOPLE)))
    rows = len(who)

    def gaps(share):
        return rng.random(rows) < share

    blanks = np.array(["", " ", "\t", "\x0b ", "\n"])[rng.integers(0, 5, rows)]
    zeros = np.where(who == 0, rng.choice([0.0, -0.0], rows), who * 3.0 - 40)
    written = ["{}", "0{}", "+{}", "{}.0", "{}.", " {}.00\t"]
    spelled = [written[code] for code in rng.integers(0, 6, rows)]
    return pa.table(
        {
            "whole": who * 3 - 40,
            "text": [f"{blank}Ü{each}{blank}" for blank, each in zip(blanks, who.tolist(), strict=True)],
            "real": zeros,
            # One number in many spellings, and texts that are none.
            "spelled": [
                f"-{one.format(each)}".replace("-+", "-").replace("- ", " -")
                if each % 3 == 0
                else one.format(each)
                for one, each in zip(spelled, who.tolist(), strict=True)
            ],
            # Some of them so small that Python writes them with an exponent, on both sides of zero.
            "exact": pa.array([Decimal(each - 40).scaleb(-7) for each in who.tolist()], pa.decimal128(12, 7)),
            "arm": who % 2,
            "y": pa.array(rng.normal(4, 3, rows), mask=gaps(0.1)),
            "count": rng.integers(1, 4, rows).astype(np.float64),
            "age": pa.array(rng.normal(4, 3, rows), mask=gaps(0.05)),
            "site": pa.array(rng.choice(["a", "b"], rows), mask=gaps(0.05)),
            "day": pa.array(rng.integers(0, 4, rows), mask=gaps(0.1)),
            "date": pa.array(rng.integers(18000, 18005, rows).astype("datetime64[D]")),
        }
    )


def study(person, **more):
    usual = {"missing": {"y": DROP, "age": FILL, "site": cv.drafting.Fill("a")}, "covariates": KNOWN}
    return cv.Study("arm", "y", (0, 9), control=0, randomised=True, person=person, **(usual | more))


STUDIES = {
    "text": study("text", order="date", max_rows_per_person=3, per_person={"y": "last", "age": "mean"}),
    "whole": study(
        "whole",
        covariates={"age": KNOWN["age"]},
        per_person={"age": "mean"},
        missing={"y": DROP, "age": FILL},
    ),
    "real": study(
        "real", order="day", per_person={"y": "sum", "arm": "ever", "site": "last"}, where="age < 8"
    ),
    "spelled": study("spelled", order="day", max_rows_per_person=2, per_person={"y": "first"}),
    "exact": study(
        "exact", covariates={}, denominator="count", denominator_range=(0, 30), missing={"y": FILL}
    ),
    "cluster": study(
        None, cluster="whole", protects_cluster=True, order="day", per_cluster={"age": "max", "site": "last"}
    ),
}


def bits(table):
    """Return the rows of a table in an order of their own, to the bit."""
    return sorted(zip(*columns(table), strict=True))


def bits_in_spark(rows):
    """Return the same of rows in Spark."""
    kept = rows.frame.where("held IS NOT NULL").toArrow().to_batches()
    return sorted(row for table in rows.reading.tables(kept, Survey(rows.study)) for row in bits(table))


def columns(table):
    """Return the columns of a table as lists."""
    return [
        column.tolist() for column in (table.arm, table.outcome, *table.covariates.values(), *table.measures)
    ]


def check_people(there):
    """Check that rows in Spark become the same as here, are kept no longer than needed, and are refused alike."""
    declared = STUDIES["text"]
    found, wanted = rows_of_source(there, declared), Table.attach(visits(), declared)
    assert isinstance(found, SparkRows)
    assert found.rows == wanted.rows
    assert bits_in_spark(found) == bits(wanted)
    frame = found.frame
    assert frame.is_cached
    del found
    gc.collect()
    assert not frame.is_cached
    refused_alike(there.mutate(text=(there.y > 5).ifelse(" NA ", there.text)), "CV-D019")


def refused_alike(there, code):
    """Check that rows in Spark are refused as those in memory are."""
    declared = study("text", per_person={"arm": "constant"}, order="date")
    with pytest.raises(CounterveilError) as found:
        rows_of_source(there, declared)
    with pytest.raises(CounterveilError) as wanted:
        Table.attach(there.to_pyarrow(), declared)
    assert (str(found.value), found.value.code) == (str(wanted.value), code)
