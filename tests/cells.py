"""Cells of every kind, what each must become in every source, and a probe that says what a source makes of one."""

import datetime
import enum
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd

from counterveil.data import (
    Categories,
    Fill,
    Layout,
    Outcome,
    Range,
    Study,
    Table,
    Treatment,
    strata_of_source,
)
from counterveil.data.cells import Coded, Numbers
from counterveil.data.domains import to_steps
from counterveil.data.sources import read
from counterveil.data.table import numeric_columns
from counterveil.errors import CounterveilError

LOW, HIGH = -1000.0, 1000.0
MISSING, TEXT, TYPE, OTHER = "CV-D003", "CV-D002", "CV-D013", "CV-D006"
LABELS = (1, "x", 0, 2.5, -7)


class One(enum.IntEnum):
    ONE = 1


class Word(str):
    __slots__ = ()


# Texts where a number is needed.
NUMBER_TEXTS = {
    "1": 1, "2.5": 2.5, "-3": -3, "+4": 4, ".5": 0.5, "5.": 5, "1e2": 100, "1E+2": 100, "-1e-2": -0.01, "007": 7,
    " 7 ": 7, "\t8\n": 8, "\v9\f": 9, "0.1000000000000000055511151231257827": 0.1, "1e-999": 0, "-0": 0,
    "1e999": HIGH, "-1e999": LOW, "9" * 400: HIGH, "1e99999999999": HIGH, "1e0000000001": 10,
    "inf": HIGH, "Infinity": HIGH, "iNfInItY": HIGH, "+inf": HIGH, "-INF": LOW, " -inf ": LOW,
    "true": 1, "FALSE": 0, " True ": 1,
    "": MISSING, "  ": MISSING, "\t": MISSING, "NA": MISSING, "na": MISSING, "NaN": MISSING, "nan": MISSING,
    "NAN": MISSING, "NaN ": MISSING, " nan": MISSING, "-nan": MISSING, "+NaN": MISSING, "null": MISSING,
    "NULL": MISSING, "Null": MISSING,
    "\u00a0nan": TEXT, "nan\u00a0": TEXT, "\u00a0": TEXT, "nan(123)": TEXT, "nan(": TEXT, "nanx": TEXT, "--nan": TEXT,
    "\uff2e\uff41\uff2e": TEXT, "1_000": TEXT, "\uff11\uff12": TEXT, "\u0661": TEXT, "\u00bd": TEXT, "\u22121": TEXT,
    "\u00a01": TEXT, "1\u00a0": TEXT, "\u20031": TEXT, "1,000": TEXT, "1,5": TEXT, "1 2": TEXT, "0x10": TEXT,
    "0x1p3": TEXT, "1e": TEXT, "1e+": TEXT, "e5": TEXT, "1e5.0": TEXT, "1e+-5": TEXT, ".": TEXT, "+": TEXT, "-": TEXT,
    "--1": TEXT, "+-1": TEXT, "1d5": TEXT, "1f": TEXT, "1L": TEXT, "abc": TEXT, "None": TEXT, "N/A": MISSING,
    "n/a": MISSING, "#NA": MISSING, "#N/A": MISSING, " #n/a n/a": MISSING, "1.#IND": MISSING, "-1.#QNAN": MISSING,
    "1x#IND": TEXT, "#": TEXT, "n/": TEXT, "yes": TEXT, "t": TEXT, "F": TEXT, "0b1": TEXT, "inf1": TEXT,
    "infin": TEXT, "\u0130nf": TEXT, "\u221e": TEXT, "fal\u017fe": TEXT,
    "1%": TEXT, "$1": TEXT, "2020-01-01": TEXT, "(1)": TEXT, "it's": TEXT,
}  # fmt: skip

