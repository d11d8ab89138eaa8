"""One row for each person of a Parquet file with several, by DuckDB and by Spark on local[2].

Beside each: the bare group-by of the same columns by the same engine, whose averages are what the rules ask for. Ours
also checks every cell, clamps, puts outcomes on their grid and keeps the rows for the passes that follow. CPU and peak
memory are counted as `benchmarks._jobs` says.

`PEOPLE_ROWS=1e7 python -m benchmarks people` takes other numbers of rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks import _jobs
from benchmarks.record_effect_stream import command

TITLE = (
    "CPU seconds and peak memory of making one row for each person, five rows each on average and five covariates "
    "(each job in processes of its own; aim: memory that does not grow with the rows)"
)
JOBS = _jobs.Jobs(
    "benchmarks.people",
    {
        "duckdb group-by": "DuckDB: bare group-by",
        "duckdb ours": "DuckDB: ours, rows on the side",
        "duckdb memory": "DuckDB: ours, all rows in memory",
        "spark group-by": "Spark: bare group-by",
        "spark ours": "Spark: ours",
    },
    base="group-by",
    answer="people",
    form=".0f",
)
COVARIATES = tuple(f"x{place}" for place in range(1, 6))
GROUPED = ("max(arm)", *(f"avg({name})" for name in ("y", *COVARIATES)))


def written(path: Path, rows: int) -> None:
    """Write rows of people, those of one far apart."""
    import duckdb

    numbers = ", ".join(f"random() AS {name}" for name in ("y", *COVARIATES))
    with duckdb.connect() as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(
            f"COPY (SELECT id, id % 2 AS arm, {numbers} FROM "
            f"(SELECT CAST(floor(random() * {rows // 5}) AS BIGINT) AS id FROM range({rows}))) TO '{path}' "
            "(FORMAT parquet)"
        )


def study() -> Any:
    """Return the study of the file."""
    import counterveil as cv

    rules = dict.fromkeys(COVARIATES, "mean")
    known = {name: cv.Range(0, 1) for name in COVARIATES}
    return cv.Study(
        cv.Treatment("arm", control=0), cv.Outcome("y", (0, 1)), known, people=cv.People("id", rules=rules)
    )


def ours(data: Any, in_memory: bool = False) -> float:
    """Return the number of people."""
    from counterveil.data import Table, rows_of_source

    return float((Table.attach if in_memory else rows_of_source)(data, study()).rows)


def duckdb_job(name: str, path: Path) -> float:
    """Return the number of people by DuckDB."""
    import duckdb

    if name != "group-by":
        return ours(path, name == "memory")
    return float(
        len(duckdb.read_parquet(str(path)).aggregate(", ".join(("id", *GROUPED)), "id").fetchnumpy()["id"])
    )


def spark_job(name: str, path: Path, session: Any) -> float:
    """Return the number of people by Spark; the groups stay there."""
    frame = session.read.parquet(str(path))
    if name == "ours":
        return ours(frame)
    from pyspark.sql import functions

    grouped = frame.groupBy("id").agg(*map(functions.expr, GROUPED)).persist()
    return float(grouped.count())


def job(name: str, path: Path) -> dict[str, float]:
    """Return what a job took, and the number of people."""
    return _jobs.job(name, path, duckdb_job, spark_job)


run = JOBS.run

if __name__ == "__main__":
    command(job, written)
