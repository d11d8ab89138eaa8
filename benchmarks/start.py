"""What a user waits and pays for, before and after compiled code left: one table, measured by `benchmarks start`.

`before` is what a review of commit ba99441 measured, with nothing compiled yet where that matters; `now` is this run.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from venv import create

import numpy as np

import counterveil as cv
from benchmarks.growth.command import _measure
from benchmarks.printing import ratios

TITLE = "CPU seconds in fresh processes, unless said; the least of some runs"
REPEATS, ROWS = 3, 1_000_000
ROOT = Path(__file__).parents[1]
FRAME = """
import numpy as np, pandas as pd
drawn = np.random.default_rng(1)
people = pd.DataFrame({"age": drawn.integers(18, 80, 1000), "treated": drawn.integers(0, 2, 1000)})
people["y"] = drawn.random(1000)
"""
ESTIMATE = """
import counterveil as cv
study = cv.Study(cv.Treatment("treated", control=0), cv.Outcome("y", (0, 1)), covariates={"age": cv.Range(18, 80)})
print(cv.ate(people, study, protects="outcome", epsilon=1))
"""
Row = tuple[str, str, float, str]


def child_cpu(*words: str) -> float:
    """Return the least CPU seconds of a process of Python and of all that it starts, once byte code is written."""
    found = []
    surroundings = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    words, places = (sys.executable, *words), {"cwd": tempfile.gettempdir(), "env": surroundings}
    for _ in range(REPEATS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, check=True, capture_output=True, **places)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        found.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(found)


def commands(folder: Path) -> Iterator[Row]:
    """Yield what the commands take on 1,000 people with 3 covariates, and a plan with 50."""
    drawn, data = np.random.default_rng(1), folder / "people.csv"
    columns = [drawn.integers(0, 2, 1000), *drawn.random((4, 1000)).round(4)]
    np.savetxt(data, np.column_stack(columns), "%g", ",", header="treated,y,x1,x2,x3", comments="")
    files = {}
    for count in (3, 50):
        names = {f"x{place}": cv.Range(0, 1) for place in range(1, count + 1)}
        study = cv.Study(
            cv.Treatment("treated", control=0),
            cv.Outcome("y", (0, 1)),
            covariates=names,
            assignment=cv.Observational(),
        )
        files[count] = folder / f"{count}.toml"
        files[count].write_text(study.to_toml())
    few, many = (str(file) for file in files.values())
    private = ("--protects", "outcome", "--epsilon", "1")
    command = ("-m", "counterveil")
    yield (
        "`counterveil estimate`",
        "3.6",
        child_cpu(*command, "estimate", str(data), "--study", few, *private),
        "1.5",
    )
    yield "`counterveil check`", "1.7", child_cpu(*command, "check", str(data), "--study", few), "0.8"
    planned = ("--rows", "5000", "--epsilon", "1", "--draws", "4", "--protects", "record")
    taken = child_cpu(*command, "plan", "--study", many, *planned)
    yield "`counterveil plan`, 50 covariates, 4 draws", "36", taken, "5"
    yield "`make demo`, installed", "-", child_cpu(*command, "demo"), "30"


def installed_megabytes(folder: Path, *options: str) -> float:
    """Return what `pip install .` with these options adds to an empty environment."""
    create(folder, with_pip=True, symlinks=True)

    def held() -> int:
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())

    before = held()
    words = [folder / "bin" / "pip", "install", "--quiet", *options, ROOT]
    subprocess.run(words, check=True, capture_output=True)
    return (held() - before) / 1e6


def rows() -> Iterator[Row]:
    """Yield what is measured: its name, before, now, and the aim."""
    first = child_cpu("-c", FRAME + ESTIMATE)
    yield "first estimate in a fresh process, weighting", "27 to 34", first, "3"
    yield (
        "the same beyond numpy, pandas and the frame",
        "1.4 to 2.4, compiled",
        first - child_cpu("-c", FRAME),
        "1",
    )
    with tempfile.TemporaryDirectory() as folder:
        yield from commands(Path(folder))
        empty = Path(folder)
        yield "MB of `pip install .`", "490", installed_megabytes(empty / "whole"), "300"
        lean = installed_megabytes(empty / "lean", "--no-compile")
        yield "MB of `pip install --no-compile .`, without byte code", "-", lean, "300"
    sources = [file for part in ("numerics", "kernels") for file in ROOT.glob(f"src/**/{part}/*.*")]
    lines = sum(file.read_bytes().count(b"\n") for file in sources if file.suffix in (".py", ".c"))
    yield "lines of numerics and kernels", "10018", lines, "fewer"
    shown = ratios()
    for what, before in {"256 groups": "7.3", "100 outcomes": "6.0", "50 arms": "22 (16 arms)"}.items():
        most = max(ratio for name, ratio in shown.items() if name.startswith(what))
        yield f"printing {what} / estimating them", before, most, "2"
    for name, before in {"outcome": "6.8", "several": "10.4", "outcomes": "6.8"}.items():
        found = _measure(f"{name}: weighting", ROWS)
        assert not isinstance(found, str), found
        yield f"memory / data, {name}: weighting, 1e6 rows", before, found["bytes"] / found["data"], "3"


def run() -> list[dict[str, str]]:
    """Return one row for each thing that is measured."""
    return [
        {"what": what, "before": before, "now": f"{now:.3g}" if now < 1000 else f"{now:.0f}", "aim": aim}
        for what, before, now, aim in rows()
    ]
