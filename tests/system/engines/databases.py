"""Databases that tests put tables into: DuckDB, PostgreSQL, Spark, SQLite and Polars, each through Ibis."""

import pyarrow as pa
import pyarrow.parquet
import pytest

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
SQLITE_TYPES = POSTGRES_TYPES | {
    pa.float64(): "real",
    pa.decimal128(12, 7): "decimal(12, 7)",
    pa.date32(): "date",
}


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


class SQLite:
    def __init__(self):
        self.connection = ibis.sqlite.connect()

    def table(self, name, rows):
        columns = ", ".join(f'"{field.name}" {SQLITE_TYPES[field.type]}' for field in rows.schema)
        self.connection.con.execute(f'CREATE TABLE "{name}" ({columns})')
        cells = [[_stored(cell) for cell in row.values()] for row in rows.to_pylist()]
        self.connection.con.executemany(
            f'INSERT INTO "{name}" VALUES ({", ".join("?" * rows.num_columns)})', cells
        )
        return self.connection.table(name)


def _stored(cell):
    return cell if cell is None or isinstance(cell, str | float | int) else str(cell)


class Polars:
    def __init__(self):
        self.connection = ibis.polars.connect()

    def table(self, name, rows):
        return self.connection.create_table(name, rows)


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
    if kind in ("duckdb", "sqlite", "polars"):
        return {"duckdb": DuckDB, "sqlite": SQLite, "polars": Polars}[kind]()
    if kind == "postgres":
        return Postgres(request.getfixturevalue("cluster"))
    return Spark(request.getfixturevalue("spark"), folder)
