"""Numbers as people write them."""

from __future__ import annotations

from math import floor, isfinite, log10


def rounded(value: float, error: float) -> str:
    """Return `value` with as many decimals as its error makes meaningful (two digits of the error)."""
    if not isfinite(value):
        return "inf" if value > 0 else "-inf"
    if not isfinite(error) or error <= 0:
        return f"{value:.4g}"
    decimals = max(0, 1 - floor(log10(error)))
    return f"{value:,.{decimals}f}"


def probability(value: float) -> str:
    """Return a p-value as it is printed in a table."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def percent(level: float) -> str:
    """Return a level such as 0.95 as text."""
    return f"{100 * level:g} %"