# Texts where one of LABELS is needed; the number is the label's place.
LABEL_TEXTS = {
    "1": 0, "1.0": 0, " 1 ": 0, "01": 0, "+1": 0, "1e0": 0, "true": 0, "TRUE": 0, "x": 1, "0": 2, "-0": 2, "false": 2,
    "2.5": 3, "2.50": 3, "-7": 4, "-7e0": 4, "t": 0, "YES": 0, " yes ": 0, "F": 2, "no": 2, "0x1": 0, "0X0": 2,
    "0b01": 0,
    "2.5000000000000000001": 3, "1e-999": 2,
    "": MISSING, " ": MISSING, "NA": MISSING, "na": MISSING, "NAN": MISSING, "NaN ": MISSING, "-nan": MISSING,
    "null": MISSING, "N/A": MISSING, "#N/A": MISSING, "1.#QNAN": MISSING,
    "0x2": OTHER, "0xffffffffffffffff": OTHER, "-0x1": OTHER, "0b2": OTHER, "y": OTHER, "none": OTHER, "X": OTHER,
    " x": OTHER, "\u00a01": OTHER, "\uff11": OTHER, "1_000": OTHER, "inf": OTHER, "nan(1)": OTHER,
    "\u00a0nan": OTHER, "\u00a0": OTHER, "1e999": OTHER, "1e99999999999": OTHER, "2": OTHER, "it's": OTHER,
}  # fmt: skip

# Objects: what each is as a number, and as a label.
OBJECTS = [
    (None, MISSING, MISSING), (math.nan, MISSING, MISSING), (-math.nan, MISSING, MISSING),
    (np.float16("nan"), MISSING, MISSING), (np.float32("nan"), MISSING, MISSING),
    (np.float64("nan"), MISSING, MISSING), (np.longdouble("nan"), MISSING, MISSING),
    (Decimal("NaN"), MISSING, MISSING), (Decimal("-NaN"), MISSING, MISSING), (Decimal("sNaN"), MISSING, MISSING),
    (Decimal("NaN123"), MISSING, MISSING), (pd.NA, MISSING, MISSING), (pd.NaT, MISSING, MISSING),
    (np.datetime64("NaT"), MISSING, MISSING), (np.timedelta64("NaT"), MISSING, MISSING),
    ("NAN", MISSING, MISSING), (Word("NaN "), MISSING, MISSING), (np.str_("-nan"), MISSING, MISSING),
    (True, 1, 0), (False, 0, 2), (np.True_, 1, 0), (1, 1, 0), (One.ONE, 1, 0), (np.int8(-7), -7, 4),
    (np.uint64(2**63), HIGH, OTHER), (10**30, HIGH, OTHER), (-(10**400), LOW, OTHER), (2.5, 2.5, 3), (-0.0, 0, 2),
    (np.float16(2.5), 2.5, 3), (np.float32(0.1), float(np.float32(0.1)), OTHER), (np.longdouble(1), 1, 0),
    (np.longdouble("1e4000"), HIGH, OTHER), (math.inf, HIGH, OTHER), (-math.inf, LOW, OTHER),
    (Decimal("2.50"), 2.5, 3), (Decimal("Infinity"), HIGH, OTHER), (Decimal("-Infinity"), LOW, OTHER),
    (Decimal("1e999"), HIGH, OTHER), (Decimal("-1e999999"), LOW, OTHER), (Decimal("1e-999999"), 0, 2),
    (Decimal("2.5000000000000000001"), 2.5, 3),
    (Fraction(5, 2), 2.5, 3), (Fraction(1, 3), 1 / 3, OTHER), (Fraction(10**400), HIGH, OTHER), (Word("1"), 1, 0),
    (np.str_("1_000"), TEXT, OTHER),
    (1 + 2j, TYPE, TYPE), (complex("nan"), TYPE, TYPE), (np.complex64(1), TYPE, TYPE), (b"1", TYPE, TYPE),
    (bytearray(b"nan"), TYPE, TYPE), (datetime.date(2020, 1, 1), TYPE, TYPE), (datetime.timedelta(1), TYPE, TYPE),
    (datetime.datetime(2020, 1, 1), TYPE, TYPE), (datetime.time(1), TYPE, TYPE), (pd.Timestamp(0), TYPE, TYPE),
    (np.datetime64("2020-01-01"), TYPE, TYPE), ([1], TYPE, TYPE), ({"a": 1}, TYPE, TYPE), (object(), TYPE, TYPE),
    (lambda: 1, TYPE, TYPE), (range(3), TYPE, TYPE), ((1,), TYPE, TYPE),
]  # fmt: skip

