"""A record-private effect where the rows lie: Parquet files by DuckDB on all cores, a table of PostgreSQL, and Spark.

Spark runs on local[2] or local[1]; PostgreSQL is a server of the job's own: its CPU counts, its loading does not.

Beside each: a bare scan of the same columns by the same engine, and a non-private AIPW with linear outcome models and
a logistic propensity whose sums are taken batch by batch in the same engine. `benchmarks._jobs` says what is counted.
Ours reads and encodes the rows once, which is a pass, and then passes over what it kept; passes are counted.

`ENGINES_ROWS=1e8 python -m benchmarks engines` takes other numbers of rows, `ENGINES_JOBS="duckdb scan,duckdb ours"`
some of the jobs, `ENGINES_COVARIATES=5` other numbers of covariates than 20. With `ENGINES_KEEP=1` the figures are kept
in `engines.json`, in place of those of the same covariates, rows and jobs.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import _jobs
from benchmarks.growth.kept import this_machine
from benchmarks.record_effect_stream import command, written

TITLE = (
    "CPU seconds and peak memory of one doubly robust private effect (each job in processes of its own; "
    "aims: growth at most linear, every process below 1 GB)"
)
JOBS = _jobs.Jobs(
    "benchmarks.engines",
    {
        "duckdb scan": "DuckDB: bare scan",
        "duckdb aipw": "DuckDB: AIPW without privacy",
        "duckdb ours": "DuckDB: ours, all cores",
        "duckdb ours 1": "DuckDB: ours, one core",
        "postgres scan": "PostgreSQL: bare scan",
        "postgres ours": "PostgreSQL: ours, all cores",
        "postgres ours 1": "PostgreSQL: ours, one core",
        "spark scan": "Spark: bare scan",
        "spark aipw": "Spark: AIPW without privacy",
        "spark ours": "Spark: ours, two cores",
        "spark ours 1": "Spark: ours, one core",
    },
    base="scan",
    answer="effect",
    form=".4f",
)
NEWTON_STEPS = 5
COVARIATES = int(os.environ.get("ENGINES_COVARIATES", "20"))
PATH = Path(__file__).with_name("engines.json")
Arrays = dict[str, Any]


def names() -> tuple[str, ...]:
    """Return the columns of the study."""
    return ("treated", "y", *(f"x{place}" for place in range(1, COVARIATES + 1)))


# The non-private estimate: outcome models from one pass, five Newton steps of the propensity, one pass for the score.


def design(batch: Any) -> tuple[Any, Any, Any]:
    """Return (1, x), treatment and outcome of an Arrow batch."""
    import numpy as np

    t, y, *x = (np.asarray(batch.column(place)) for place in range(len(names())))
    return np.column_stack([np.ones(len(y)), *x]), t.astype(np.float64), y


def outcome_sums(u: Any, t: Any, y: Any, _: Any) -> Arrays:
    """Return the sums behind the regression of outcomes in each arm."""
    one, other = u[t == 1], u[t == 0]
    return {"g1": one.T @ one, "b1": one.T @ y[t == 1], "g0": other.T @ other, "b0": other.T @ y[t == 0]}


def newton_sums(u: Any, t: Any, _y: Any, weights: Any) -> Arrays:
    """Return gradient and curvature of the propensity's likelihood."""
    import numpy as np

    e = 1 / (1 + np.exp(-(u @ weights)))
    return {"g": (u * (e * (1 - e))[:, None]).T @ u, "b": u.T @ (t - e)}


def score_sums(u: Any, t: Any, y: Any, models: Any) -> Arrays:
    """Return the sums of the score and of its square."""
    import numpy as np

    m1, m0, weights = models
    e = 1 / (1 + np.exp(-(u @ weights)))
    score = u @ m1 - u @ m0 + t * (y - u @ m1) / e - (1 - t) * (y - u @ m0) / (1 - e)
    return {"score": score.sum(), "square": (score**2).sum(), "rows": float(len(y))}


def aipw(run: Callable[[Callable[..., Arrays], Any], Arrays]) -> float:
    """Return the effect; `run` adds a pass up over all rows."""
    import numpy as np

    run = _jobs.counted(run)
    first = run(outcome_sums, None)
    weights = np.zeros(len(names()) - 1)
    for _ in range(NEWTON_STEPS):
        step = run(newton_sums, weights)
        weights = weights + np.linalg.solve(step["g"], step["b"])
    m1, m0 = (np.linalg.solve(first[f"g{arm}"], first[f"b{arm}"]) for arm in (1, 0))
    last = run(score_sums, (m1, m0, weights))
    return float(last["score"] / last["rows"])


def added(parts: Iterator[Arrays]) -> Arrays:
    """Return the sums over parts."""
    total: Arrays = {}
    for part in parts:
        total |= {name: total.get(name, 0) + value for name, value in part.items()}
    return total


# The engines.


def scanned(query: Callable[[], Any]) -> float:
    """Run a query that sums every column; the answer is not a number."""
    _jobs.counted(query)()
    return float("nan")


