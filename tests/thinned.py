"""Tests of which `make test` runs a part and `make test-all` the whole."""

import os

import pytest

# Set by `make test-all`.
ALL = os.environ.get("COUNTERVEIL_TESTS") == "all"


def thinned(cases, *kept):
    """Return the cases as parameters; those that are not kept are left to `make test-all`."""
    assert set(kept) <= set(cases)
    values = {case: case if isinstance(case, tuple) else (case,) for case in cases}
    return [case if case in kept else pytest.param(*values[case], marks=pytest.mark.slow) for case in cases]


def examples(part, whole):
    """Return how many examples a property is tried on."""
    return whole if ALL else part
