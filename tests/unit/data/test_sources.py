"""Sources: frames of every kind, files, relations, tables of databases, and their own ways of failing; silence."""

import gzip
import logging
import os
import pickle
import signal
import sys
import threading
import tracemalloc
import warnings
from decimal import Decimal
from types import SimpleNamespace

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterveil.data import (
    OUTCOME_STEPS,
    Binary,
    Categories,
    Drop,
    Fill,
    Outcome,
    Range,
    Study,
    Table,
    Treatment,
    open_table,
    passes,
    silence,
)
from counterveil.data.sources.dispatch import columns_of
from counterveil.errors import DataError

PLAIN = Study("t", Outcome("y", (0, 1)))
ROWS = {"t": [0, 1, 0, 1], "y": [0.0, 0.25, 0.5, 1.0]}
STEPS = [0, OUTCOME_STEPS // 4, OUTCOME_STEPS // 2, OUTCOME_STEPS]


def refused(code, source, study=PLAIN):
    with pytest.raises(DataError) as caught:
        Table.attach(source, study)
    assert caught.value.code == code
    return caught.value


def check(source, study=PLAIN):
    table = Table.attach(source, study)
    assert table.outcome.tolist() == STEPS
    assert table.treated.tolist() == [False, True, False, True]
    return table


@pytest.mark.parametrize(
    "kind", ["int8", "UInt16", "boolean", "float32", "category", "string", "object", "int64[pyarrow]"]
)
def test_pandas_types(kind):
    frame = pd.DataFrame(ROWS, index=[7, 7, 3, 1])
    check(frame.astype({"t": kind}))
    check(frame.astype({"y": "category"}))
    check(frame.astype({"y": "Float64"}))
    check(frame.astype({"y": "string"}))


@pytest.mark.parametrize("column", ["t", "y"])
@pytest.mark.parametrize(
    "kind", ["Int64", "boolean", "Float64", "category", "object", "int64[pyarrow]", "string"]
)
def test_pandas_missing(column, kind):
    frame = pd.DataFrame({"t": [0, 1, 0, 1, 0], "y": [0, 1, 0, 1, 0]}).astype({column: kind})
    frame.loc[4, column] = None
    refused("CV-D003", frame)
    table = Table.attach(frame, Study("t", Outcome("y", (0, 1)), missing=Drop()))
    assert table.outcome.tolist() == [0, OUTCOME_STEPS] * 2
    assert table.treated.tolist() == [False, True] * 2


def test_polars_types():
    frame = pl.DataFrame(ROWS)
    arms = pl.Series("t", ["old", "new", "old", "new"])
    study = Study(Treatment("t", treated="new"), Outcome("y", (0, 1)))
    for kind in (pl.String, pl.Categorical, pl.Enum(["new", "old"])):
        check(frame.with_columns(arms.cast(kind)), study)
    for kind in (pl.Boolean, pl.Int128, pl.UInt8, pl.Float32, pl.Decimal(10, 2), pl.String):
        check(frame.with_columns(pl.col("t").cast(kind)))
    check(frame.with_columns(pl.col("y").cast(pl.Decimal(10, 2))))
    check(frame.lazy().filter(pl.col("y") >= 0))


def test_polars_missing_and_nan_are_both_missing():
    frame = pl.DataFrame({"t": [0, 1, 0, 1, 1, 0], "y": [0.0, 0.25, 0.5, 1.0, None, float("nan")]})
    refused("CV-D003", frame)
    check(frame, Study("t", Outcome("y", (0, 1)), missing={"y": Drop()}))


def test_arrow_types():
    arms = pa.array(["old", "new", "old", "new"]).dictionary_encode()
    check(pa.table({"t": arms, "y": ROWS["y"]}), Study(Treatment("t", treated="new"), Outcome("y", (0, 1))))
    check(pa.table({"t": pa.array(ROWS["t"]).dictionary_encode(), "y": pa.array(ROWS["y"], pa.float16())}))
    check(pa.table({"t": ROWS["t"], "y": pa.array([Decimal(str(y)) for y in ROWS["y"]])}))
    refused("CV-D003", pa.table({"t": pa.nulls(4), "y": ROWS["y"]}))
    refused("CV-D003", pa.table({"t": ROWS["t"], "y": [0.0, 0.25, None, 1.0]}))


@pytest.mark.parametrize(
    "values",
    [
        pl.Series([1, 2, 3, 4]).cast(pl.Date),
        pl.Series([1, 2, 3, 4]).cast(pl.Datetime),
        pl.Series([[1], [2], [3], [4]]),
        pl.Series([b"1", b"2", b"3", b"4"]),
        pl.Series([1, 2, 3, 4]).cast(pl.Time),
    ],
)
def test_frame_types_without_a_role(values):
    refused("CV-D013", pl.DataFrame({"t": ROWS["t"], "y": values}))
    refused("CV-D013", duckdb.from_arrow(pa.table({"t": ROWS["t"], "y": values.to_arrow()})))


def test_duplicated_columns(tmp_path):
    refused("CV-D010", pd.DataFrame([[0, 1, 1]], columns=["t", "y", "y"]))
    refused("CV-D010", pa.Table.from_arrays([pa.array([1])] * 3, names=["t", "y", "y"]))
    path = tmp_path / "twice.csv"
    path.write_text("t,y,y\n0,1,1\n", encoding="utf-8")
    refused("CV-D010", path)
    for second in ("y", "Y"):
        twice = pa.Table.from_arrays([pa.array([0, 1])] * 3, names=["t", "y", second])
        pq.write_table(twice, tmp_path / "twice.parquet")
        refused("CV-D010", tmp_path / "twice.parquet")
    refused("CV-D010", duckdb.sql("SELECT 1 AS t, 0 AS y, 1 AS y"))


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize(("ending", "start"), [("\n", b"\xef\xbb\xbf"), ("\r\n", b"")])
def test_csv_dialects(tmp_path, mark, ending, start):
    lines = ["t,note,y", '0,"a,""b",0', '"1",,0.25', "0,NA, 0.5", "1,x,1e0"]
    rows = [line.replace(",", mark) for line in lines]
    plain = tmp_path / "data.csv"
    plain.write_bytes(start + (ending.join(rows) + ending).encode())
    check(plain)
    check(str(plain))
    packed = tmp_path / "DATA.CSV.GZ"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    check(packed)


def test_csv_gaps(tmp_path):
    path = tmp_path / "gaps.csv"
    path.write_text('t,y,c\n0,0,u\n1,0.25,\n0,NA,""\n1,1,v\n', encoding="utf-8")
    study = Study(
        "t", Outcome("y", (0, 1)), {"c": Categories(["u", "v"])}, missing={"y": Fill(0.5), "c": Fill("v")}
    )
    assert check(path, study).covariates["c"].tolist() == [0, 1, 1, 1]
    refused("CV-D003", path)


def test_a_file_comes_before_a_pattern(tmp_path):
    for name in ("a*.csv", "b[12].csv", "c?.csv"):
        pd.DataFrame(ROWS).to_csv(tmp_path / name, index=False)
        check(tmp_path / name)
    pd.DataFrame(ROWS).to_parquet(tmp_path / "d[12].parquet")
    check(tmp_path / "d[12].parquet")
    check(str(tmp_path / "d*.parquet"))
    refused("CV-D012", tmp_path / "*.tsv")


def test_a_pattern_reads_its_files_in_the_order_of_their_names(tmp_path):
    for name, rows in (("part-2", slice(2, 4)), ("part-1", slice(0, 2))):
        part = pd.DataFrame(ROWS).iloc[rows]
        part.to_csv(tmp_path / f"{name}.csv", index=False)
        part.to_parquet(tmp_path / f"{name}.parquet")
    check(tmp_path / "part-*.csv")
    check(tmp_path / "part-*.parquet")
    (tmp_path / "part-3.csv").write_text("y,t\n0,1\n", encoding="utf-8")
    assert "part-3.csv" in str(refused("CV-D015", tmp_path / "part-*.csv"))


def test_many_files_of_text_keep_their_order(tmp_path):
    # The engine may read files side by side, and a query over them must not mix their rows.
    for part in range(16):
        (tmp_path / f"{part:02}.csv").write_text(f"t,y\n{part % 2},{part / 16}\n", encoding="utf-8")
    for _ in range(3):
        table = Table.attach(tmp_path / "*.csv", PLAIN)
        assert table.outcome.tolist() == [part * OUTCOME_STEPS // 16 for part in range(16)]
        assert table.treated.tolist() == [False, True] * 8


def test_files_that_cannot_be_read(tmp_path):
    assert str(tmp_path) not in str(refused("CV-D012", tmp_path / "none.csv"))
    refused("CV-D012", tmp_path / "none.parquet")
    ragged = tmp_path / "ragged.csv"
    ragged.write_text("t,y\n0,0\n1,1,secret\n0,1\n", encoding="utf-8")
    assert "secret" not in str(refused("CV-D015", ragged))
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 this is not it")
    refused("CV-D015", broken)
    packed = tmp_path / "broken.csv.gz"
    packed.write_bytes(b"t,y\n0,1\n")
    refused("CV-D015", packed)
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"t,y\n0,caf\xe9\n")
    refused("CV-D015", latin)
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"")
    refused("CV-D001", empty)


