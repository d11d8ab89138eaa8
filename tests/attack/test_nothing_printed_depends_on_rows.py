"""What a process prints is the same to the byte whether rows make libraries and learners complain or not."""

import os
import subprocess
import sys
from pathlib import Path

from tests.thinned import ALL

import counterveil

SCRIPT = Path(__file__).with_name("complaining_rows.py")


def printed(rows, *flags):
    # The same sources as this process, whichever they are.
    sources = str(Path(counterveil.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, *flags, str(SCRIPT), rows],
        capture_output=True,
        timeout=300,
        check=False,
        env=os.environ | {"PYTHONPATH": sources},
    )
    return done.returncode, done.stdout, done.stderr


def test_output_does_not_depend_on_rows():
    wanted = (0, b"before\nafter\n", b"")
    assert not ALL or printed("benign", "-W", "default") == wanted
    for warnings in ("default", "error::RuntimeWarning"):
        assert printed("nasty", "-W", warnings) == wanted, warnings
