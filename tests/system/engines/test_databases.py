"""Tables in DuckDB, PostgreSQL and Spark, through Ibis: the same strata as numpy, to the bit; rows stay there."""

import pyarrow as pa
import pyarrow.parquet
import pytest

from counterveil.data import (
    Layout,
    Range,
    Study,
    Table,
    check_columns,
    histogram_of_source,
    histogram_of_table,
    strata_of_source,
)
from counterveil.errors import DataError

ibis = pytest.importorskip("ibis", reason="ibis is not installed (counterveil[ibis])")

POSTGRES_TYPES = {
    pa.int64(): "bigint",
    pa.int32(): "integer",
    pa.string(): "text",
    pa.float64(): "double precision",
    pa.float32(): "real",
    pa.bool_(): "boolean",
    pa.decimal128(12, 3): "numeric(12, 3)",
    pa.decimal128(6, 2): "numeric",
}
# Missing values, covariates that make strata, and whether prefixes are asked for.
CASES = [("fill", "all", False), ("drop", "floats", True), ("fill", "two", True), ("none", "exact", False)]
SIMPLE = Study("arm", "y", (0, 1), {"x": Range(0, 1).cut("1/2")}, treated="new")


class DuckDB:
    def __init__(self):
        self.connection = ibis.duckdb.connect()

    def table(self, name, rows):
        self.connection.con.register("rows", rows)
        self.connection.con.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        return self.connection.table(name)


class Postgres:
    def __init__(self, cluster):
        self.connection = ibis.postgres.connect(
            host="127.0.0.1", port=cluster.port, user="steward", database="postgres"
        )

    def table(self, name, rows):
        with self.connection.con.cursor() as cursor:
            columns = ", ".join(f'"{field.name}" {POSTGRES_TYPES[field.type]}' for field in rows.schema)
            cursor.execute(f'DROP TABLE IF EXISTS "{name}"; CREATE TABLE "{name}" ({columns})')
            with cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
                for row in rows.to_pylist():
                    copy.write_row(tuple(row.values()))
        self.connection.con.commit()
        return self.connection.table(name)


class Spark:
    def __init__(self, session, folder):
        self.session, self.folder = session, folder
        self.connection = ibis.pyspark.connect(session)

    def table(self, name, rows):
        path = self.folder / f"{name}.parquet"
        pyarrow.parquet.write_table(rows, path, row_group_size=100)
        self.session.read.parquet(str(path)).createOrReplaceTempView(name)
        return self.connection.table(name)


def make(kind, request, folder):
    if kind == "duckdb":
        return DuckDB()
    if kind == "postgres":
        return Postgres(request.getfixturevalue("cluster"))
    return Spark(request.getfixturevalue("spark"), folder)


# One test an engine, so that Spark starts once however the tests are dealt out to processes.
@pytest.mark.parametrize("kind", ["duckdb", "postgres", "spark"])
def test_every_database_gives_the_same_strata(kind, make_case, to_bits, request, tmp_path):
    database = make(kind, request, tmp_path)
    tables = {}
    for missing, names, prefix in CASES:
        case, gappy = make_case(missing, names), missing != "none"
        if gappy not in tables:
            tables[gappy] = database.table(f"people_{gappy}".lower(), case.rows)
        order = "id" if prefix else None
        found = strata_of_source(tables[gappy], case.study, case.layout, prefix, order)
        assert to_bits(found) == case.expected(prefix, by_id=prefix), (missing, names)
    everywhere(tables[False])


def everywhere(table):
    """Check what needs no more than one query, on an engine that runs already."""
    case_rows = table.to_pyarrow()
    study = Study("arm", "y", (0, 1), {"x": Range(0, 1)}, treated="new")
    grid = tuple(Range(0, 1).cut(*(f"{place}/200" for place in range(1, 200))).cuts)
    counts = histogram_of_source(table, study, "x", grid)
    assert counts.tolist() == histogram_of_table(Table.attach(case_rows, study), "x", grid).tolist()
    # Whatever expression the user made of the table is counted, and not the table below it.
    half = table.filter(table.id > 0).mutate(x=table.y)
    layout = Layout.of(SIMPLE)
    expected = strata_of_source(half.to_pyarrow(), SIMPLE, layout)
    found = strata_of_source(half, SIMPLE, layout)
    assert found.treated.tolist() == expected.treated.tolist()
    assert found.treated_square.tolist() == expected.treated_square.tolist()
    refusals(table)


def refusals(table):
    def code(call):
        with pytest.raises(DataError) as caught:
            call()
        return caught.value.code

    layout = Layout.of(SIMPLE)
    assert code(lambda: Table.attach(table, SIMPLE)) == "CV-D050"
    assert code(lambda: strata_of_source(table, SIMPLE, layout, prefix=True)) == "CV-D053"
    for order in ("yes", "x", "price"):
        assert code(lambda order=order: strata_of_source(table, SIMPLE, layout, True, order)) == "CV-D054"
    assert code(lambda: check_columns(table.drop("x"), SIMPLE)) == "CV-D001"
    assert code(lambda: check_columns(table, SIMPLE, order="x2")) == "CV-D001"
    check_columns(table, SIMPLE, order="id")
    tied = table.mutate(id=table.id // 100000)
    assert code(lambda: strata_of_source(tied, SIMPLE, layout, True, "id")) == "CV-D054"
    failing = table.mutate(x=table.Word.cast("float64"))
    assert code(lambda: strata_of_source(failing, SIMPLE, layout)) == "CV-D016"
    if table.get_backend().name != "duckdb":
        text = table.mutate(x=table.x.cast("string"))
        assert code(lambda: strata_of_source(text, SIMPLE, layout)) == "CV-D052"
