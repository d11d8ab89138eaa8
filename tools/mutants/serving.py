"""A process that has imported what tests need, short of the package, and runs tests in copies of itself.

Most of the time of a short test goes into importing numpy, scipy and pytest: a copy has them already.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

# What is missing is imported by the tests that need it, or makes them skip.
_IMPORTED = (
    "numpy",
    "scipy.integrate",
    "scipy.linalg",
    "scipy.special",
    "scipy.stats",
    "hypothesis",
    "flint",
    "narwhals",
    "pandas",
    "duckdb",
)
_POLL = 0.05


class Failures:
    """A plugin of pytest that keeps the names of tests, and of files, that failed."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a test that failed."""
        if report.failed:
            self.names.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep a file that could not be read."""
        if report.failed:
            self.names.append(report.nodeid)


def tested(source: str, tests: Sequence[str], stop: bool, answer: Path) -> None:
    """Run tests against the package in `source`, write what came of it to a file, and end this process."""
    os.setsid()
    os.environ |= {"PYTHONPATH": source}
    sys.path.insert(0, source)
    found = Failures()
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", "--tb=no"]
    with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        code = int(pytest.main([*arguments, *(["-x"] if stop else []), *tests], plugins=[found]))
    answer.write_text(json.dumps({"code": code, "failed": found.names}), encoding="utf-8")
    os._exit(0)


def served(source: str, tests: Sequence[str], stop: bool, longest: float) -> dict[str, object]:
    """Return what came of tests in a copy of this process: exit code (None: no end) and names that failed."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer"
        child = os.fork()
        if child == 0:
            try:
                tested(source, tests, stop, answer)
            finally:
                os._exit(1)
        ends = time.monotonic() + longest
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > ends:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return {"code": None, "failed": []}
            time.sleep(_POLL)
        if not answer.is_file():
            return {"code": -1, "failed": []}
        found: dict[str, object] = json.loads(answer.read_text(encoding="utf-8"))
        return found


def _same_examples() -> None:
    """Let hypothesis try the same examples in every run, and not look for smaller ones where a test fails."""
    hypothesis = import_module("hypothesis")
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutants", phases=phases, derandomize=True, deadline=None)
    hypothesis.settings.load_profile("mutants")


def main() -> None:
    for name in _IMPORTED:
        with contextlib.suppress(ImportError):
            import_module(name)
    _same_examples()
    for line in sys.stdin:
        print(json.dumps(served(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
