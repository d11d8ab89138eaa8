"""Strata of a Parquet file beside the bare group-by of the same columns, at three sizes and projected to 1e9 rows.

`python -m benchmarks.strata [rows]`: the largest file has that many rows, 1e7 by default.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

TITLE = "One aggregate query: counts, sums and squares of 1000 strata and 2 arms, in a process of its own"
LARGEST = 10**7
PROJECTED = 10**9
ROUNDS = 3

WRITE = """
import duckdb
with duckdb.connect() as connection:
    connection.execute("SELECT setseed(0.5)")
    draw = "CAST(floor(random() * {}) AS INTEGER)".format
    connection.execute(
        f"COPY (SELECT {draw(10)} AS x1, {draw(10)} AS x2, {draw(10)} AS x3, {draw(2)} AS t, "
        "1.2 * random() - 0.1 AS y FROM range(ROWS)) TO 'PATH' (FORMAT parquet)"
    )
"""

# What a child process runs; FILE stands for the path of the file.
BARE = """
import duckdb
duckdb.connect().execute(
    "SELECT x1, x2, x3, t, count(*), sum(y), sum(y * y) FROM 'FILE' GROUP BY x1, x2, x3, t"
).fetchall()
"""
SETTING = """
from counterveil.data import Categories, Layout, Outcome, Study, strata_of_source
study = Study("t", Outcome("y", (0, 1)), {name: Categories(range(10)) for name in ("x1", "x2", "x3")})
"""
STRATA = SETTING + "assert len(strata_of_source('FILE', study, Layout.of(study)).place) == 1000\n"
PREFIX = (
    SETTING + "assert len(strata_of_source('FILE', study, Layout.of(study), prefix=True).place) == 1000\n"
)

ESTIMATE = (
    "import counterveil as cv\n"
    + SETTING
    + "cv.ate('FILE', study, protects='record', epsilon=1, method='stratified')\n"
)

JOBS: dict[str, str] = {
    "bare group-by": BARE,
    "strata": STRATA,
    "whole private estimate": ESTIMATE,
    "strata, with prefixes": PREFIX,
}

_MEASURE = """
import json, resource
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024]))
"""


def measured(program: str, rounds: int) -> tuple[float, float]:
    """CPU seconds (the smallest of a few rounds) and MB at the peak of a program in a process of its own."""
    found = []
    for _ in range(rounds):
        child = subprocess.run(
            [sys.executable, "-c", program + _MEASURE], capture_output=True, text=True, check=True
        )
        found.append(json.loads(child.stdout.splitlines()[-1]))
    return min(cpu for cpu, _ in found), max(peak for _, peak in found)


def run(largest: int = LARGEST) -> list[dict[str, str]]:
    sizes = [size for size in (largest // 100, largest // 10, largest) if size >= 10**4]
    rows, seconds = [], {}
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            file = Path(folder) / f"{size}.parquet"
            program = WRITE.replace("ROWS", str(size)).replace("PATH", str(file))
            subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
            for job, text in JOBS.items():
                cpu, peak = measured(text.replace("FILE", str(file)), 1 if size >= 10**8 else ROUNDS)
                seconds[job, size] = cpu
                rows.append(_row(job, size, cpu, peak, seconds))
            file.unlink()
    return rows + [_projection(job, sizes, seconds) for job in JOBS]


def _row(
    job: str, size: int, cpu: float, peak: float, seconds: dict[tuple[str, int], float]
) -> dict[str, str]:
    bare, before = seconds["bare group-by", size], seconds.get((job, size // 10))
    return {
        "job": job,
        "rows": f"{size:.0e}",
        "CPU s": f"{cpu:.2f}",
        "ratio to the bare group-by": f"{cpu / bare:.2f}",
        "growth from the size before": "-" if before is None else f"{cpu / before:.1f}",
        "peak MB": f"{peak:.0f}",
    }


def _projection(job: str, sizes: list[int], seconds: dict[tuple[str, int], float]) -> dict[str, str]:
    """CPU at 1e9 rows if it goes on growing as between the two largest sizes, and no slower than linearly."""
    small, large = (seconds[job, size] for size in sizes[-2:])
    slope = (large - small) / (sizes[-1] - sizes[-2])
    linear = large + slope * (PROJECTED - sizes[-1])
    bare_small, bare_large = (seconds["bare group-by", size] for size in sizes[-2:])
    bare = bare_large + (bare_large - bare_small) / (sizes[-1] - sizes[-2]) * (PROJECTED - sizes[-1])
    return {
        "job": f"{job}, projected",
        "rows": f"{PROJECTED:.0e}",
        "CPU s": f"{linear:.0f}",
        "ratio to the bare group-by": f"{linear / bare:.2f}" if bare > 0 else "-",
        "growth from the size before": f"{linear / large:.1f}" if not math.isnan(linear) else "-",
        "peak MB": "-",
    }


if __name__ == "__main__":
    print(TITLE)
    for row in run(int(float(sys.argv[1])) if len(sys.argv) > 1 else LARGEST):
        print("  ".join(f"{key}: {value}" for key, value in row.items()))
