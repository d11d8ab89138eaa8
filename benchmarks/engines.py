"""A record-private effect where the rows lie: Parquet files by DuckDB on all cores, and Spark on local[2].

Beside each: a bare scan of the same columns by the same engine, and a non-private AIPW with linear outcome models and
a logistic propensity whose sums are taken batch by batch in the same engine. CPU and peak memory are those of the
process and all that it started, as the system counts them, from when the engine is up.

`ENGINES_ROWS=1e8 python -m benchmarks engines` takes other numbers of rows, `ENGINES_JOBS="duckdb scan,duckdb ours"`
some of the jobs.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.record_effect_stream import command, elsewhere

TITLE = (
    "CPU seconds and peak memory of one doubly robust private effect, 20 covariates (each job in processes of its own; "
    "aims: growth at most linear, every process below 1 GB)"
)
SIZES = tuple(int(float(text)) for text in os.environ.get("ENGINES_ROWS", "1e6").split(","))
JOBS = {
    "duckdb scan": "DuckDB: bare scan",
    "duckdb aipw": "DuckDB: AIPW without privacy",
    "duckdb ours": "DuckDB: ours, all cores",
    "duckdb ours 1": "DuckDB: ours, one core",
    "spark scan": "Spark: bare scan",
    "spark aipw": "Spark: AIPW without privacy",
    "spark ours": "Spark: ours",
}
CHOSEN = tuple(os.environ.get("ENGINES_JOBS", ",".join(JOBS)).split(","))
NEWTON_STEPS = 5
MODULE = "benchmarks.engines"
Arrays = dict[str, Any]


def names() -> tuple[str, ...]:
    """Return the columns of the study."""
    return ("treated", "y", *(f"x{place}" for place in range(1, 21)))


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
        total = {name: total.get(name, 0) + value for name, value in part.items()}
    return total


# The engines.


def duckdb_job(name: str, path: Path) -> float:
    """Return the effect by DuckDB, not a number for a scan."""
    import duckdb

    relation = duckdb.read_parquet(str(path)).project(", ".join(names()))
    if name == "scan":
        relation.aggregate(", ".join(f"sum({one})" for one in names())).fetchall()
        return float("nan")
    if name == "aipw":
        return aipw(
            lambda sums, known: added(sums(*design(b), known) for b in relation.to_arrow_reader(1 << 16))
        )
    if name == "ours 1":
        os.environ["COUNTERVEIL_CORES"] = "1"
    return ours(path)


def spark_session() -> Any:
    """Return a local session whose executors have this Python."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    # The least heap that Spark starts with; what Java keeps beside it is limited too, which else is as large again.
    settings["spark.driver.memory"] = "480m"
    settings["spark.driver.extraJavaOptions"] = (
        "-XX:ReservedCodeCacheSize=96m -XX:MaxDirectMemorySize=128m -XX:+UseSerialGC"
    )
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    # Starts what the jobs need, before they are measured.
    session.range(2).mapInArrow(same, "id long").collect()
    return session


def same(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the batches as they are."""
    yield from batches


def spark_job(name: str, path: Path, session: Any) -> float:
    """Return the effect by Spark, not a number for a scan."""
    frame = session.read.parquet(str(path)).select(*names())
    if name == "scan":
        frame.agg(*(_sum(one) for one in names())).collect()
        return float("nan")
    if name == "aipw":
        return aipw(lambda sums, known: added(_in_spark(frame, sums, known)))
    return ours(frame)


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


def ours(data: Any) -> float:
    """Return the private effect."""
    import counterveil as cv
    from counterveil.datasets import synth

    words = {"protects": "record", "epsilon": 1, "delta": "1e-6", "method": "doubly_robust"}
    return cv.ate(data, synth(seed=0, n=1000).study, **words).estimate


# Measuring.


def family() -> dict[int, tuple[float, float, bool]]:
    """Return CPU seconds, peak megabytes and whether it is Java, of every process below this one."""
    tick, parents, found = os.sysconf("SC_CLK_TCK"), {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name, _, numbers = (folder / "stat").read_text().rpartition(")")
            fields = numbers.split()
            status = (folder / "status").read_text()
        except OSError:
            continue
        peak = next((line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")), "0")
        parents[int(folder.name)] = int(fields[1])
        found[int(folder.name)] = (
            sum(map(int, fields[11:15])) / tick,
            int(peak) / 1024,
            name.endswith("(java"),
        )
    own = {os.getpid()}
    while more := {one for one, parent in parents.items() if parent in own} - own:
        own |= more
    return {one: found[one] for one in own if one != os.getpid()}


def job(name: str, path: Path) -> dict[str, float]:
    """Return CPU and wall seconds and peak megabytes of a job, run in this process and its children."""
    import counterveil.questions  # noqa: F401

    engine, _, what = name.partition(" ")
    session = spark_session() if engine == "spark" else None
    return measured(
        lambda: duckdb_job(what, path) if session is None else spark_job(what, path, session), session is None
    )


def measured(work: Callable[[], float], alone: bool) -> dict[str, float]:
    """Return what some work took, and its answer; `alone` says that no engine was started for it."""
    before = sum(cpu for cpu, *_ in family().values())
    cpu, wall = _own_cpu(), time.perf_counter()
    effect = work()
    wall = time.perf_counter() - wall
    others = family()
    spent = _own_cpu() - cpu + sum(one for one, *_ in others.values()) - before
    peaks = [peak for _, peak, java in others.values() if not java]
    java = max((peak for _, peak, java in others.values() if java), default=0.0)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    copies = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024 if alone else 0.0
    return {"cpu": spent, "wall": wall, "peak": max([own, copies, *peaks]), "java": java, "effect": effect}


def _own_cpu() -> float:
    """Return the CPU seconds of this process and of its copies that ended."""
    return (
        time.process_time()
        + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        + (resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime)
    )


def taken(size: int, text: str, own: dict[str, float], beside: str, base: float) -> dict[str, str]:
    """Return the line of what a job took, beside another job's CPU."""
    return {
        "rows": f"{size:.0e}",
        "job": text,
        "CPU s": f"{own['cpu']:.1f}",
        beside: f"{own['cpu'] / base:.1f}",
        "wall s": f"{own['wall']:.1f}",
        "largest Python MB": f"{own['peak']:.0f}",
        "Java MB": f"{own['java']:.0f}",
    }


def run() -> list[dict[str, str]]:
    """Return one row a size and job."""
    rows, scan = [], float("nan")
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"{size}.parquet"
            elsewhere("write", str(path), str(size), module=MODULE)
            for name in CHOSEN:
                own = json.loads(elsewhere(name, str(path), module=MODULE).splitlines()[-1])
                scan = own["cpu"] if name.endswith("scan") else scan
                line = taken(size, JOBS[name], own, "CPU / scan", scan)
                rows.append(line | {"effect": f"{own['effect']:.4f}"})
            path.unlink()
    return rows


if __name__ == "__main__":
    command(job)
