"""The core works where none of the extras is installed."""

import subprocess
import sys

EXTRAS = (
    "psycopg",
    "pandas",
    "polars",
    "pyarrow",
    "ibis",
    "pyspark",
    "flwr",
    "cryptography",
    "sklearn",
    "matplotlib",
    "starlette",
    "jinja2",
    "uvicorn",
)
PROGRAM = """
import sys
for name in sys.argv[1:]:
    sys.modules[name] = None  # importing it fails as if it were not installed
import numpy as np
import counterveil as cv
from counterveil.cli import main
study = cv.Study(treatment="t", outcome="y", outcome_range=(0, 1), randomised=True)
rows = {"t": np.arange(40) % 2, "y": np.arange(40) % 3 / 2}
print(cv.ate(rows, study, protects="outcome", epsilon=1))
print(cv.ate(rows, study, protects="record", epsilon=1))
cv.cate, cv.plan, cv.pool, cv.plots, cv.published, cv.results, cv.settings
"""


def test_effects_and_the_command_line_load_without_any_extra():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *EXTRAS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Guarantee:") == 2
