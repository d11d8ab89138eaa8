"""`python -m counterveil_lab.reproduce.rivals.environment`: makes the environment of rivals with packages of their own.

They pin versions that this package cannot share. The environment lies below COUNTERVEIL_RIVALS, or in the user's
cache. Its Python answers jobs of `apart.py`, one process for all of them.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterveil.errors import refusal
from counterveil_lab.reproduce.rivals.encoding import (
    Answer,
    Budget,
    Estimate,
    Records,
    Rival,
    binned,
    features,
    synthetic,
)
from counterveil_lab.reproduce.rivals.simple import by_arms

VARIABLE = "COUNTERVEIL_RIVALS"
# Versions that install and work together: dpmm pins numpy, pandas and scikit-learn, and with them DoubleML's.
PACKAGES = ("dpmm==0.1.9", "interpret-core==0.7.3", "doubleml==0.10.1", "opendp==0.12.1", "scipy==1.15.3")
COMMAND = "python -m counterveil_lab.reproduce.rivals.environment"


def folder() -> Path:
    """Return where the environment lies."""
    named = os.environ.get(VARIABLE)
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else cached / "counterveil" / "rivals"


def interpreter() -> Path:
    """Return the environment's Python, whether it is there or not."""
    return folder() / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def unavailable(rival: Rival) -> str | None:
    """Return why a rival cannot run here, None if it can."""
    if rival.apart and not interpreter().exists():
        return f"its packages are not installed; {COMMAND} makes their environment"
    return None


def create() -> None:
    """Make the environment and install the packages."""
    subprocess.run([sys.executable, "-m", "venv", str(folder())], check=True)
    subprocess.run([str(interpreter()), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)


class Worker:
    """The environment's process: jobs go in, answers come out; `last` has CPU and peak megabytes of the last one."""

    last: dict[str, float]

    def __init__(self) -> None:
        if not interpreter().exists():
            raise refusal("CV-E110", fix=COMMAND)
        self._files = tempfile.TemporaryDirectory()
        script = Path(__file__).with_name("apart.py")
        single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [str(interpreter()), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **single, "PYTHONPATH": ""},
            text=True,
        )
        atexit.register(self.close)

    def ask(self, task: str, budget: Budget, seed: int, **arrays: NDArray[Any]) -> dict[str, Any]:
        """Return the answer to one job."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        file = str(Path(self._files.name, "job.npz"))
        np.savez(file, allow_pickle=False, **arrays)
        job = {"task": task, "file": file, "epsilon": budget.epsilon, "delta": budget.delta, "seed": seed}
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        self.last = {name: float(answer[name]) for name in ("seconds", "peak")}
        if "error" in answer:
            raise RuntimeError(f"{task}: {answer['error']}")
        return answer

    def close(self) -> None:
        """End the process and remove its files."""
        if self._process.stdin is not None and not self._process.stdin.closed:
            self._process.stdin.close()
        self._process.wait()
        self._files.cleanup()


@cache
def worker() -> Worker:
    """Return the process of this one; it is started when it is first asked."""
    return Worker()


def by_task(task: str) -> Estimate:
    """Return a rival that gets features, treatments and outcomes."""

    def estimate(records: Records, budget: Budget, seed: int) -> Answer:
        arrays = {
            "x": features(records),
            "t": records.treated.astype(np.int64),
            "y": records.outcomes,
            "ends": np.array(records.outcome_range),
        }
        found = worker().ask(task, budget, seed, **arrays)
        return Answer(found["value"], found.get("low"), found.get("high"))

    return estimate


def by_synthesis(task: str) -> Estimate:
    """Return a rival that gets coded records and hands back synthetic ones, in which the effect is estimated."""

    def estimate(records: Records, budget: Budget, seed: int) -> Answer:
        codes, sizes = binned(records)
        found = worker().ask(task, budget, seed, codes=codes, sizes=np.array(sizes))
        return Answer(by_arms(synthetic(records, np.load(found["codes"]))))

    return estimate


if __name__ == "__main__":
    create()
