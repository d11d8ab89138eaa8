"""A record-private effect of a Parquet file that is never in memory, beside a bare scan and the form in memory.

How often the file is read is measured: bytes that the process read, as the system counts them, less those of
rows kept on the side, over the size of the file.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

TITLE = (
    "CPU seconds, peak memory and reads of the file of one doubly robust private effect of a Parquet file, "
    "20 covariates (each job in a process of its own; aim: one read, and memory that does not grow with the rows)"
)
SIZES = (10**6, 10**7)
JOBS = {
    "start": "imports alone",
    "scan": "DuckDB, sum of the same 22 columns",
    "stream": "ours, rows on the side",
}
OTHERS = {"again": "ours, the file read again at every look", "memory": "ours, all rows in memory"}


def written(path: Path, rows: int, covariates: int = 20) -> None:
    """Write rows like those of `datasets.synth`, whose true effect is 0.5, by DuckDB on one thread."""
    import duckdb
    import numpy as np

    generator, places = np.random.default_rng(1), range(1, covariates + 1)
    a, b = generator.uniform(-1.0, 1.0, covariates), generator.uniform(0.0, 0.4, covariates)
    logit = " + ".join(f"{2 * one} * (x{place} - 0.5)" for place, one in zip(places, a, strict=True))
    mean = " + ".join(f"{one} * x{place}" for place, one in zip(places, b, strict=True))
    drawn = f"SELECT {', '.join(f'random() AS x{place}' for place in places)} FROM range({rows})"
    treated = f"SELECT *, (random() < 1 / (1 + exp(-({logit}))))::BIGINT AS treated FROM ({drawn})"
    everyone = f"SELECT *, {mean} + 0.5 * treated + 0.1 * random() AS y FROM ({treated})"
    with duckdb.connect(config={"threads": 1, "preserve_insertion_order": False}) as connection:
        connection.execute("SELECT setseed(0.5)")
        connection.execute(f"COPY ({everyone}) TO '{path}' (FORMAT parquet)")


def scanned(path: Path) -> None:
    """Sum every column of the study."""
    import duckdb

    from counterveil.datasets import synth

    columns = ", ".join(f'sum("{name}")' for name in synth(seed=0, n=1000).study.columns)
    duckdb.read_parquet(str(path)).aggregate(columns).fetchall()


def estimated(path: Path, in_memory: bool) -> float:
    """Return the private effect."""
    import counterveil as cv
    from counterveil.data import Table
    from counterveil.datasets import synth

    study = synth(seed=0, n=1000).study
    data = Table.attach(path, study) if in_memory else path
    words = {"protects": "record", "epsilon": 1, "delta": "1e-10", "method": "doubly_robust"}
    return cv.ate(data, study, **words).estimate


def read_so_far() -> int:
    """Return the bytes that this process read from files, from the disk or the system's memory of it."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("rchar")).split()[1])


def count_scratch() -> list[int]:
    """Return a list that takes, from here on, the bytes of every read of rows on the side."""
    sizes: list[int] = []
    plain = os.pread

    def counted(descriptor: int, size: int, place: int) -> bytes:
        sizes.append(size)
        return plain(descriptor, size, place)

    os.pread = counted
    return sizes


def job(name: str, path: Path) -> dict[str, float]:
    """Return CPU and wall seconds, peak megabytes and reads of the file of a job, run in this process."""
    import counterveil as cv  # noqa: F401
    import counterveil.questions.session  # noqa: F401

    if name == "again":
        os.environ["COUNTERVEIL_SCRATCH"] = "none"
    scratch, before = count_scratch(), read_so_far()
    cpu, wall, effect = time.process_time(), time.perf_counter(), float("nan")
    if name == "scan":
        scanned(path)
    elif name != "start":
        effect = estimated(path, name == "memory")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "cpu": time.process_time() - cpu,
        "wall": time.perf_counter() - wall,
        "peak": peak,
        "reads": (read_so_far() - before - sum(scratch)) / path.stat().st_size,
        "effect": effect,
    }


def elsewhere(*words: str, module: str = "benchmarks.record_effect_stream") -> str:
    """Run a module in a process of its own: its peak memory is then its own as well."""
    command = [sys.executable, "-m", module, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def command(
    job: Callable[[str, Path], dict[str, float]], write: Callable[[Path, int], None] = written
) -> None:
    """Do what `elsewhere` asked a process for: write a file, or run a job and print what it took."""
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        print(json.dumps(job(sys.argv[1], Path(sys.argv[2]))))


def run() -> list[dict[str, str]]:
    """Return one row a size and job."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            path = Path(folder) / f"{size}.parquet"
            elsewhere("write", str(path), str(size))
            jobs = JOBS | (OTHERS if size == SIZES[0] else {})
            found = {name: json.loads(elsewhere(name, str(path))) for name in jobs}
            for name, text in jobs.items():
                own = found[name]
                rows.append(
                    {
                        "rows": f"{size:.0e}",
                        "job": text,
                        "CPU s": f"{own['cpu']:.2f}",
                        "wall s": f"{own['wall']:.2f}",
                        "CPU / scan": f"{own['cpu'] / found['scan']['cpu']:.1f}",
                        "file reads": f"{own['reads']:.2f}",
                        "peak MB": f"{own['peak']:.0f}",
                        "effect": f"{own['effect']:.4f}",
                    }
                )
            path.unlink()
    return rows


if __name__ == "__main__":
    command(job)
