"""CPU seconds of tests, child processes included: `python -m pytest -p tools.test_times tests/...`, without `-n`.

Processes that are not children of the tests are not counted: the examples of the docs, which a fork server runs.
Prints the sum of every folder, and the test functions that belong in `tests/long.txt` and are not there.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator

import pytest

# Of a function with all its cases.
MOST_SECONDS = 1.5

_BY_FOLDER: defaultdict[str, float] = defaultdict(float)
_BY_FUNCTION: defaultdict[str, float] = defaultdict(float)


def _cpu() -> float:
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Add what a test and its fixtures take to its folder and, if nothing marks it yet, to its function."""
    before = _cpu()
    try:
        return (yield)
    finally:
        seconds = _cpu() - before
        _BY_FOLDER[item.nodeid.split("::")[0].rpartition("/")[0]] += seconds
        if not any(item.get_closest_marker(mark) for mark in ("long", "slow")):
            name = f"{item.path.name}::{getattr(item, 'originalname', item.name)}"
            _BY_FUNCTION[name] += seconds


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print both lists."""
    terminalreporter.section("CPU seconds")
    for folder, seconds in sorted(_BY_FOLDER.items()):
        terminalreporter.write_line(f"{seconds:8.1f}  {folder}")
    long = sorted(name for name, seconds in _BY_FUNCTION.items() if seconds > MOST_SECONDS)
    terminalreporter.write_line(f"More than {MOST_SECONDS} s and not in tests/long.txt: {len(long)}")
    for name in long:
        terminalreporter.write_line(name)