# Names of columns that no reader of UTF-8 can read, by what they are in.
UNREADABLE = {
    "latin.csv": "t,y,caf\xe9\n0,1,2\n".encode("latin-1"),
    "windows.tsv": "t\ty\tprice in \u20ac\n0\t1\t2\n".encode("cp1252"),
    "utf-16.csv": "t,y,caf\xe9\n0,1,2\n".encode("utf-16"),
    "utf-16-le.csv": "t,y,caf\xe9\n0,1,2\n".encode("utf-16-le"),
    "utf-16-be.csv": "t,y,caf\xe9\n0,1,2\n".encode("utf-16-be"),
    "packed.csv.gz": gzip.compress("t,y,caf\xe9\n0,1,2\n".encode("latin-1")),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_header_in_another_encoding_is_refused_with_its_file_and_encoding(tmp_path, name):
    (tmp_path / name).write_bytes(UNREADABLE[name])
    fault = refused("CV-D310", tmp_path / name)
    assert repr(name) in fault.problem
    assert ("UTF-16" if "utf-16" in name else "Windows-1252 or Latin-1") in fault.got
    with pytest.raises(DataError, match="CV-D310"):
        columns_of(tmp_path / name)


def test_a_header_depends_on_no_row_after_it(tmp_path):
    # Both in one block of the file: names are public, and whether they can be read must not depend on rows.
    (tmp_path / "latin.csv").write_bytes(b"t,y\n0,caf\xe9\n")
    assert list(columns_of(tmp_path / "latin.csv")) == ["t", "y"]
    (tmp_path / "mac.csv").write_bytes("\ufeffth\u00e9,y\r0,1\r".encode())
    assert list(columns_of(tmp_path / "mac.csv")) == ["th\u00e9", "y"]


def test_a_header_has_an_end(tmp_path):
    (tmp_path / "cell.csv").write_text("t,y," + "x" * 131_073 + "\n0,1,2\n")
    refused("CV-D311", tmp_path / "cell.csv")
    with gzip.open(tmp_path / "bomb.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"t,y,")
        for _ in range(50):
            file.write(b"x" * 1_000_000)
    tracemalloc.start()
    refused("CV-D311", tmp_path / "bomb.csv.gz")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20_000_000  # ten times the longest line that is read


def test_names_inside_nested_columns_do_not_count(tmp_path):
    nested = [{"y": 1, "deep": {"t": 2, "y": [3]}}] * 4
    pq.write_table(
        pa.table({"n": nested, "t": ROWS["t"], "m": nested, "y": ROWS["y"]}), tmp_path / "n.parquet"
    )
    check(tmp_path / "n.parquet")


def test_parquet_types(tmp_path):
    path = tmp_path / "typed.parquet"
    table = pa.table(
        {
            "t": pa.array(["old", "new", "old", "new"]).dictionary_encode(),
            "y": pa.array([Decimal(str(y)) for y in ROWS["y"]], pa.decimal128(20, 5)),
            "b": pa.array([True, False, None, True]),
            "unused": pa.array([1, 2, 3, 4], pa.timestamp("s")),
        }
    )
    pq.write_table(table, path)
    study = Study(
        Treatment("t", treated="new"), Outcome("y", (0, 1)), {"b": Binary()}, missing={"b": Fill(0)}
    )
    assert check(path, study).covariates["b"].tolist() == [1, 0, 0, 1]


def test_relations():
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE d (t ENUM('old', 'new'), y DECIMAL(9, 3), x HUGEINT, \"q\"\"t\" VARCHAR)"
    )
    connection.execute(
        "INSERT INTO d VALUES ('old', 0, 1, '0.5'), ('new', 0.25, 2, NULL), "
        "('old', 0.5, 3, '1'), ('new', 1, 99, '')"
    )
    study = Study(
        Treatment("t", treated="new"),
        Outcome("y", (0, 1)),
        {"x": Range(0, 10), 'q"t': Range(0, 1)},
        missing={'q"t': Fill(0)},
    )
    table = check(connection.table("d"), study)
    assert table.covariates["x"].tolist() == [1, 2, 3, 10]
    assert table.covariates['q"t'].tolist() == [0.5, 0, 1, 0]
    decimals = connection.sql("SELECT CAST(t = 'new' AS DECIMAL(5, 2)) AS t, y FROM d")
    check(decimals)
    check(decimals, Study(Treatment("t", treated="1", control="0"), Outcome("y", (0, 1))))
    assert connection.sql("SELECT count(*) FROM d").fetchall() == [(4,)]


def test_a_failing_source_does_not_quote_rows():
    relation = duckdb.sql("SELECT range % 2 AS t, CAST(range || 'secret' AS INTEGER) AS y FROM range(9)")
    assert "secret" not in str(refused("CV-D016", relation))
    lazy = pl.LazyFrame({"t": [0, 1], "y": ["secret", "1"]}).with_columns(pl.col("y").cast(pl.Int64))
    assert "secret" not in str(refused("CV-D016", lazy))


@pytest.fixture
def database(tmp_path):
    path = str(tmp_path / "hospital.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE patients AS SELECT 1 AS t, 0.5 AS y")
    return path


def test_a_file_is_left_as_it_is():
    assert open_table("people.csv", None) == "people.csv"


def test_a_table_of_a_duckdb_file(database):
    assert open_table(database, "patients").columns == ["t", "y"]


def test_what_cannot_be_opened(database, tmp_path):
    for place, table, code in [
        (database, None, "CV-D070"),
        (database, "nobody", "CV-D071"),
        (str(tmp_path / "none.duckdb"), "patients", "CV-D071"),
        ("people.csv", "patients", "CV-D070"),
        ("postgresql://host/db", None, "CV-D070"),
    ]:
        with pytest.raises(DataError, match=code):
            open_table(place, table)


def speak(what):
    print(what)
    print(what, file=sys.stderr)
    os.write(1, what.encode() + b"\n")
    os.write(2, what.encode() + b"\n")


def test_only_what_is_inside_is_dropped(capfd):
    speak("before")
    with silence():
        speak("inside")
        with silence():
            speak("deep inside")
        speak("inside again")
    speak("after")
    found = capfd.readouterr()
    for text in found:
        assert sorted(text.split()) == ["after", "after", "before", "before"]


def test_errors_pass_and_end_the_silence(capfd):
    with pytest.raises(KeyError, match="ours"), silence():
        raise KeyError("ours")
    speak("after")
    assert capfd.readouterr().out.split() == ["after", "after"]


def test_it_lasts_until_the_last_thread_has_left(capfd):
    inside, leave = threading.Event(), threading.Event()

    def work():
        with silence():
            inside.set()
            leave.wait()
            speak("in the thread")

    other = threading.Thread(target=work)
    filters = list(warnings.filters)
    with silence():
        other.start()
        inside.wait()
    speak("while the thread is inside")
    leave.set()
    other.join()
    speak("after")
    assert capfd.readouterr().out.split() == ["after", "after"]
    assert list(warnings.filters) == filters
    assert logging.root.manager.disable == logging.NOTSET


def test_warnings_are_neither_shown_nor_raised():
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        with silence():
            assert np.isinf(np.array([1e308]) * 10).all()
            warnings.warn("of rows", stacklevel=1)
        with pytest.raises(UserWarning):
            warnings.warn("of ours", stacklevel=1)
        with pytest.raises(FloatingPointError):
            np.array([1e308]) * 10


def test_a_stream_that_a_library_keeps_can_be_written_to_afterwards(capfd):
    with silence():
        handler = logging.StreamHandler()
    logger = logging.getLogger("kept")
    logger.addHandler(handler)
    try:
        logger.error("dropped, and no error of the logging itself")
    finally:
        logger.removeHandler(handler)
    assert capfd.readouterr() == ("", "")


PARENT = os.getpid()


def block(number):
    return SimpleNamespace(rows=1, number=number)


def number_and_one(one):
    return (np.array([one.number, 1]),)


def killed_in_a_copy(one):
    if os.getpid() != PARENT:
        os.kill(os.getpid(), signal.SIGKILL)
    return number_and_one(one)


def over(passed, count, monkeypatch):
    monkeypatch.setenv("COUNTERVEIL_CORES", "3")
    (sums,) = passes.side_by_side(passed, block, count, count)
    return sums.tolist()


@pytest.mark.parametrize("count", [1, 4, 37, 5000])
def test_every_block_counts_once(count, monkeypatch):
    assert over(number_and_one, count, monkeypatch) == [count * (count - 1) // 2, count]


def test_a_copy_that_is_killed_leaves_its_blocks_to_this_process(monkeypatch):
    assert over(killed_in_a_copy, 40, monkeypatch) == [780, 40]


def test_so_does_one_that_is_killed_while_it_answers(monkeypatch):
    def half(sums, pipe):
        whole = pickle.dumps(sums)
        pipe.write(whole[: len(whole) // 2])

    monkeypatch.setattr(
        passes,
        "pickle",
        SimpleNamespace(dump=half, **{name: getattr(pickle, name) for name in ("loads", "UnpicklingError")}),
    )
    assert over(number_and_one, 40, monkeypatch) == [780, 40]
