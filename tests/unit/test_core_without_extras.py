"""The core works where none of the extras is installed, and without the laboratory."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from counterveil.cli.app import app
from counterveil.errors import MissingExtraError

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
    "counterveil_lab",
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


@pytest.mark.parametrize(
    "words", [("audit", "--all"), ("audit", "matching"), ("audit", "--gallery"), ("reproduce", "--list")]
)
def test_commands_of_the_laboratory_name_the_package_they_need(words, monkeypatch):
    monkeypatch.setitem(sys.modules, "counterveil_lab", None)
    found = CliRunner().invoke(app, list(words)).exception
    assert isinstance(found, MissingExtraError)
    assert found.code == "CV-E100"
    assert "counterveil-lab" in found.expected
    assert found.fix.endswith("pip install ./lab")
