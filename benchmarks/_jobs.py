"""Jobs of an engine, each in processes of its own, and what they took: CPU, wall time, peak memory.

CPU and peak memory are those of the process and all that it started, as the system counts them, from when the engine is
up. Jobs that end with " 1" run on one core, others on all; Spark's on two. Jobs that count their passes over the rows
show CPU beside the base for each of them. The environment's `NAME_ROWS=1e8` takes other numbers of rows than a
benchmark's own, `NAME_JOBS="duckdb scan,duckdb ours"` some of its jobs.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any

from benchmarks.record_effect_stream import elsewhere

# How often a job of this process went over the rows.
PASSES = [0]


def counted(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return the same function, every call of which is a pass over the rows."""

    @wraps(work)
    def passing(*words: Any, **named: Any) -> Any:
        PASSES[0] += 1
        return work(*words, **named)

    return passing


@dataclass(frozen=True)
class Jobs:
    """The jobs of a benchmark, by their name and what its table calls them; `module` runs one of them.

    One ends with `base`: the CPU of the others is given beside its own. `answer` is the heading of what jobs answer,
    and `form` how that is written.
    """

    module: str
    names: dict[str, str]
    base: str
    answer: str
    form: str

    def run(self) -> list[dict[str, str]]:
        """Return one row a size and job."""
        rows, base = [], float("nan")
        prefix = self.module.rpartition(".")[2].upper()
        sizes = [int(float(text)) for text in os.environ.get(f"{prefix}_ROWS", "1e6").split(",")]
        chosen = os.environ.get(f"{prefix}_JOBS", ",".join(self.names)).split(",")
        with tempfile.TemporaryDirectory() as folder:
            for size in sizes:
                path = Path(folder) / f"{size}.parquet"
                elsewhere("write", str(path), str(size), module=self.module)
                for name in chosen:
                    own = json.loads(elsewhere(name, str(path), module=self.module).splitlines()[-1])
                    base = own["cpu"] if name.endswith(self.base) else base
                    line = taken(size, self.names[name], own, f"CPU / {self.base}", base)
                    rows.append(line | {self.answer: format(own["answer"], self.form)})
                path.unlink()
        return rows


def spark_session(cores: int) -> Any:
    """Return a local session whose executors have this Python."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}
    # The least heap that Spark starts with; what Java keeps beside it is limited too, which else is as large again.
    settings["spark.driver.memory"] = "480m"
    settings["spark.driver.extraJavaOptions"] = (
        "-XX:ReservedCodeCacheSize=96m -XX:MaxDirectMemorySize=128m -XX:+UseSerialGC"
    )
    builder = SparkSession.builder.master(f"local[{cores}]")
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


def job(
    name: str,
    path: Path,
    by_duckdb: Callable[[str, Path], float],
    by_spark: Callable[[str, Path, Any], float],
) -> dict[str, float]:
    """Return CPU and wall seconds, peak megabytes and the answer of a job, run in this process and its children."""
    import counterveil.questions.session  # noqa: F401

    engine, _, what = name.partition(" ")
    if engine == "duckdb":
        return measured(lambda: by_duckdb(what, path), True)
    session = spark_session(1 if what.endswith(" 1") else 2)
    return measured(lambda: by_spark(what, path, session), False)


def measured(work: Callable[[], float], alone: bool) -> dict[str, float]:
    """Return what some work took, and its answer; `alone` says that no engine was started for it."""
    before = sum(cpu for cpu, *_ in family().values())
    cpu, wall = _own_cpu(), time.perf_counter()
    answer = work()
    wall = time.perf_counter() - wall
    others = family()
    spent = _own_cpu() - cpu + sum(one for one, *_ in others.values()) - before
    peaks = [peak for _, peak, java in others.values() if not java]
    java = max((peak for _, peak, java in others.values() if java), default=0.0)
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    copies = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024 if alone else 0.0
    found = {"cpu": spent, "wall": wall, "peak": max([own, copies, *peaks]), "java": java, "answer": answer}
    return found | ({"passes": PASSES[0]} if PASSES[0] else {})


def _own_cpu() -> float:
    """Return the CPU seconds of this process and of its copies that ended."""
    return (
        time.process_time()
        + resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        + (resource.getrusage(resource.RUSAGE_CHILDREN).ru_stime)
    )


def taken(size: int, text: str, own: dict[str, float], beside: str, base: float) -> dict[str, str]:
    """Return the line of what a job took, beside another job's CPU."""
    passes, ratio = own.get("passes"), own["cpu"] / base
    by_pass = {"passes": f"{passes:.0f}", f"{beside} / pass": f"{ratio / passes:.2f}"} if passes else {}
    return {
        "rows": f"{size:.0e}",
        "job": text,
        "CPU s": f"{own['cpu']:.1f}",
        beside: f"{ratio:.1f}",
        **by_pass,
        "wall s": f"{own['wall']:.1f}",
        "largest Python MB": f"{own['peak']:.0f}",
        "Java MB": f"{own['java']:.0f}",
    }
