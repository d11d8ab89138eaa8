"""The R package, where R, reticulate and testthat are installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "r"
NEEDED = ("reticulate", "testthat", "jsonlite", "generics", "bit64", "data.table", "haven", "ggplot2")


def r(code, **more):
    environment = os.environ | {"RETICULATE_PYTHON": sys.executable} | more
    return subprocess.run(
        ["Rscript", "-e", code], capture_output=True, text=True, timeout=600, env=environment, check=False
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    wanted = ", ".join(f'"{name}"' for name in NEEDED)
    if r(f"stopifnot(all(vapply(c({wanted}), requireNamespace, logical(1), quietly = TRUE)))").returncode:
        pytest.skip(f"R has not all of {', '.join(NEEDED)}")
    place = tmp_path_factory.mktemp("library")
    made = subprocess.run(
        ["R", "CMD", "INSTALL", f"--library={place}", str(PACKAGE)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    return place


def test_the_tests_of_the_r_package_pass(library):
    tests = PACKAGE / "tests" / "testthat"
    found = r(
        f'library(counterveil); testthat::test_dir("{tests}", package = "counterveil", load_package = "installed", '
        'reporter = "summary", stop_on_failure = TRUE)',
        R_LIBS=str(library),
    )
    assert found.returncode == 0, found.stdout[-4000:] + found.stderr[-4000:]
    assert "skipped" not in found.stdout.lower()
