"""Texts with figures, compared as words and numbers: a figure's last digit depends on how a machine rounds."""

import re

import pytest

# A figure of three digits is off by half a per cent; another machine may round it the other way.
PRINTED = 0.01
# A bound from thousands of draws. A machine that rounds otherwise draws others, which move it by a few per cent.
DRAWN = 0.1

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]\d+)?\b")
# Columns and rules are as wide as the longest figure.
_WIDTH = re.compile(r" {2,}|-{3,}")


def words(text):
    """Return a text without its figures and the widths of its columns."""
    return _WIDTH.sub(" ", _NUMBER.sub("#", text))


def figures(text):
    """Return the numbers in a text."""
    return [float(one) for one in _NUMBER.findall(text)]


def assert_same(made, kept, tolerance=PRINTED):
    """Assert that two texts have the same words, and figures that differ by no more than the tolerance."""
    assert words(made) == words(kept)
    assert figures(made) == pytest.approx(figures(kept), rel=tolerance)
