"""Tests of which `make test` runs a part and `make test-all` the whole."""

import os

import pytest

# Set by `make test-all`.
ALL = os.environ.get("COUNTERVEIL_TESTS") == "all"


def thinned(cases, *kept):
    """Return the cases of a test's only argument; those that are not kept are left to `make test-all`."""
    assert set(kept) <= set(cases)
    return [pytest.param(case, marks=() if case in kept else pytest.mark.slow) for case in cases]


def thinned_rows(cases, *kept):
    """Return the same for a test with several arguments."""
    assert set(kept) <= set(cases)
    return [pytest.param(*case, marks=() if case in kept else pytest.mark.slow) for case in cases]


def examples(part, whole):
    """Return how many examples a property is tried on."""
    return whole if ALL else part
