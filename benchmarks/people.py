"""One row for each person of a Parquet file with several, by DuckDB and by Spark on local[2].

Beside each: the bare group-by of the same columns by the same engine, whose averages are what the rules ask for. Ours
also checks every cell, clamps, puts outcomes on their grid and keeps the rows for the passes that follow. CPU and peak
memory are counted as in `benchmarks.engines`.

`PEOPLE_ROWS=1e7 python -m benchmarks people` takes other numbers of rows.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.engines import measured, spark_session, taken
from benchmarks.record_effect_stream import elsewhere

TITLE = (
    "CPU seconds and peak memory of making one row for each person, five rows each on average and five covariates "
    "(each job in processes of its own; aim: memory that does not grow with the rows)"
)
SIZES = tuple(int(float(text)) for text in os.environ.get("PEOPLE_ROWS", "1e6").split(","))
JOBS = {
    "duckdb group": "DuckDB: bare group-by",
    "duckdb ours": "DuckDB: ours, rows on the side",
    "duckdb memory": "DuckDB: ours, all rows in memory",
    "spark group": "Spark: bare group-by",
    "spark ours": "Spark: ours",
}
COVARIATES = tuple(f"x{place}" for place in range(1, 6))
GROUPED = ("max(arm)", *(f"avg({name})" for name in ("y", *COVARIATES)))
MODULE = "benchmarks.people"


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
    return cv.Study("arm", "y", (0, 1), known, control=0, person="id", per_person=rules)


def ours(data: Any, in_memory: bool = False) -> float:
    """Return the number of people."""
    from counterveil.data import Table, rows_of_source

    return float((Table.attach if in_memory else rows_of_source)(data, study()).rows)


def duckdb_job(name: str, path: Path) -> float:
    """Return the number of people by DuckDB."""
    import duckdb

    if name != "group":
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
    """Return CPU and wall seconds and peak megabytes of a job, and the number of people."""
    import counterveil.questions  # noqa: F401

    engine, _, what = name.partition(" ")
    if engine == "duckdb":
        return measured(lambda: duckdb_job(what, path), True)
    session = spark_session()
    return measured(lambda: spark_job(what, path, session), False)


def run() -> list[dict[str, str]]:
    """Return one row a size and job."""
    rows, group = [], float("nan")
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"{size}.parquet"
            written(path, size)
            for name, text in JOBS.items():
                own = json.loads(elsewhere(name, str(path), module=MODULE).splitlines()[-1])
                group = own["cpu"] if name.endswith("group") else group
                line = taken(size, text, own, "CPU / group-by", group)
                rows.append(line | {"people": f"{own['effect']:.0f}"})
            path.unlink()
    return rows


if __name__ == "__main__":
    print(json.dumps(job(sys.argv[1], Path(sys.argv[2]))))
