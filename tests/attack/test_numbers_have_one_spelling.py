"""A number is read as a person wrote it or refused: other scripts, NaN in text, doubles, durations, odd line ends."""

import gzip
import struct
import sys
from decimal import Decimal
from functools import cache

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import counterveil as cv
from counterveil.bounded_reading import (
    UnreadableError,
    parse_literal,
    parse_toml,
    written_float,
    written_number,
)
from counterveil.cli import main
from counterveil.data import OUTCOME_STEPS, Range, Table
from counterveil.data.domains import clamp, to_steps
from counterveil.data.sources.files import durations
from counterveil.errors import CounterveilError

STUDY = cv.Study(treatment="arm", outcome=cv.Outcome("score", (0, 10)), assignment=cv.Trial())
PEOPLE = {"arm": [place % 2 for place in range(40)], "score": [place % 11 for place in range(40)]}
# Each of them is a number to Python's float or Fraction.
STRANGE = ["1_0", "1_0.5", "１", "٣", "1e１", "1/１", "1_0/3", "\u00a01", "0.９", "1__0"]
NO_NUMBERS = ["", " ", "1_", "_1", "0x10", "inf", "nan", "1/0", "1 0", "1,5", "--1", "1e", "e1", "1/3e2"]


@pytest.mark.parametrize("text", STRANGE + NO_NUMBERS)
def test_the_one_reader_refuses_other_spellings(text):
    for read in (written_number, written_float):
        with pytest.raises(UnreadableError):
            read(text)
    with pytest.raises(CounterveilError, match="CV-P003"):
        cv.Budget(text)
    with pytest.raises(CounterveilError, match="CV-S003"):
        cv.Range(0, text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("10", 10), ("+.5", 0.5), (" 1/4\t", 0.25), ("-2.50e-1", -0.25), ("1.", 1), ("1E2", 100)],
)
def test_the_one_reader_takes_what_people_write(text, value):
    assert written_float(text) == value
    assert written_number(text) == written_number(repr(value))


