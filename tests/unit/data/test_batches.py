"""Rows read batch by batch are the rows of a table in memory, to the bit, and are refused for the same reasons."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import counterveil as cv
from counterveil.data import SpooledRows, StreamedRows, Table, batches, rows_of_source
from counterveil.errors import DataError
from counterveil.session import BaseSession

ROWS = 40_000
STUDY = cv.Study(
    treatment=cv.Treatment("arm", treated="drug"),
    outcome=cv.Outcome("y", (0, 10)),
    covariates={
        "age": cv.Range(20, 80),
        "sex": cv.Binary(one="f", zero="m"),
        "site": cv.Categories([1, 2, 3]),
    },
    missing={"age": cv.Fill(50), "sex": cv.Drop()},
)


def columns(rows=ROWS, seed=1):
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 20, rows)
    sex = rng.choice(np.array(["f", "m", None], dtype=object), rows, p=[0.5, 0.4, 0.1])
    return {
        "arm": pa.array(rng.choice(["drug", "none"], rows)),
        "y": pa.array(rng.uniform(-1, 11, rows)),
        "age": pa.array(age, mask=rng.uniform(size=rows) < 0.05),
        "sex": pa.array(sex),
        "site": pa.array(rng.integers(1, 4, rows)),
    }


@pytest.fixture(autouse=True)
def stream_everything(monkeypatch):
    monkeypatch.setattr(batches, "STREAM_FROM", 0)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    pq.write_table(pa.table(columns()), path, row_group_size=9_000)
    return path


def sources(parquet, folder):
    path = folder / "rows.csv"
    duckdb.sql(f"COPY (FROM '{parquet}') TO '{path}' (HEADER)")
    return [parquet, path, duckdb.read_parquet(str(parquet))]


@pytest.mark.parametrize(("scratch", "kind"), [("", SpooledRows), ("none", StreamedRows)])
def test_batches_are_the_table_to_the_bit(parquet, scratch, kind, tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERVEIL_SCRATCH", scratch)
    monkeypatch.setattr(batches, "BATCH", 16_384)
    table = Table.attach(parquet, STUDY)
    for source in sources(parquet, tmp_path):
        rows = rows_of_source(source, STUDY)
        assert isinstance(rows, kind)
        assert rows.rows == table.rows < ROWS
        for _ in range(2):
            found = list(rows.batches())
            assert [batch.rows for batch in found[:-1]] == [batches.BATCH] * (len(found) - 1)
            assert len(found) > 1
            for name in ("arm", "treated", "outcome"):
                joined = np.concatenate([getattr(batch, name) for batch in found])
                np.testing.assert_array_equal(joined, getattr(table, name))
            for name, values in table.covariates.items():
                joined = np.concatenate([batch.covariates[name] for batch in found])
                np.testing.assert_array_equal(joined, values)


def faulty(**changed):
    """Return 9000 rows in which some cells, given by column and row, hold something else."""
    found = {name: column.to_pylist() for name, column in columns(9000).items()}
    for name, cells in changed.items():
        for row, cell in cells.items():
            found[name][row] = cell
    return pa.table(found)


CASES = {
    "CV-D003": faulty(y={8999: None}),
    "CV-D004": faulty(arm=dict.fromkeys(range(9000), "none")),
    "CV-D005": faulty(arm={10: "other", 8000: "third"}),
    "CV-D006": faulty(site={8500: 4}),
    "CV-D007": faulty(sex={8500: "x"}),
    "CV-D008": faulty(sex=dict.fromkeys(range(9000))),
    "CV-D009": faulty(arm=dict.fromkeys(range(8999), "none") | {8999: "drug"}),
    # The first of two faults is the one that reading all rows at once would name, wherever they are.
    "several": faulty(site={3: 4}, y={8999: None}, arm={5: "other"}),
    "arms and values": faulty(site={3: 4}, arm={8999: "other"}),
    "two columns": faulty(site={3: 4}, sex={8999: "x"}),
}


@pytest.mark.parametrize("case", CASES)
def test_faults_are_those_of_attaching(case, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "BATCH", 2048)
    path = tmp_path / "rows.parquet"
    pq.write_table(CASES[case], path)
    with pytest.raises(DataError) as whole:
        Table.attach(path, STUDY)
    with pytest.raises(DataError) as parts:
        rows_of_source(path, STUDY)
    assert str(parts.value) == str(whole.value)
    assert parts.value.code == (case if case.startswith("CV") else whole.value.code)


def test_a_file_that_ends_badly_is_refused_without_quoting_it(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("arm,y,age,sex,site\n" + "drug,1,30,f,1\nnone,1,30,m,2\n" * 3000 + "secret,1,2\n")
    with pytest.raises(DataError) as refused:
        rows_of_source(path, STUDY)
    assert refused.value.code == "CV-D015"
    assert "secret" not in str(refused.value)


def test_rows_that_change_between_passes_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERVEIL_SCRATCH", "none")
    path = tmp_path / "rows.parquet"
    for later in (columns(3100), columns(2900), columns(3000, seed=2) | {"y": pa.nulls(3000, pa.float64())}):
        pq.write_table(pa.table(columns(3000)), path)
        rows = rows_of_source(path, STUDY)
        pq.write_table(pa.table(later), path)
        with pytest.raises(DataError, match="CV-D056"):
            list(rows.batches())


def test_a_custody_holds_no_rows_of_a_large_file(parquet, monkeypatch):
    def refuse(*_):
        raise AssertionError("all rows were read")

    monkeypatch.setattr(Table, "attach", refuse)
    with BaseSession(parquet, STUDY, budget=cv.Budget(1)) as session:
        session.attach_batches()
        assert isinstance(session.batches, SpooledRows)
        assert session.batches.rows < ROWS
        assert "rows not shown" in repr(session.batches)


def test_a_row_group_larger_than_the_engines_usual_memory_is_read(tmp_path, monkeypatch):
    # Numbers without a pattern, so that the file is as large as its rows: a group of 24 million bytes.
    rng = np.random.default_rng(1)
    wide = {f"x{place}": rng.uniform(size=30_000) for place in range(100)}
    path = tmp_path / "wide.parquet"
    pq.write_table(pa.table(wide | {"t": rng.integers(0, 2, 30_000)}), path)
    covariates = {name: cv.Range(0, 1) for name in wide if name != "x0"}
    study = cv.Study(treatment="t", outcome=cv.Outcome("x0", (0, 1)), covariates=covariates)
    monkeypatch.setattr(batches, "MEMORY", 20_000_000)
    assert rows_of_source(path, study).rows == 30_000
    monkeypatch.setattr(batches, "_ROW_GROUPS", 0)
    with pytest.raises(DataError, match="CV-D312"):
        rows_of_source(path, study)