# Doubles in columns of floats.
FLOATS = {
    0.0: 0, 1.0: 1, 2.5: 2.5, 1e-300: 0, 5e-324: 0, -5e-324: 0, 999.5: 999.5, 1000.5: HIGH, 1e300: HIGH,
    -1e300: LOW, 1.7976931348623157e308: HIGH, math.inf: HIGH, -math.inf: LOW, math.nan: MISSING,
}  # fmt: skip

NUMBERS = Study(Treatment("t", control=0), Outcome("y", (LOW, HIGH)), {"x": Range(LOW, HIGH).cut(0)})
WORDS = Study(Treatment("t", control=0), Outcome("y", (LOW, HIGH)), {"x": Categories(LABELS)})
GOOD_ROWS = 4


def columns(cell, role, good):
    """Return four good rows and a fifth one that holds the cell, in the role "y" (outcome) or "x" (covariate)."""
    rows = {"t": [1, 0, 1, 0, 1], "y": ["1", "2", "3", "4", "5"], "x": ["1", "0", "1", "0", "1"]}
    rows[role] = [good] * GOOD_ROWS + [cell]
    return rows


def expected_number(outcome):
    """Return what a probe finds where a cell has this outcome as a number: a code, or the steps."""
    if isinstance(outcome, str):
        return outcome
    return int(to_steps(np.array([float(outcome)]), NUMBERS.outcome_bounds)[0])


def found_number(source, study=NUMBERS):
    """Return the steps of the fifth row's outcome, or the code of the refusal."""
    try:
        return int(Table.attach(source, study).outcome[-1])
    except CounterveilError as error:
        return error.code


def found_covariate(source, study):
    """Return the fifth row's covariate, or the code of the refusal."""
    try:
        return float(Table.attach(source, study).covariates["x"][-1])
    except CounterveilError as error:
        return error.code


def many(cells, good):
    """Return rows of which four are good in both columns; each of the others holds one of the cells in both."""
    rows = [1, 0, 1, 0] + [1] * len(cells)
    held = [good] * GOOD_ROWS + list(cells)
    return {"t": rows, "y": held, "x": held}


def outcomes(source, study, role, count):
    """Return what becomes of each cell of `many`, the source being read once: a number, or the code of a refusal."""
    columns = read(source, study.columns, numeric_columns(study))
    # The other column holds the same cells: only good ones of it are taken along.
    other = {"x": "y", "y": "x"}[role]
    found = []
    for place in range(GOOD_ROWS, GOOD_ROWS + count):
        rows = np.array([*range(GOOD_ROWS), place])
        chosen = {name: taken(columns[name], rows) for name in study.columns}
        chosen[other] = taken(columns[other], np.array([*range(GOOD_ROWS), 0]))
        try:
            table = Table.of_columns(chosen, study)
        except CounterveilError as error:
            found.append(error.code)
            continue
        found.append(int(table.outcome[-1]) if role == "y" else float(table.covariates["x"][-1]))
    return found


def taken(column, rows):
    """Return these rows of a column, as `keep` does for those that a mask marks."""
    if isinstance(column, Coded):
        return Coded(column.codes[rows], column.cells)
    return Numbers(
        column.values[rows], column.missing[rows], None if column.text is None else column.text[rows]
    )


def counted(source, count, fill):
    """Return the steps of the treated outcome in each of the strata 0, 1, ..., counted by an engine, gaps filled."""
    study = Study(
        Treatment("t", control=0),
        Outcome("y", (LOW, HIGH)),
        {"k": Categories(range(count))},
        missing={"y": Fill(fill)},
    )
    strata = strata_of_source(source, study, Layout.of(study, ("k",)))
    return strata.treated_sum.tolist()


def counted_number(source):
    """Return the code for which an engine refuses the rows, None where it counts them."""
    try:
        strata_of_source(source, NUMBERS, Layout.of(NUMBERS, ()))
    except CounterveilError as error:
        return error.code
    return None


def counted_label(source):
    """Return the place of the fifth row's label as an engine counts it, where the others are treated with label 1."""
    try:
        strata = strata_of_source(source, WORDS, Layout.of(WORDS, ("x",)))
    except CounterveilError as error:
        return error.code
    counts = dict(zip(strata.place.tolist(), strata.treated.tolist(), strict=True))
    counts[0] = counts.get(0, 0) - 2
    return next(place for place, count in counts.items() if count == 1)