def duckdb_job(name: str, path: Path) -> float:
    """Return the effect by DuckDB, not a number for a scan."""
    import duckdb

    relation = duckdb.read_parquet(str(path)).project(", ".join(names()))
    if name == "scan":
        return scanned(relation.aggregate(", ".join(f"sum({one})" for one in names())).fetchall)
    if name == "aipw":
        return aipw(
            lambda sums, known: added(sums(*design(b), known) for b in relation.to_arrow_reader(1 << 16))
        )
    return ours(path, name)


def postgres_job(name: str, path: Path) -> dict[str, float]:
    """Return what a job on a table took, which the first job on these rows loads, and its answer."""
    import ibis
    import psycopg
    from tools.postgres import Cluster

    folder = path.with_suffix(".postgres")
    fresh = not folder.exists()
    path.parent.chmod(0o755)  # the server runs as another user
    folder.mkdir(mode=0o755, exist_ok=True)
    cluster = Cluster(folder)
    try:
        if fresh:
            loaded(cluster.url, path)
        table = ibis.connect(cluster.url).table("people")

        def work() -> float:
            if name != "scan":
                return ours(table, name)
            with psycopg.connect(cluster.url) as connection:
                sums = f"SELECT {', '.join(f'sum({one})' for one in names())} FROM people"
                return scanned(lambda: connection.execute(sums))

        return _jobs.measured(work, False)
    finally:
        cluster.server.send_signal(signal.SIGINT)
        cluster.server.wait()


def loaded(url: str, path: Path) -> None:
    """Copy the rows of a file into a table."""
    import duckdb
    import psycopg

    text = path.with_suffix(".csv")
    duckdb.read_parquet(str(path)).project(", ".join(names())).write_csv(str(text), header=False)
    columns = ", ".join(f"{one} {'bigint' if one == 'treated' else 'double precision'}" for one in names())
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE people ({columns})")
        with connection.cursor().copy("COPY people FROM STDIN (FORMAT csv)") as copy, text.open("rb") as file:
            while block := file.read(1 << 20):
                copy.write(block)
        connection.execute("ANALYZE people")
    text.unlink()


def spark_job(name: str, path: Path, session: Any) -> float:
    """Return the effect by Spark, not a number for a scan."""
    frame = session.read.parquet(str(path)).select(*names())
    if name == "scan":
        return scanned(frame.agg(*(_sum(one) for one in names())).collect)
    if name == "aipw":
        return aipw(lambda sums, known: added(_in_spark(frame, sums, known)))
    return ours(frame, name)


def _sum(name: str) -> Any:
    from pyspark.sql import functions

    return functions.sum(name)


def _in_spark(frame: Any, sums: Callable[..., Arrays], known: Any) -> Iterator[Arrays]:
    import pickle

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        total = added(sums(*design(batch), known) for batch in batches if batch.num_rows)
        yield pa.RecordBatch.from_pydict({"sums": pa.array([pickle.dumps(total)], pa.binary())})

    for row in frame.mapInArrow(task, "sums binary").collect():
        yield pickle.loads(row["sums"])


def ours(data: Any, name: str) -> float:
    """Return the private effect; a `name` that ends with 1 takes one core."""
    if name == "ours 1":
        os.environ["COUNTERVEIL_CORES"] = "1"
    import counterveil as cv
    from counterveil.data import batches, spark, spool, table
    from counterveil.datasets import synth

    _jobs.PASSES[0] = 1  # rows are read and encoded once
    for kind in (table.Table, spool.SpooledRows, batches.StreamedRows, spark.SparkRows):
        kind.run = _jobs.counted(kind.run)
    words = {"protects": "record", "epsilon": 1, "delta": "1e-10", "method": "doubly_robust"}
    return cv.ate(data, synth(seed=0, n=1000, covariates=COVARIATES).study, **words).estimate


def job(name: str, path: Path) -> dict[str, float]:
    """Return what a job took, and its answer."""
    engine, _, what = name.partition(" ")
    return postgres_job(what, path) if engine == "postgres" else _jobs.job(name, path, duckdb_job, spark_job)


def run() -> list[dict[str, str]]:
    """Return one row a size and job; keep them where that is asked for."""
    rows = JOBS.run()
    if os.environ.get("ENGINES_KEEP"):
        _keep(rows)
    return rows


def _keep(rows: list[dict[str, str]]) -> None:
    """Put figures into the file."""
    kept, key = json.loads(PATH.read_text()), f"{COVARIATES} covariates"
    new = {(row["rows"], row["job"]): row for row in rows}
    old = {(row["rows"], row["job"]): row for row in kept.get(key, {}).get("figures", [])}
    figures = [row for _, row in sorted((old | new).items(), key=lambda one: float(one[0][0]))]
    kept[key] = {"machine": this_machine(), "figures": figures}
    parts = []
    for name, part in kept.items():
        lines = ",\n".join(f"    {json.dumps(row)}" for row in part["figures"])
        machine = json.dumps(part["machine"])
        parts.append(f'  {json.dumps(name)}: {{"machine": {machine}, "figures": [\n{lines}\n  ]}}')
    PATH.write_text("{\n" + ",\n".join(parts) + "\n}\n")


if __name__ == "__main__":
    command(job, partial(written, covariates=COVARIATES))