@pytest.mark.parametrize("text", STRANGE)
@pytest.mark.parametrize("name", ["--epsilon", "--delta", "--level", "--trim"])
def test_options_of_the_command_line(tmp_path, monkeypatch, capsys, text, name):
    rows = zip(*PEOPLE.values(), strict=True)
    (tmp_path / "data.csv").write_text("arm,score\n" + "".join(f"{arm},{score}\n" for arm, score in rows))
    (tmp_path / "study.toml").write_text(STUDY.to_toml())
    words = ["--study", tmp_path / "study.toml", "--protects", "outcome"]
    words += ["--epsilon", "1"] if name != "--epsilon" else []
    given = ["counterveil", "estimate", tmp_path / "data.csv", *words, name, text]
    monkeypatch.setattr(sys, "argv", list(map(str, given)))
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1_0", "１"])
def test_whole_numbers_of_the_command_line(tmp_path, monkeypatch, capsys, text):
    (tmp_path / "study.toml").write_text(STUDY.to_toml())
    words = ["--study", tmp_path / "study.toml", "--protects", "outcome", "--epsilon", "1", "--rows", text]
    monkeypatch.setattr(sys, "argv", ["counterveil", "plan", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "is not a valid integer" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("text", ["1_0", "１", "[1, ２]", "{'a': 1_0}"])
def test_values_of_set(text):
    with pytest.raises(UnreadableError):
        parse_literal(text)


def test_toml_has_a_grammar_of_its_own():
    # There underscores separate digits, in whole numbers and in those with a point; a text is no number of TOML's.
    assert parse_toml("a = 1_0\nb = 1_0.5", exact=True) == {"a": 10, "b": "10.5"}
    with pytest.raises(CounterveilError, match="CV-S003"):
        cv.Study.from_dict(STUDY.to_dict() | {"outcome": {"column": STUDY.outcome, "range": ["0", "1_0"]}})


@pytest.mark.parametrize("cell", STRANGE)
def test_cells(tmp_path, cell):
    outcomes = ["1"] * 39 + [cell]
    with pytest.raises(CounterveilError, match="CV-D002"):
        cv.ate(PEOPLE | {"score": outcomes}, STUDY, protects="outcome", epsilon=1)
    lines = [f"{arm},{score}" for arm, score in zip(PEOPLE["arm"], outcomes, strict=True)]
    (tmp_path / "data.csv").write_text("arm,score\n" + "\n".join(lines) + "\n")
    with pytest.raises(CounterveilError, match="CV-D002"):
        cv.ate(tmp_path / "data.csv", STUDY, protects="outcome", epsilon=1)


SPELLINGS = [
    "nan", "NaN", "NAN", "Nan", "NaN ", " nan", "-nan", "+nan", "-NAN", "\u00a0nan", "nan\u00a0", "\u2003NaN", "nan\n",
    "\tNAN", "nan(123)", "\x1fnan", "\x85nan",
]  # fmt: skip
SOURCES = {
    "dict of lists": lambda rows: rows,
    "dict of arrays": lambda rows: {name: np.array(cells) for name, cells in rows.items()},
    "dict of objects": lambda rows: {name: np.array(cells, dtype=object) for name, cells in rows.items()},
    "pandas": pd.DataFrame,
    "pandas category": lambda rows: pd.DataFrame(rows).astype({"x": "category", "y": "category"}),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "duckdb": lambda rows: duckdb.from_arrow(pa.table(rows)),
}
NAN_STUDY = cv.Study(
    cv.Treatment("t", control=0),
    cv.Outcome("y", (0, 1)),
    {"x": cv.Range(0, 1)},
    missing=dict.fromkeys("xy", cv.Fill("1/2")),
)
ROWS = 2000
# One person of 2000 moves these estimates by about 1e-3; a NaN moved the first by .02 and more.
MOST = 0.005


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("cell", SPELLINGS, ids=ascii)
def test_no_table_holds_a_nan(cell, source):
    good = {"t": [1, 0, 1, 0], "y": ["1", "0", "1", "0"], "x": ["0.2", "0.4", "0.6", "0.8"]}
    for role in ("x", "y"):
        found = value_or_code(SOURCES[source](good | {role: [*good[role][:3], cell]}), role)
        # Refused, or missing and filled as the study says.
        assert found in ("CV-D002", 0.5)


def value_or_code(rows, role):
    try:
        table = Table.attach(rows, NAN_STUDY)
    except cv.CounterveilError as error:
        return error.code
    return table.covariates["x"][-1] if role == "x" else table.outcome[-1] / 2**24


def people():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, ROWS)
    t = (rng.uniform(size=ROWS) < 0.3 + 0.4 * x).astype(int)
    y = np.clip(0.3 * x + 0.2 * t + rng.normal(0, 0.1, ROWS), 0, 1)
    return {"t": t.tolist(), "y": [repr(float(v)) for v in y], "x": [repr(float(v)) for v in x]}


@cache
def released(column, cell):
    rows = people()
    rows[column][7] = cell
    return [
        cv.ate(
            rows, NAN_STUDY, protects="record", epsilon=8, method="doubly_robust", noise=cv.SeededNoise(seed)
        ).estimate
        for seed in range(2)
    ]


@pytest.mark.parametrize("column", ["x", "y"])
@pytest.mark.parametrize("cell", ["NAN", "-nan"])
def test_a_nan_moves_a_release_no_further_than_a_number_does(column, cell):
    np.testing.assert_allclose(released(column, cell), released(column, "0.25"), rtol=0, atol=MOST)
    # Not by chance: it is the value filled in.
    assert released(column, cell) == released(column, "0.5")


def doubles():
    """Return every sign and exponent with five mantissas: all kinds of NaN are among them."""
    bits = [
        (sign << 63) | (exponent << 52) | mantissa
        for sign in (0, 1)
        for exponent in range(2048)
        for mantissa in (0, 1, 1 << 51, (1 << 51) + 7, (1 << 52) - 1)
    ]
    return np.frombuffer(struct.pack(f"{len(bits)}Q", *bits), dtype=np.float64)


BOUNDS = [(0, 1), (-3, 5), ("1/3", "2/3"), (-1e300, 1e300), (0, "1e-199"), (1e299, 1e300), (-1, 2**60)]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_steps_and_clamped_values_are_total(bounds):
    values, domain = doubles(), Range(*bounds)
    # A cast of what is not finite, or out of range, would raise here.
    with np.errstate(invalid="raise", over="raise"):
        steps, clamped = to_steps(values, domain), clamp(values, domain)
    low, high = domain.floats()
    assert steps.dtype == np.int64
    assert ((steps >= 0) & (steps <= OUTCOME_STEPS)).all()
    assert ((clamped >= low) & (clamped <= high)).all()
    unknown = np.isnan(values)
    assert unknown.sum() == 8
    assert (steps[unknown] == 0).all()
    assert (clamped[unknown] == low).all()
    assert (steps[values >= float(domain.hi)] == OUTCOME_STEPS).all()
    assert (steps[values <= float(domain.lo)] == 0).all()


FILES_STUDY = cv.Study(
    "arm",
    cv.Outcome("score", (0, 10)),
    {"site": cv.Categories(["a", "b\nb"])},
    assignment=cv.Trial(),
)
FILES_ROWS = [(place % 2, place % 11, '"b\nb"' if place % 3 else "a") for place in range(40)]


def estimate(source):
    return cv.ate(source, FILES_STUDY, protects="outcome", epsilon=1, noise=cv.SeededNoise(1)).estimate


def text_of(head, end, rows=FILES_ROWS):
    return "arm,score,site" + head + "".join(",".join(map(str, row)) + end for row in rows)


@pytest.mark.parametrize(("head", "end"), [("\r\n", "\n"), ("\n", "\r\n"), ("\r\n", "\r\n"), ("\n", "\n")])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("name", ["data.csv", "data.csv.gz"])
def test_a_header_line_may_end_in_another_way_than_the_rows(tmp_path, head, end, start, name):
    content = (start + text_of(head, end)).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    plain = tmp_path / "plain.csv"
    plain.write_bytes(text_of("\n", "\n").encode())
    assert estimate(tmp_path / name) == estimate(plain)


@pytest.mark.parametrize("row", ["1,2,a,4", "1,2", '1,2,"a', '1,2,"a"b'])
def test_a_broken_row_is_refused_however_lines_end(tmp_path, row):
    for head in ("\n", "\r\n"):
        (tmp_path / "data.csv").write_bytes((text_of(head, "\n") + row + "\n").encode())
        with pytest.raises(CounterveilError, match="CV-D015"):
            estimate(tmp_path / "data.csv")


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_duration_is_refused_in_arrow_and_in_parquet(tmp_path, unit):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    table = pa.table(
        {
            "arm": [row[0] for row in FILES_ROWS],
            "score": pa.array([row[1] for row in FILES_ROWS], pa.duration(unit)),
            "site": ["a"] * len(FILES_ROWS),
        }
    )
    pq.write_table(table, tmp_path / "data.parquet")
    for source in (table, tmp_path / "data.parquet"):
        with pytest.raises(CounterveilError, match="CV-D013"):
            estimate(source)
    # Where nothing asks for it, it does no harm.
    other = table.append_column("beside", table["score"]).set_column(
        1, "score", pa.array([row[1] for row in FILES_ROWS])
    )
    pq.write_table(other, tmp_path / "other.parquet")
    assert estimate(tmp_path / "other.parquet") == estimate(other)


@pytest.mark.parametrize(
    "noted", [b"", b"@", b"AAAA", b"/////wAAAAA=", b"\xff" * 40, b"/////3AAAAAQAAAAAAAK"]
)
def test_a_schema_that_cannot_be_read_names_no_duration(noted):
    assert durations(noted) == frozenset()


def test_decimals_of_a_negative_scale_are_the_numbers_they_stand_for():
    pa = pytest.importorskip("pyarrow")
    whole = {"arm": [row[0] for row in FILES_ROWS], "site": ["a"] * len(FILES_ROWS)}
    study = FILES_STUDY._changed(outcome_range=(0, 1000))
    cells = [Decimal(100 * row[1]) for row in FILES_ROWS]

    def answer(source):
        return cv.ate(source, study, protects="outcome", epsilon=1, noise=cv.SeededNoise(1)).estimate

    scaled = pa.table(whole | {"score": pa.array(cells, pa.decimal128(5, -2))})
    assert answer(scaled) == answer(whole | {"score": cells})


ORDER_PEOPLE = 400
ORDER_STUDY = cv.Study(
    cv.Treatment("arm", control=0),
    cv.Outcome("y", (0, 1)),
    assignment=cv.Trial(share=0.5),
    people=cv.People("id", rules={"y": "last"}, order="visit"),
)


def visits(cell):
    """Return people whose rows end with an infinite and with a missing visit; the first person has one more cell."""
    who = np.repeat(np.arange(ORDER_PEOPLE), 2)
    frame = pd.DataFrame(
        {
            "id": who,
            "arm": who % 2,
            "y": np.where(who % 2, np.tile([1.0, 0.0], ORDER_PEOPLE), np.tile([0.0, 0.5], ORDER_PEOPLE)),
            "visit": np.tile([np.inf, np.nan], ORDER_PEOPLE),
        }
    )
    own = pd.DataFrame({"id": [0], "arm": [0], "y": [0.5], "visit": [cell]})
    return pd.concat([own, frame], ignore_index=True)


def test_a_text_among_visits_moves_no_other_row():
    numbers, texts = visits(1.0), visits("late")
    assert numbers["visit"].dtype != texts["visit"].dtype
    one, two = (Table.attach(rows, ORDER_STUDY) for rows in (numbers, texts))
    assert (one.outcome[1:] == two.outcome[1:]).all()
    # A missing visit comes after an infinite one.
    assert not two.outcome[1::2].any()


def test_the_answers_of_neighbours_are_near_each_other():
    """With the same noise they differ by what one person can change, not by what all of them can."""
    found = [
        cv.ate(rows, ORDER_STUDY, protects="record", epsilon=1, method="trial", noise=cv.SeededNoise(1))
        for rows in (visits(1.0), visits("late"))
    ]
    assert abs(found[0].estimate - found[1].estimate) <= 4 / ORDER_PEOPLE


def test_an_id_spelled_as_another_number_moves_nobody():
    """Ids stood in the order of numbers in one column and in that of texts in another: 9 before 10, -1 behind both."""
    ids = np.array([-1, -20, 9, 10, 3, 200, -7, 0])
    rows = {"arm": [0, 1] * 4, "y": list(np.arange(8) / 8)}
    declared = cv.Study(cv.Treatment("arm", control=0), cv.Outcome("y", (0, 1)), people="id")
    wanted = Table.attach(pd.DataFrame(rows | {"id": ids}), declared).outcome.tolist()
    for place, cell in ((2, "9.0"), (0, "-1"), (7, "0.0"), (3, 10.0)):
        changed = ids.astype(object)
        changed[place] = cell
        assert Table.attach(pd.DataFrame(rows | {"id": changed}), declared).outcome.tolist() == wanted
    assert Table.attach(pd.DataFrame(rows | {"id": ids.astype(float)}), declared).outcome.tolist() == wanted
