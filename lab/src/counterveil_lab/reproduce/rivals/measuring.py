"""Time and memory of one estimate in a fresh process: `python -m counterveil_lab.reproduce.rivals.measuring JOB`."""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from counterveil.errors import CounterveilError
from counterveil_lab.reproduce.rivals.encoding import Answer, Budget, Records, Rival

# An estimate is repeated for so many seconds, at least and at most so often, and the least time counts: the first
# loads, and those of milliseconds vary with the machine. One of many seconds is repeated once.
_FEWEST, _MOST, _SECONDS, _QUICK = 3, 50, 1.0, 5.0


@dataclass(frozen=True)
class Measured:
    """An answer with the CPU seconds of the estimate and the peak resident megabytes of its process.

    Both count the process of packages that run apart. `first` are the seconds of the first estimate in the process,
    which loads what the method needs and nothing loaded before; `seconds` those of the quickest. `before` are the
    megabytes before the first estimate. `refused` is the error's first line where there is no answer.
    """

    answer: Answer | None
    seconds: float
    first: float
    peak: float
    before: float
    refused: str = ""


def measured(rival: Rival, records: Records, budget: Budget, seed: int) -> Measured:
    """Return what one estimate takes in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder, "job")
        job.write_bytes(pickle.dumps((rival.name, records, budget, seed)))
        # One thread, because waiting threads would count as busy.
        single = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "counterveil_lab.reproduce.rivals.measuring", str(job)]
        text = subprocess.run(
            command, check=True, capture_output=True, text=True, env={**os.environ, **single}
        )
    found = json.loads(text.stdout.splitlines()[-1])
    answer = None if found["answer"] is None else Answer(*found["answer"])
    return Measured(**found | {"answer": answer})


def _used() -> float:
    return time.process_time()


def peak_megabytes() -> float:
    """Return the peak resident megabytes of this process.

    Linux counts in `ru_maxrss` what the parent held when it started this process, so that its own line is read there.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    lines = status.read_text(encoding="ascii", errors="replace").splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def run(rival: Rival, records: Records, budget: Budget, seed: int) -> dict[str, object]:
    """Return the figures of one estimate in this process."""
    from counterveil_lab.reproduce.rivals import environment

    answer, refused, seconds, floor = None, "", list[float](), peak_megabytes()
    while len(seconds) < _FEWEST or (len(seconds) < _MOST and sum(seconds) < _SECONDS):
        before = _used()
        try:
            found = rival.estimate(records, budget, seed)
            answer = (found.value, found.low, found.high)
        except (CounterveilError, RuntimeError) as error:
            refused = str(error).splitlines()[0]
        apart = environment.worker().last if rival.apart and not refused else None
        taken = _used() - before + (0.0 if apart is None else apart["seconds"])
        seconds.append(taken)
        if taken > _QUICK and len(seconds) > 1:
            break
    peak = peak_megabytes()
    peak += 0.0 if apart is None else apart["peak"]
    return {
        "answer": answer,
        "seconds": min(seconds),
        "first": seconds[0],
        "peak": peak,
        "before": floor,
        "refused": refused,
    }


def main() -> None:
    """Run the job in the file that the first argument names, and print its figures."""
    from counterveil_lab.reproduce.rivals.catalogue import RIVALS

    name, records, budget, seed = pickle.loads(Path(sys.argv[1]).read_bytes())
    print(json.dumps(run(RIVALS[name], records, budget, seed)))


if __name__ == "__main__":
    main()
