"""Settings of all tests: which of them `make check` leaves out, and what hypothesis does on every machine."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.configuration import set_hypothesis_home_dir

# Before a test loads numpy, and for the processes that tests start: every core has a process of tests of its own, and
# threads of a BLAS that wait for each other take four to eight times the CPU.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# Out of the checkout, as it holds paths of one machine.
set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "counterveil-hypothesis")
# The same examples on every machine, however slow it is.
settings.register_profile(
    "any machine", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")


TESTS = Path(__file__).parent
# Left out of `make check`: two folders, and functions that take more than 1.5 seconds of CPU over all their cases.
LONG_FOLDERS = {"statistical", "system"}
LONG_TESTS = set((TESTS / "long.txt").read_text(encoding="utf-8").split())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark long tests, before pytest chooses by marks."""
    for item in items:
        name = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
        if name in LONG_TESTS or item.path.relative_to(TESTS).parts[0] in LONG_FOLDERS:
            item.add_marker(pytest.mark.long)
    # Long tests first: at the end two processes share out short ones and finish together.
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
